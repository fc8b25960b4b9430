# A small convolutional net: two blocks of convolution, batch norm and ReLU, a pooling between them, dropout, a linear
# layer. Running statistics are buffers: batch norm writes into them.
# param w1: float32[6,1,3,3] seed=1
# param b1: float32[6] seed=2
# param scale1: float32[6] positive seed=3
# param shift1: float32[6] seed=4
# param running_mean1: float32[6] zeros
# param running_var1: float32[6] ones
# param w2: float32[8,6,3,3] seed=5
# param b2: float32[8] seed=6
# param scale2: float32[8] positive seed=7
# param shift2: float32[8] seed=8
# param running_mean2: float32[8] zeros
# param running_var2: float32[8] ones
# param w3: float32[4,32] seed=9
# param b3: float32[4] seed=10
def f(x, w1, b1, scale1, shift1, running_mean1, running_var1, w2, b2, scale2, shift2, running_mean2, running_var2, w3, b3):
    h = torch.conv2d(x, w1, b1, padding=1)
    h = torch.batch_norm(h, scale1, shift1, running_mean1, running_var1, True, 0.1, 1e-5, False)
    h = torch.relu(h)  # break
    h = torch.max_pool2d(h, [2, 2])
    h = torch.conv2d(h, w2, b2, padding=1)
    h = torch.batch_norm(h, scale2, shift2, running_mean2, running_var2, True, 0.1, 1e-5, False)
    h = torch.relu(h)
    h = torch.max_pool2d(h, [2, 2])
    # break
    h = torch.dropout(torch.flatten(h, 1), 0.25, True)
    return torch.linear(h, w3, b3)
