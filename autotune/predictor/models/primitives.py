"""TLP's network on the ranker's tokens, with the task and the hardware beside them, trained as the ranker is: a member of its set that reads
primitives and no statement.

Its score is a logarithm of speed, so it can be averaged with the ranker's. Their mean chooses better from a pool of programs than either,
and worse in a search, which finds what it is wrong about (docs/tuning-science.md). So it is in the tables and is not shipped.
"""
from torch import nn

from .common import Attention, Residual, layers
from .ranker import KINDS, Context, Doubt, StepTokens


class Primitives(nn.Module):
    def __init__(self, config, corpus, _platforms):
        super().__init__()
        network, needs = config["network"], config["features"]
        width, size = network["width"], network["embedding"]
        self.steps = StepTokens(needs["steps"]["rows"], needs["steps"]["width"], width)
        self.context = Context(["task", "hardware"], corpus, width, network["dropout"])
        self.attention = Attention(width, network["heads"], network["dropout"])
        self.residuals = nn.Sequential(Residual(width), Residual(width))
        self.dropout = nn.Dropout(network["dropout"])
        self.embed = layers(width, width, size)
        self.head, self.doubt = nn.Linear(size, 1), Doubt(size)

    def fit(self, inputs):
        self.context.fit(inputs)

    def forward(self, inputs):
        steps = inputs["steps"]
        there = steps[:, :, :KINDS].sum(dim=2)
        x = self.steps(steps) + self.context(inputs, steps.shape[0])[:, None, :]
        x = self.residuals(self.attention(x, there) + x)
        embedding = self.embed(self.dropout((x * there[:, :, None]).sum(dim=1) / 16))
        return {"score": self.head(embedding)[:, 0], "spread": self.doubt(embedding), "embedding": embedding}
