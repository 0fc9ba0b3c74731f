"""TLP and MTL-TLP: schedule primitives as a sequence of numbers (reference: "TLP: A Deep Learning-based Cost Model for Tensor Program
Tuning").

The numbers stay raw, padding is neither masked nor left out of the sum, and the order of the primitives is visible only to the LSTM:
that is how the published model is. MTL-TLP has one more head for each further platform.
"""
import torch
from torch import nn

from .common import Attention, Residual, layers


class AttentionBackbone(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)

    def forward(self, x):
        return self.attention(x) + x


class LstmBackbone(nn.Module):
    def __init__(self, width, _heads):
        super().__init__()
        self.lstm = nn.LSTM(width, width, batch_first=True)

    def forward(self, x):
        zero = torch.zeros(1, x.shape[0], x.shape[2], dtype=x.dtype, device=x.device)
        return self.lstm(x, (zero, zero))[0]


BACKBONES = {"attention": AttentionBackbone, "lstm": LstmBackbone}


class Tlp(nn.Module):
    def __init__(self, config, _corpus, platforms):
        super().__init__()
        network, columns = config["network"], config["features"]["steps"]["width"]
        width = network["width"]
        self.rise = layers(columns, width // 4, width // 2, width, width)
        self.backbone = BACKBONES[network["backbone"]](width, network["heads"])
        self.residuals = nn.Sequential(Residual(width), Residual(width))
        self.many = network.get("head_each_platform", False)
        count = len(platforms) if self.many else 1
        self.heads = nn.ModuleList([layers(width, width, width // 2, width // 4, 1, last=False) for _ in range(count)])

    def fit(self, inputs):
        """Nothing is scaled."""

    def forward(self, inputs):
        with torch.autocast("cpu", enabled=False):
            x = self.rise(inputs["steps"])
        x = self.residuals(self.backbone(x))
        scores = [head(x).sum(dim=(1, 2)) for head in self.heads]
        return {"score": torch.stack(scores, dim=1) if self.many else scores[0]}
