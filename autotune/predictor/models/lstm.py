"""An LSTM over the innermost statements' features, in their order, as TenSet compares with its MLP."""
import torch
from torch import nn

from .common import Scale, layers, real_rows


class StatementLstm(nn.Module):
    def __init__(self, config, corpus, _platforms):
        super().__init__()
        width = config["network"]["width"]
        columns = len(corpus.features["loops"].columns)
        self.scale = Scale(columns)
        self.statement = layers(columns, width, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.head = layers(width, width, 1, last=False)

    def fit(self, inputs):
        self.scale.fit_maximum(real_rows(inputs["loops"]))

    def forward(self, inputs):
        rows = inputs["loops"].flip(1)  # padding comes first, so that the last state is that of a program's first statement
        x = self.statement(self.scale(rows))
        zero = torch.zeros(1, x.shape[0], x.shape[2], dtype=x.dtype, device=x.device)
        states = self.lstm(x, (zero, zero))[0]
        return {"score": self.head(states[:, -1])[:, 0]}
