"""What onnxruntime's quantizers write."""
import numpy as np
import torch
from torch import nn

from export import by_torch, export

STEPS = 0.02   # roundings of the sums before differ


def plain(path):
    return path.with_suffix(".float.onnx")


class Reader:
    """Gives a calibration its inputs."""

    def __init__(self, runs):
        self.runs = iter(runs)

    def get_next(self):
        return next(self.runs, None)


def dynamic(path, source, runs, **options):
    from onnxruntime.quantization import quantize_dynamic
    quantize_dynamic(str(source), str(path), **options)
    return runs


def static(path, source, runs, **options):
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    form = QuantFormat.QOperator if options.pop("operators", False) else QuantFormat.QDQ
    quantize_static(str(source), str(path), Reader(runs[:1]), quant_format=form, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, **options)
    return runs


@export("quantize_dynamic", STEPS)
def bert_bytes(path):
    import text
    return dynamic(path, plain(path), text.bert(plain(path)))


@export("quantize_dynamic", STEPS)
def language_model_bytes(path):
    import text
    return dynamic(path, plain(path), text.language_model(plain(path)))


@export("quantize_dynamic", STEPS)
def mlp_bytes(path):
    module = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
    runs = by_torch(plain(path), module, lambda n=2: {"x": torch.randn(n, 20)}, {"x": {0: "n"}}, [{}, {"n": 9}])
    return dynamic(path, plain(path), runs, per_channel=True)


@export("quantize_dynamic", STEPS)
def conv_bytes(path):
    import networks
    return dynamic(path, plain(path), networks.squeezenet(plain(path)))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.convs, self.out = nn.Conv2d(3, 16, 3, 2, 1), nn.ModuleList([nn.Conv2d(16, 16, 3, 1, 1) for _ in range(4)]), nn.Linear(16, 10)

    def forward(self, x):
        x = self.first(x).relu()
        for conv in self.convs:
            x = x + conv(x).relu()
        return self.out(x.mean((2, 3)))


def residual(path):
    import networks
    return by_torch(path, Residual(), networks.pictures, networks.ANY_SIZE, [{}, {"n": 3, "h": 48, "w": 80}])


@export("quantize_static, QDQ", STEPS)
def residual_qdq(path):
    return static(path, plain(path), residual(plain(path)))


@export("quantize_static, QDQ", STEPS)
def residual_qdq_channels(path):
    return static(path, plain(path), residual(plain(path)), per_channel=True)


@export("quantize_static, operators", STEPS)
def residual_operators(path):
    return static(path, plain(path), residual(plain(path)), operators=True)


@export("quantize_static, QDQ", STEPS)
def transformer_qdq(path):
    import text
    runs = text.bert(plain(path))
    return static(path, plain(path), [{name: np.asarray(value) for name, value in run.items()} for run in runs])
