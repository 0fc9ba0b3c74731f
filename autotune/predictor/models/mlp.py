"""TenSet-MLP: features of each innermost statement through a shared network, summed over the statements (reference: "TenSet: A
Large-scale Program Performance Dataset for Learned Tensor Compilers")."""
from torch import nn

from .common import Residual, Statements, present


class StatementMlp(Statements):
    def __init__(self, config, corpus, _platforms):
        width = config["network"]["width"]
        super().__init__(len(corpus.features["loops"].columns), width)
        self.residuals = nn.Sequential(*[Residual(width) for _ in range(config["network"]["residuals"])])
        self.head = nn.Linear(width, 1)

    def forward(self, inputs):
        rows = inputs["loops"]
        x = self.each(rows) * present(rows)[:, :, None]
        return {"score": self.head(self.residuals(x.sum(dim=1)))[:, 0]}
