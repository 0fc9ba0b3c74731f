"""TenSet-MLP: features of each innermost statement through a shared network, summed over the statements (reference: "TenSet: A
Large-scale Program Performance Dataset for Learned Tensor Compilers")."""
import torch
from torch import nn

from .common import Residual, Scale, layers, present, real_rows


class StatementMlp(nn.Module):
    def __init__(self, config, corpus, _platforms):
        super().__init__()
        width = config["network"]["width"]
        columns = len(corpus.features["loops"].columns)
        self.scale = Scale(columns)
        self.statement = layers(columns, width, width)
        self.residuals = nn.Sequential(*[Residual(width) for _ in range(config["network"]["residuals"])])
        self.head = nn.Linear(width, 1)

    def fit(self, inputs):
        self.scale.fit_maximum(real_rows(inputs["loops"]))

    def forward(self, inputs):
        rows = inputs["loops"]
        x = self.statement(self.scale(rows)) * present(rows)[:, :, None]
        return {"score": self.head(self.residuals(x.sum(dim=1)))[:, 0]}
