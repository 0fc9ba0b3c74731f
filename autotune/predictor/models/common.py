"""Layers that several models have. Only operators that Tilewright compiles are in them, and every shape is known."""
import math

import torch
from torch import nn


def layers(*widths, last=True):
    """Linear layers with ReLU between them, and after the last one when asked."""
    out = []
    for at, (here, there) in enumerate(zip(widths, widths[1:])):
        out.append(nn.Linear(here, there))
        if last or at + 2 < len(widths):
            out.append(nn.ReLU())
    return nn.Sequential(*out)


class Attention(nn.Module):
    """Self-attention of several heads; `there` [batch, tokens] is 1 for tokens that may be looked at."""

    def __init__(self, width, heads, dropout=0.0):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.inward, self.outward = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def split(self, x):
        return x.reshape(x.shape[0], x.shape[1], self.heads, self.size).transpose(1, 2)

    def alone(self, x):
        """Of a sequence of one, which attends to itself whatever its query and key are."""
        width = self.heads * self.size
        value = self.split(nn.functional.linear(x, self.inward.weight[2 * width:], self.inward.bias[2 * width:]))
        mixed = self.dropout(torch.ones_like(value[..., :1])) * value
        return self.outward(mixed.transpose(1, 2).reshape(x.shape[0], 1, width))

    def forward(self, x, there=None):
        if x.shape[1] == 1:
            return self.alone(x)
        query, key, value = (self.split(part) for part in self.inward(x).chunk(3, dim=2))
        likeness = query @ key.transpose(2, 3) / math.sqrt(self.size)
        if there is not None:
            likeness = likeness + (there[:, None, None, :] - 1) * 1e4
        mixed = self.dropout(torch.softmax(likeness, dim=3)) @ value
        return self.outward(mixed.transpose(1, 2).reshape(x.shape[0], x.shape[1], self.heads * self.size))


class EncoderLayer(nn.Module):
    """A transformer's layer; `first` says whether layers are normalised before their work, or after it as the first transformer has it."""

    def __init__(self, width, heads, hidden, dropout=0.0, first=True):
        super().__init__()
        self.attention, self.first = Attention(width, heads, dropout), first
        self.feed = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, width))
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, there=None):
        if self.first:
            x = x + self.dropout(self.attention(self.norms[0](x), there))
            return x + self.dropout(self.feed(self.norms[1](x)))
        x = self.norms[0](x + self.dropout(self.attention(x, there)))
        return self.norms[1](x + self.dropout(self.feed(x)))


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return torch.relu(self.linear(x)) + x


class Scale(nn.Module):
    """(x - offset) / size of each column, by constants of the training data. A column that never changed there says nothing."""

    def __init__(self, columns):
        super().__init__()
        self.register_buffer("offset", torch.zeros(columns))
        self.register_buffer("size", torch.ones(columns))

    def fit_maximum(self, rows):
        self.size.copy_(rows.abs().amax(0).clamp_min(1e-6))

    def fit_moments(self, rows):
        deviation = rows.std(0)
        self.offset.copy_(rows.mean(0))
        self.size.copy_(torch.where(deviation > 1e-4, deviation, torch.full_like(deviation, 1e4)))

    def forward(self, x):
        return (x - self.offset) / self.size


class Statements(nn.Module):
    """The beginning of models that read each innermost statement's features through one network."""

    def __init__(self, columns, width):
        super().__init__()
        self.scale = Scale(columns)
        self.statement = layers(columns, width, width)

    def fit(self, inputs):
        self.scale.fit_maximum(real_rows(inputs["loops"]))

    def each(self, rows):
        return self.statement(self.scale(rows))


def logarithm2(x):
    return torch.log(x + 1) * 1.4426950408889634


def present(rows):
    """[batch, rows]: 1 where a row has a number that is not zero."""
    return (rows.abs().amax(dim=2) > 0).float()


def real_rows(rows):
    """The rows that are no padding, of all programs."""
    return rows[rows.abs().amax(dim=2) > 0]
