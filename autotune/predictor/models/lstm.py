"""An LSTM over the innermost statements' features, in their order, as TenSet compares with its MLP."""
import torch
from torch import nn

from .common import Statements, layers


class StatementLstm(Statements):
    def __init__(self, config, corpus, _platforms):
        width = config["network"]["width"]
        super().__init__(len(corpus.features["loops"].columns), width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.head = layers(width, width, 1, last=False)

    def forward(self, inputs):
        x = self.each(inputs["loops"].flip(1))  # padding comes first, so that the last state is that of a program's first statement
        zero = torch.zeros(1, x.shape[0], x.shape[2], dtype=x.dtype, device=x.device)
        states = self.lstm(x, (zero, zero))[0]
        return {"score": self.head(states[:, -1])[:, 0]}
