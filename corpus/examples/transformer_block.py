# A transformer block: layer norm, attention of two heads, residual; layer norm, two linear layers with GELU, residual.
# param norm1_scale: float32[16] ones
# param norm1_shift: float32[16] zeros
# param wq: float32[16,16] unit seed=1
# param wk: float32[16,16] unit seed=2
# param wv: float32[16,16] unit seed=3
# param wo: float32[16,16] unit seed=4
# param bo: float32[16] unit seed=5
# param norm2_scale: float32[16] ones
# param norm2_shift: float32[16] zeros
# param up_w: float32[32,16] unit seed=6
# param up_b: float32[32] unit seed=7
# param down_w: float32[16,32] unit seed=8
# param down_b: float32[16] unit seed=9
def heads(x):
    return x.view([x.size(0), x.size(1), 2, 8]).transpose(1, 2)

def f(x, norm1_scale, norm1_shift, wq, wk, wv, wo, bo, norm2_scale, norm2_shift, up_w, up_b, down_w, down_b):
    n = torch.layer_norm(x, [16], norm1_scale, norm1_shift)
    q = heads(torch.linear(n, wq))
    k = heads(torch.linear(n, wk))
    v = heads(torch.linear(n, wv))
    scores = torch.matmul(q, k.transpose(-2, -1)) / 2.8284271247461903
    a = torch.matmul(torch.softmax(scores, -1), v)
    a = a.transpose(1, 2).reshape([x.size(0), x.size(1), 16])
    h = x + torch.linear(a, wo, bo)
    # break
    n = torch.layer_norm(h, [16], norm2_scale, norm2_shift)
    u = torch.gelu(torch.linear(n, up_w, up_b))  # break
    return h + torch.linear(u, down_w, down_b)
