# Four linear layers with ReLU between: the example of pytorch/torchdynamo PR 489.
# param w0: float32[16,8] seed=1
# param b0: float32[16] seed=2
# param w1: float32[16,16] seed=3
# param b1: float32[16] seed=4
# param w2: float32[16,16] seed=5
# param b2: float32[16] seed=6
# param w3: float32[4,16] seed=7
# param b3: float32[4] seed=8
def f(x, w0, b0, w1, b1, w2, b2, w3, b3):
    h = torch.relu(torch.linear(x, w0, b0))
    h = torch.relu(torch.linear(h, w1, b1))
    h = torch.relu(torch.linear(h, w2, b2))
    return torch.linear(h, w3, b3)
