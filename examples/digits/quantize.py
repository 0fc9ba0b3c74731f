#!/usr/bin/env python3
"""Quantizes digits.onnx to 8 bits with onnxruntime's quantizer and writes digits_int8.onnx beside itself: QuantizeLinear and
DequantizeLinear around float operators (QDQ), u8 activations, s8 weights with a scale an output channel and zero point 0. Weights use 7 of their
8 bits: x86 processors without VNNI add two products of 8 bits in 16, where full weights can overflow in onnxruntime.

    scripts/setup.sh train && .venv-train/bin/python examples/digits/quantize.py [OUTPUT_DIR]

Ranges come from images of the training set. Two runs with one version of onnxruntime give the same file.
"""
import pathlib
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from data import load
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

HERE = pathlib.Path(__file__).parent
CALIBRATION_IMAGES = 200


class Images(CalibrationDataReader):
    def __init__(self, images: np.ndarray) -> None:
        self.rest = iter(images)

    def get_next(self) -> dict[str, np.ndarray] | None:
        image = next(self.rest, None)
        return None if image is None else {"image": image[None]}


def tidy(path: pathlib.Path) -> None:
    """Leaves out what the quantizer's helpers note down: operator sets that nothing uses, inferred shapes, their own names."""
    model = onnx.load(path)
    used = {node.domain for node in model.graph.node}
    kept = [entry for entry in model.opset_import if entry.domain in used]
    del model.opset_import[:], model.graph.value_info[:], model.metadata_props[:]
    model.opset_import.extend(kept)
    model.graph.name, model.doc_string, model.producer_name, model.producer_version = "digits_int8", "", "", ""
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def right(path: pathlib.Path, images: np.ndarray, labels: np.ndarray) -> int:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return sum(int(session.run(None, {"image": image[None]})[0].argmax()) == label for image, label in zip(images, labels))


def main() -> None:
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE)
    train_images, test_images, _, test_labels = load()
    with tempfile.TemporaryDirectory() as work:
        prepared = pathlib.Path(work) / "prepared.onnx"   # batch normalization folded, as the quantizer wants it
        quant_pre_process(str(HERE / "digits.onnx"), str(prepared), skip_symbolic_shape=True)
        quantize_static(str(prepared), str(out / "digits_int8.onnx"), Images(train_images[:CALIBRATION_IMAGES]), quant_format=QuantFormat.QDQ,
                        per_channel=True, reduce_range=True, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                        calibrate_method=CalibrationMethod.MinMax, extra_options={"WeightSymmetric": True})
    tidy(out / "digits_int8.onnx")
    for name in ("digits.onnx", "digits_int8.onnx"):
        path = out / name if (out / name).exists() else HERE / name
        print(f"{name}: {right(path, test_images, test_labels)} of {len(test_labels)} held-out images right")


if __name__ == "__main__":
    main()
