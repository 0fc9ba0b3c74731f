"""8-bit versions of networks: QuantizeLinear and DequantizeLinear around float operators (QDQ), weights with a scale a channel, ranges of random inputs."""
import pathlib
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

SAMPLES = 2


class RandomInputs(CalibrationDataReader):
    def __init__(self, path):
        inputs = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).get_inputs()
        random = np.random.default_rng(1)
        self.rest = iter([{i.name: random.standard_normal([d if isinstance(d, int) else 1 for d in i.shape]).astype(np.float32) for i in inputs}
                          for _ in range(SAMPLES)])

    def get_next(self):
        return next(self.rest, None)


def has_convolutions(path):
    return any(node.op_type == "Conv" for node in onnx.load(path, load_external_data=False).graph.node)


def write(path, out):
    with tempfile.TemporaryDirectory() as work:
        prepared = pathlib.Path(work) / "prepared.onnx"   # batch normalization folded
        quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
        quantize_static(str(prepared), str(out), RandomInputs(prepared), quant_format=QuantFormat.QDQ, per_channel=True, activation_type=QuantType.QInt8,
                        weight_type=QuantType.QInt8, extra_options={"WeightSymmetric": True, "ActivationSymmetric": False})
