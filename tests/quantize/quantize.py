#!/usr/bin/env python3
"""Quantizes models with `tilewright quantize` and checks what comes out: how many digits are still right, that onnxruntime gives
the same as the compiled file, budgets, refusals, weights alone. `--only yolox` asks how many boxes of yolox_nano stay, where
../shared/models is. It takes a minute and more, and is not among those that run without --only.

    quantize.py --tilewright BUILD/tilewright [--only NAME,...]
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SHARED = ROOT.parent / "shared" / "models" / "real"
DIGITS = ROOT / "examples/digits/digits.onnx"
LETTERBOX = "{images: {fit: letterbox, fill: 114, channels: bgr}}"


class Program:
    def __init__(self, path, work):
        self.path, self.work = pathlib.Path(path).resolve(), work

    def __call__(self, *words, status=0):
        done = subprocess.run([self.path, *map(str, words), "--json"], cwd=self.work, capture_output=True, text=True)
        assert done.returncode == status, f"{words}: {done.returncode}, {done.stdout}{done.stderr}"
        return json.loads(done.stdout)

    def quantize(self, model, output, *words, status=0):
        return self("quantize", model, "-o", self.work / output, *words, status=status)

    def compiled(self, model):
        """A function from an input to the first output, by the compiled model."""
        self("compile", model, "-o", self.work / "m.so")
        name = onnx.load(model).graph.input[0].name

        def run(x):
            np.save(self.work / "x.npy", x)
            self("run", "m.so", "--input", f"{name}=x.npy", "--output-dir", "out")
            return np.load(next((self.work / "out").glob("*.npy")))
        return run


def session(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    made = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return lambda x: made.run(None, {made.get_inputs()[0].name: x})[0]


def kinds(model):
    return [node.op_type for node in onnx.load(model).graph.node]


def digits(tw):
    images = np.load(ROOT / "examples/digits/test_images.npy")
    labels = np.load(ROOT / "examples/digits/test_labels.npy")
    data = tw.work / "data"
    data.mkdir()
    np.save(data / "images.npy", images[:180])
    right = lambda run: sum(int(run(x[None]).argmax()) == y for x, y in zip(images, labels))
    before = right(session(DIGITS))
    ways = {"minmax": (), "percentile": ("--method", "percentile"), "entropy": ("--method", "entropy"),
            "mse": ("--method", "mse"), "plain": ("--plain",),
            "signed": ("--activations", "i8"), "refined": ("--equalize", "--weight-bits", 7)}
    for way, words in ways.items():
        path = tw.work / f"{way}.onnx"
        report = tw.quantize(DIGITS, path, "--data", data, *words)
        assert report["error"] < 0.03, f"{way}: error {report['error']}"
        assert report["samples"] == 180 and all(not layer["floats"] for layer in report["layers"])
        onnx.checker.check_model(str(path), full_check=True)
        assert kinds(path).count("QuantizeLinear") >= 5 and "BatchNormalization" not in kinds(path)
        run, other = tw.compiled(path), session(path)
        after = right(other)
        assert abs(after - before) / len(labels) <= 0.003, f"{way}: {after} of {len(labels)} right, {before} in floats"
        worst = max(float(np.abs(run(x[None]) - other(x[None])).max()) for x in images[::30])
        spread = float(np.ptp(other(images[:1])))
        assert worst <= 1e-5 * spread, f"{way}: {worst} away from onnxruntime"
        print(f"digits {way}: {after} of {len(labels)} right ({before} in floats), error {report['error']:.5f}, "
              f"{worst:.2g} away from onnxruntime")


def budget(tw):
    data = tw.work / "data"
    data.mkdir(exist_ok=True)
    np.save(data / "images.npy", np.load(ROOT / "examples/digits/test_images.npy")[:40])
    whole = tw.quantize(DIGITS, "whole.onnx", "--data", data, "--layers")
    assert all(layer["error"] is not None for layer in whole["layers"])
    part = tw.quantize(DIGITS, "part.onnx", "--data", data, "--max-error", whole["error"] * 0.8)
    floats = sum(layer["floats"] for layer in part["layers"])
    assert 0 < floats < len(part["layers"]) and part["error"] <= whole["error"] * 0.8
    refused = tw.quantize(DIGITS, "none.onnx", "--data", data, "--max-error", "0", status=7)
    assert "alone" in refused["error"][0]["notes"][0] and not (tw.work / "none.onnx").exists()
    refused = tw.quantize(DIGITS, "none.onnx", status=1)
    assert "--data" in refused["error"][0]["message"]
    print(f"budget: error {whole['error']:.5f}, with {floats} layers in floats {part['error']:.5f}")


def weights_only(tw):
    random = np.random.default_rng(0)
    w = random.standard_normal((80, 48), dtype=np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 80])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 48])], [numpy_helper.from_array(w, "w")])
    path = tw.work / "w.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    x = random.standard_normal((2, 80), dtype=np.float32)
    for bits, most in ((2, 0.7), (4, 0.15), (8, 0.01)):
        output = tw.work / f"w{bits}.onnx"
        assert tw.quantize(path, output, "--weights-only", "--bits", bits)["matrices"] == 1
        got, other = tw.compiled(output)(x), session(output)(x)
        error = float(np.sqrt(((other - x @ w) ** 2).mean() / ((x @ w) ** 2).mean()))
        assert np.allclose(got, other, atol=1e-4) and error < most, f"{bits} bits: {error}"
        print(f"weights of {bits} bits: error {error:.4f}")


def language(kind=np.float32):
    """A table, a product, a Gemm with a bias, and products inside of an If."""
    random = np.random.default_rng(5)
    f = lambda name, *shape: numpy_helper.from_array((random.standard_normal(shape) + 0.7).astype(kind), name)
    real = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    branch = lambda name, w: helper.make_graph([helper.make_node("MatMul", ["b", w], [name])], name, [], [helper.make_tensor_value_info(name, real, None)])
    nodes = [helper.make_node("Gather", ["table", "ids"], ["x"]), helper.make_node("MatMul", ["x", "w"], ["a"]),
             helper.make_node("Gemm", ["a", "v", "bias"], ["b"], transB=1),
             helper.make_node("If", ["flag"], ["y"], then_branch=branch("t", "u"), else_branch=branch("e", "w2"))]
    values = [helper.make_tensor_value_info("ids", TensorProto.INT64, [3]), helper.make_tensor_value_info("flag", TensorProto.BOOL, [])]
    weights = [f("table", 50, 64), f("w", 64, 40), f("v", 48, 40), f("bias", 48), f("u", 48, 8), f("w2", 48, 8)]
    graph = helper.make_graph(nodes, "g", values, [helper.make_tensor_value_info("y", real, [3, 8])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def weights_of_language(tw):
    path, outside, half = (tw.work / name for name in ("language.onnx", "outside.onnx", "half.onnx"))
    onnx.save(language(), path)
    onnx.save(language(), outside, save_as_external_data=True, location="outside.bin", size_threshold=0)
    onnx.save(language(np.float16), half)
    np.save(tw.work / "ids.npy", np.array([3, 49, 0]))
    np.save(tw.work / "flag.npy", np.array(True))
    exact = onnxruntime.InferenceSession(str(path)).run(None, {"ids": np.array([3, 49, 0]), "flag": np.array(True)})[0]

    def run(model):
        tw("compile", model, "-o", "m.so")
        tw("run", "m.so", "--input", "ids=ids.npy", "--input", "flag=flag.npy", "--output-dir", "out")
        return np.load(tw.work / "out" / "y.npy").astype(np.float32)
    spread = float(np.abs(exact).max())
    for bits, words, most in ((8, (), 0.002), (4, (), 0.02), (4, ("--asymmetric",), 0.02), (8, ("--asymmetric",), 0.002)):
        output = tw.work / "packed.onnx"
        report = tw.quantize(path, output, "--weights-only", "--bits", bits, "--block", 16, *words)
        assert (report["matrices"], report["tables"], report["inside"]) == (2, 1, 2), report
        other = onnxruntime.InferenceSession(str(output)).run(None, {"ids": np.array([3, 49, 0]), "flag": np.array(True)})[0]
        error = float(np.abs(other - exact).max()) / spread
        assert np.allclose(run(output), other, atol=1e-5 * spread) and error < most, f"{bits} bits {words}: {error}"
        tw.quantize(outside, tw.work / "inside.onnx", "--weights-only", "--bits", bits, "--block", 16, *words)
        assert (tw.work / "inside.onnx").read_bytes() == output.read_bytes(), "weights in another file make another model"
        tw.quantize(half, tw.work / "half_packed.onnx", "--weights-only", "--bits", bits, "--block", 16, *words)
        apart = float(np.abs(run(tw.work / "half_packed.onnx") - other).max()) / spread
        assert apart < 0.01, f"{bits} bits of f16: {apart}"
        print(f"language of {bits} bits {' '.join(words)}: error {error:.4f}, of f16 {apart:.4f} away")
    report = tw.quantize(half, tw.work / "half_int8.onnx", "--random", 4)
    assert report["widened"] and onnx.load(tw.work / "half_int8.onnx").graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT


def boxes(raw):
    """Of one picture's output of yolox_nano: [x1, y1, x2, y2, score, class], the overlapping ones of a class left out."""
    grid, strides = [], []
    for stride in (8, 16, 32):
        ys, xs = np.mgrid[:416 // stride, :416 // stride]
        grid.append(np.stack([xs, ys], 2).reshape(-1, 2))
        strides.append(np.full((grid[-1].shape[0], 1), stride))
    grid, strides = np.concatenate(grid), np.concatenate(strides)
    centre, size = (raw[0, :, :2] + grid) * strides, np.exp(raw[0, :, 2:4]) * strides
    scores = raw[0, :, 4:5] * raw[0, :, 5:]
    kind, score = scores.argmax(1), scores.max(1)
    all_boxes = np.concatenate([centre - size / 2, centre + size / 2, score[:, None], kind[:, None]], 1)[score > 0.3]
    kept = []
    for box in all_boxes[np.argsort(-all_boxes[:, 4])]:
        if all(other[5] != box[5] or overlap(other, box) < 0.45 for other in kept):
            kept.append(box)
    return kept


def overlap(a, b):
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:4], b[2:4])
    common = np.prod(np.maximum(high - low, 0))
    return common / (np.prod(a[2:4] - a[:2]) + np.prod(b[2:4] - b[:2]) - common)


