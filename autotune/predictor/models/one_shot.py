"""One-Shot Tuner's predictor: 748 numbers, of the curve, the knobs and the task (reference: "One-Shot Tuner for Deep Learning
Compilers").

`sequence: whole` is the released network: its attention sees a sequence of one, so each layer is no more than a residual network.
`sequence: parts` is a corrected one: the four curves of the three buffers, the knobs and the task are fourteen tokens with learned
positions, and the raw numbers of knobs and tasks are log-scaled.
"""
import torch
from torch import nn

from .common import EncoderLayer, Scale

CURVES, CURVE, KNOBS, TASK = 12, 60, 20, 8
COLUMNS = CURVES * CURVE + KNOBS + TASK


class OneShot(nn.Module):
    def __init__(self, config, _corpus, _platforms):
        super().__init__()
        network = config["network"]
        self.parts = network["sequence"] == "parts"
        width = network["width"]
        if not self.parts and width != COLUMNS:
            raise ValueError(f"the released network is {COLUMNS} wide, not {width}")
        if self.parts:
            self.scale = Scale(COLUMNS)
            self.curve, self.knobs, self.task = nn.Linear(CURVE, width), nn.Linear(KNOBS, width), nn.Linear(TASK, width)
            self.positions = nn.Parameter(torch.randn(CURVES + 2, width) * 0.02)
        self.layers = nn.ModuleList([EncoderLayer(width, network["heads"], network["hidden"], network["dropout"], first=False)
                                     for _ in range(network["layers"])])
        self.head = nn.Linear(width, 1)

    def logarithmic(self, x):
        curves, others = x[:, :CURVES * CURVE], x[:, CURVES * CURVE:]
        return torch.cat([curves, torch.log(others.abs() + 1)], dim=1)

    def fit(self, inputs):
        if self.parts:
            self.scale.fit_moments(self.logarithmic(inputs["one-shot"]))

    def tokens(self, x):
        if not self.parts:
            return x[:, None, :]
        x = self.scale(self.logarithmic(x))
        curves = self.curve(x[:, :CURVES * CURVE].reshape(x.shape[0], CURVES, CURVE))
        knobs, task = self.knobs(x[:, -KNOBS - TASK:-TASK]), self.task(x[:, -TASK:])
        return torch.cat([curves, knobs[:, None, :], task[:, None, :]], dim=1) + self.positions

    def forward(self, inputs):
        x = self.tokens(inputs["one-shot"])
        for layer in self.layers:
            x = layer(x)
        return {"score": self.head(x.mean(dim=1))[:, 0]}
