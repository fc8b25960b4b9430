"""Writes the saved modules of this folder: models as Python saves them. Needs PyTorch for Python; run it here."""

import math
import zipfile
from typing import Dict, List, NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F


class NoGrad(nn.Module):
    def forward(self, x, flag: bool):
        with torch.no_grad():
            y = x * 2
            if flag:
                with torch.no_grad():
                    y = y + x
            z = y * x
        return x * z + x


class Tagger(nn.Module):
    """Recurrent layers, whose weights stand in a list as well."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 5)
        self.rnn = nn.GRU(5, 4, bidirectional=True, num_layers=2)
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        y, _ = self.rnn(self.embed(x))
        return self.out(torch.max(y, 0)[0])


class Decoder(nn.Module):
    """A while loop around a cell, a branch on its counter, results in a dict."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(4, 5)
        self.out = nn.Linear(5, 4)

    def forward(self, x, steps: int):
        h = torch.zeros(x.size(0), 5)
        c = torch.zeros(x.size(0), 5)
        seen: Dict[str, torch.Tensor] = {}
        i = 0
        while i < steps:
            h, c = self.cell(x, (h, c))
            y = self.out(h)
            if i % 2 == 0:
                x = torch.softmax(y, -1)
            else:
                x = x + y
            seen[str(i)] = y
            i += 1
        total = torch.zeros_like(x)
        for _, y in seen.items():
            total = total + y
        return total


class Language(nn.Module):
    """One block of a causal transformer with tied weights."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(13, 16)
        self.places = nn.Parameter(torch.randn(1, 6, 16) * 0.1)
        self.norm = nn.LayerNorm(16)
        self.qkv = nn.Linear(16, 48)
        self.project = nn.Linear(16, 16)
        self.mlp = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(approximate="tanh"), nn.Linear(32, 16))
        self.register_buffer("mask", torch.tril(torch.ones(6, 6)).view(1, 1, 6, 6))

    def forward(self, ids):
        batch, length = ids.size()
        x = self.tokens(ids) + self.places[:, :length]
        q, k, v = self.qkv(self.norm(x)).split(16, 2)
        q = q.view(batch, length, 2, 8).transpose(1, 2)
        k = k.view(batch, length, 2, 8).transpose(1, 2)
        v = v.view(batch, length, 2, 8).transpose(1, 2)
        a = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(8))
        a = F.softmax(a.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf")), -1)
        x = x + self.project((a @ v).transpose(1, 2).contiguous().view(batch, length, 16))
        x = x + self.mlp(x)
        return x @ self.tokens.weight.t()


class Mobile(nn.Module):
    """Depthwise convolutions, batch norm in training, activations in place, squeeze and excitation."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.depth = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
        self.norm2 = nn.BatchNorm2d(8)
        self.squeeze = nn.Conv2d(8, 2, 1)
        self.excite = nn.Conv2d(2, 8, 1)
        self.act = nn.Hardswish(inplace=True)
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        x = self.act(self.norm(self.stem(x)))
        y = self.act(self.norm2(self.depth(x)))
        x = x + y * F.hardsigmoid(self.excite(F.relu(self.squeeze(y.mean((2, 3), keepdim=True)))))
        return F.log_softmax(self.out(F.adaptive_avg_pool2d(x, 1).flatten(1)), 1)


class Spectral(nn.Module):
    """Power iteration without grad on a buffer that is written, then the weight by its norm."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3))
        self.register_buffer("u", torch.randn(4))

    def forward(self, x):
        with torch.no_grad():
            v = F.normalize(torch.mv(self.weight.t(), self.u), dim=0)
            self.u.copy_(F.normalize(torch.mv(self.weight, v), dim=0))
        sigma = torch.dot(self.u, torch.mv(self.weight, v))
        return x @ (self.weight / sigma).t()


class Both(NamedTuple):
    layers: torch.Tensor
    mean: torch.Tensor


class Stacked(nn.Module):
    """A list of modules, a list that grows, a named tuple out."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.norm = nn.InstanceNorm1d(3, affine=True)

    def forward(self, x):
        seen: List[torch.Tensor] = []
        for layer in self.layers:
            x = F.softplus(layer(x))
            seen.append(x)
        return Both(torch.cat(seen, -1), self.norm(x.unsqueeze(-1).expand(-1, -1, 4)).mean())


class Flow(nn.Module):
    """A normalizing flow: a log-determinant, halves that drive each other."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Parameter(torch.eye(4) + 0.1 * torch.randn(4, 4))
        self.drive = nn.Linear(2, 4)

    def forward(self, x):
        y = x @ self.mix
        a, b = y[:, :2], y[:, 2:]
        scale, shift = self.drive(a).chunk(2, 1)
        scale = torch.tanh(scale)
        return torch.cat([a, b * torch.exp(scale) + shift], 1), torch.slogdet(self.mix)[1] + scale.sum(1)


class HalfMean(nn.Module):
    """A number that tracing makes a tensor."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 1)

    def forward(self, x):
        return 0.5 * self.linear(x).pow(2).mean()


class Autocast(nn.Module):
    """Refused: an object, not an op."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 1)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.linear(x)
        return y


class Counter(nn.Module):
    """Refused: an attribute gets a new value."""

    def __init__(self):
        super().__init__()
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        return x * self.steps


class Fork(nn.Module):
    """Refused: a module in a task of its own."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 1)

    def forward(self, x):
        return torch.jit.wait(torch.jit.fork(self.linear, x))


def shrunk(x):
    return torch.tanh(x) * 0.5


def scaled(x, w):
    return shrunk(torch.matmul(x, w))


class Tasks(nn.Module):
    """A function in a task of its own, which calls another."""

    def __init__(self):
        super().__init__()
        self.first = nn.Parameter(torch.randn(4, 4))
        self.second = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        task = torch.jit.fork(scaled, x, self.first)
        other = scaled(x, self.second)
        return torch.relu(torch.jit.wait(task) + other)


def save(name, module):
    path = name + ".pt"
    module.save(path)
    # Where the sources of PyTorch stood on the machine that ran this is nobody's business.
    with zipfile.ZipFile(path) as archive:
        kept = [(i.filename, archive.read(i)) for i in archive.infolist() if not i.filename.endswith(".debug_pkl")]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for filename, content in kept:
            archive.writestr(zipfile.ZipInfo(filename), content)


for model in (NoGrad, Tagger, Decoder, Language, Mobile, Spectral, Stacked, Flow, Autocast, Counter, Fork, Tasks):
    torch.manual_seed(1)
    name = "no_grad" if model is NoGrad else model.__name__.lower()
    save(name, torch.jit.script(model()))
torch.manual_seed(1)
encoder = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
save("half_mean", torch.jit.trace(HalfMean(), torch.randn(4, 4)))
save("traced_encoder", torch.jit.trace(encoder, torch.randn(4, 2, 8), check_trace=False))