def letterbox(path):
    from PIL import Image
    picture = Image.open(path).convert("RGB")
    ratio = min(416 / picture.height, 416 / picture.width)
    size = int(picture.width * ratio), int(picture.height * ratio)
    frame = np.full((416, 416, 3), 114, np.float32)
    frame[:size[1], :size[0]] = np.asarray(picture.resize(size, Image.BILINEAR))[:, :, ::-1]
    return np.ascontiguousarray(frame.transpose(2, 0, 1)[None])


def yolox(tw):
    if not SHARED.is_dir():
        print("yolox: left out, ../shared/models is not there")
        return
    pictures = sorted((SHARED / "images").glob("coco_*.jpg"))
    data = tw.work / "pictures"
    data.mkdir()
    for picture in pictures[::2]:
        (data / picture.name).symlink_to(picture)
    path = tw.work / "yolox_int8.onnx"
    report = tw.quantize(SHARED / "yolox_nano.onnx", path, "--data", data, "--inputs", LETTERBOX, "--method", "percentile",
                         "--percentile", "99.99", "--max-error", "0.14")
    floats, integers = session(SHARED / "yolox_nano.onnx"), session(path)
    kept = total = 0
    for picture in pictures[1::2]:
        x = letterbox(picture)
        found = boxes(integers(x))
        for box in boxes(floats(x)):
            total += 1
            kept += any(other[5] == box[5] and overlap(other, box) >= 0.5 for other in found)
    x = letterbox(pictures[1])
    ours, other = tw.compiled(path)(x), integers(x)
    off = float(np.abs(ours - other).max() / np.ptp(other))
    print(f"yolox: {kept} of {total} boxes kept, error {report['error']:.4f}, "
          f"{sum(layer['floats'] for layer in report['layers'])} layers in floats, {off:.2g} of the range away from onnxruntime")
    assert kept >= 0.95 * total


CASES = {"digits": digits, "budget": budget, "weights_only": weights_only, "weights_of_language": weights_of_language, "yolox": yolox}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("--only", default="digits,budget,weights_only,weights_of_language")
    arguments = parser.parse_args()
    for name in arguments.only.split(","):
        with tempfile.TemporaryDirectory() as work:
            CASES[name](Program(arguments.tilewright, pathlib.Path(work)))


if __name__ == "__main__":
    sys.exit(main())
