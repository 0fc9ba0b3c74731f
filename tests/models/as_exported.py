#!/usr/bin/env python3
"""Models as exporters and caches leave them: valid ones that once were refused. Each is compiled, run and held against onnxruntime without optimizations.

    as_exported.py --tilewright BUILD/tilewright [--only NAME,NAME]
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import unicodedata

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TOLERANCE = 2e-5   # of an output's range
MS = "com.microsoft"
CASES = {}
rng = np.random.default_rng(3)


def case(function):
    CASES[function.__name__] = function
    return function


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def model_of(nodes, inputs, outputs, weights=(), opset=17):
    """inputs: name -> (array, its dims); outputs: names, or name -> element type."""
    given = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), dims) for name, (array, dims) in inputs.items()]
    made = [helper.make_value_info(name, helper.make_tensor_type_proto(kind, None)) for name, kind in
            (outputs if isinstance(outputs, dict) else dict.fromkeys(outputs, TensorProto.FLOAT)).items()]
    graph = helper.make_graph(nodes, "g", given, made, [numpy_helper.from_array(array, name) for name, array in dict(weights).items()])
    domains = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid(MS, 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=9)


class Runs:
    def __init__(self, tilewright, folder):
        self.tilewright, self.folder = tilewright, folder

    def command(self, *words):
        return subprocess.run([self.tilewright, *map(str, words)], capture_output=True, text=True)

    def compile(self, model, *flags):
        """The library, or what is wrong."""
        path = model
        if isinstance(model, onnx.ModelProto):
            path = self.folder / "m.onnx"
            onnx.save(model, path)
        done = self.command("compile", path, "-t", "host", "-o", self.folder / "m.so", *flags)
        if done.returncode:
            raise AssertionError(f"compile exits with {done.returncode}: {done.stderr}")
        assert "this is a bug" not in done.stderr, done.stderr
        return self.folder / "m.so"

    def run(self, feeds, what="m.so"):
        np.savez(self.folder / "in.npz", **feeds)
        return self.command("run", self.folder / what, "--input", self.folder / "in.npz", "--output-dir", self.folder / "out")

    def check(self, model, feeds, *flags):
        """Compiled with these flags, it gives what onnxruntime gives."""
        self.compile(model, *flags)
        done = self.run(feeds)
        if done.returncode:
            raise AssertionError(f"run exits with {done.returncode}: {done.stderr}")
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        wanted = session.run(None, {name: feeds[name].astype(object) if feeds[name].dtype.kind == "U" else feeds[name] for name in feeds})
        for output, want in zip(session.get_outputs(), wanted):
            got = np.load(self.folder / "out" / f"{output.name}.npy")
            if got.shape != want.shape:
                raise AssertionError(f"{output.name} has shape {got.shape}, expected {want.shape}")
            if want.dtype == object:
                assert got.tolist() == want.tolist(), f"{output.name} is {got.tolist()}, expected {want.tolist()}"
            elif want.size:
                off = np.abs(got.astype(np.float64) - want).max()
                assert off <= TOLERANCE * max(np.abs(want).max(), 1), f"{output.name} is {off} off"


@case
def pads_of_free_sizes_that_may_cut(runs):
    """A pad of 4 - b is negative from b = 5 on, and then cuts."""
    for mode in ("constant", "edge"):
        nodes = [helper.make_node("Shape", ["x"], ["b"], start=0, end=1), helper.make_node("Sub", ["four", "b"], ["p"]),
                 helper.make_node("Concat", ["zero", "p", "zero", "one"], ["pads"], axis=0), helper.make_node("Pad", ["x", "pads"], ["y"], mode=mode)]
        weights = {"four": np.array([4]), "zero": np.array([0]), "one": np.array([1])}
        x = floats(3, 5)
        model = model_of(nodes, {"x": (x, ["b", 5])}, ["y"], weights)
        for rows in (3, 4, 6):
            runs.check(model, {"x": floats(rows, 5)})


@case
def data_location(runs):
    """onnxruntime's quantize_dynamic writes the default out."""
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (floats(1, 32), [1, 32])}, ["y"], {"w": floats(32, 64)})
    model.graph.initializer[0].data_location = TensorProto.DEFAULT
    runs.check(model, {"x": floats(1, 32)})


@case
def question_marks(runs):
    """Paddle's exporter calls every free dimension '?', or '-1'."""
    for name in ("?", "-1"):
        model = model_of([helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])], {"x": (floats(1), [name, 3, name, name])}, ["y"], {"w": floats(4, 3, 3, 3)})
        runs.check(model, {"x": floats(2, 3, 7, 9)})
        runs.check(model, {"x": floats(2, 3, 7, 9)}, "--dim", "x[2]=7")


@case
def stft(runs):
    """A signal without the axis for real and imaginary parts."""
    for dims in (["batch", "length"], [2, 64]):
        for window in ([], ["w"]):
            node = helper.make_node("STFT", ["x", "step", *(window or ["", "n"])], ["y"], onesided=1)
            model = model_of([node], {"x": (floats(1), dims)}, ["y"], {"step": np.array(8), "w": floats(16), "n": np.array(16)})
            runs.check(model, {"x": floats(2, 64)})


@case
def pools(runs):
    """Rounded up, a window may be larger than what it lies on."""
    for kind in ("MaxPool", "AveragePool"):
        for extents, kernel, strides, pads in (((2, 2), [3, 3], [2, 2], [0, 0, 0, 0]), ((1, 5), [3, 3], [3, 2], [0, 0, 0, 0]), ((1, 2), [4, 5], [4, 5], [0, 1, 0, 1])):
            node = helper.make_node(kind, ["x"], ["y"], kernel_shape=kernel, strides=strides, pads=pads, ceil_mode=1)
            for dims in ([1, 3, *extents], [1, 3, "H", "W"]):
                runs.check(model_of([node], {"x": (floats(1), dims)}, ["y"]), {"x": floats(1, 3, *extents)})


@case
def svm_probabilities(runs):
    for kernel, per in (("RBF", [3, 2]), ("RBF", [2, 4, 1, 3]), ("LINEAR", [3, 2, 2]), ("POLY", [1] * 12)):
        pairs, total = len(per) * (len(per) - 1) // 2, sum(per)
        for labels in ({"classlabels_ints": list(range(7, 7 + len(per)))}, {"classlabels_strings": [f"class {i}" for i in range(len(per))]}):
            node = helper.make_node("SVMClassifier", ["x"], ["label", "p"], domain="ai.onnx.ml", kernel_type=kernel, kernel_params=[0.3, 0.5, 2.0], vectors_per_class=per,
                                    support_vectors=floats(total * 5).tolist(), coefficients=floats((len(per) - 1) * total).tolist(), rho=floats(pairs).tolist(),
                                    prob_a=(-1 - rng.random(pairs)).tolist(), prob_b=(0.3 * floats(pairs)).tolist(), **labels)
            kinds = {"label": TensorProto.STRING if "classlabels_strings" in labels else TensorProto.INT64, "p": TensorProto.FLOAT}
            runs.check(model_of([node], {"x": (floats(1), ["n", 5])}, kinds), {"x": floats(9, 5)})


@case
def tokenizer(runs):
    """com.microsoft: by separators, by what a token is, by characters; with marks and pads."""
    texts = np.array([["a, b;c  d", "été;, x"], ["", "one"], ["ab12 cd34", ",,;"]])
    variants = [dict(separators=[""], mincharnum=1), dict(separators=[" ", ";"], mincharnum=1), dict(separators=["[ ,]+", ";"], mincharnum=2), dict(tokenexp="[a-z]+|[0-9]", mincharnum=1),
                dict(tokenexp="é|[a-z0-9]{2,}", mincharnum=2), dict(tokenexp=".", mincharnum=1), dict(separators=["zz"], mincharnum=1), dict(separators=["\\b"], mincharnum=1),
                dict(tokenexp="q", mincharnum=1)]
    for attributes in variants:
        for mark in (0, 1):
            node = helper.make_node("Tokenizer", ["x"], ["y"], domain=MS, mark=mark, pad_value="#", **attributes)
            given = helper.make_tensor_value_info("x", TensorProto.STRING, ["n", "m"])
            made = helper.make_tensor_value_info("y", TensorProto.STRING, None)
            model = helper.make_model(helper.make_graph([node], "g", [given], [made]), opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)], ir_version=9)
            try:
                runs.check(model, {"x": texts})
            except AssertionError as problem:
                raise AssertionError(f"{attributes}, mark={mark}: {problem}") from problem


@case
def empty_past(runs):
    """A decoder's first step: without limits the run says which flag allows it."""
    model = model_of([helper.make_node("Concat", ["past", "new"], ["y"], axis=1)], {"past": (floats(1), [1, "past", 4]), "new": (floats(1), [1, "s", 4])}, ["y"])
    feeds = {"past": floats(1, 0, 4), "new": floats(1, 3, 4)}
    runs.check(model, feeds, "--dim", "past=0..16")
    runs.check(model, feeds, "--dim", "past=0")
    runs.compile(model)
    done = runs.run(feeds)
    assert done.returncode and "--dim past=0..MOST" in done.stderr, done.stderr


def bytes_of(n, form, name, weights, scale, zero, axis):
    """Nodes that make floats of bytes: DequantizeLinear, or what it stands for. scale, zero: numbers, or one for each index of the axis."""
    shape = [-1 if i == axis else 1 for i in range(weights.ndim)]
    of = {f"{name}_w": weights, f"{name}_s": scale, f"{name}_z": zero}
    if form == "dequantize":
        of[f"{name}_z"] = zero.astype(weights.dtype)
        n.append(helper.make_node("DequantizeLinear", [f"{name}_w", f"{name}_s", f"{name}_z"], [name], axis=axis))
        return of
    of = {k: v.reshape(shape) if v.ndim == 1 else v for k, v in of.items()}
    n.append(helper.make_node("Cast", [f"{name}_w"], [f"{name}_c"], to=TensorProto.FLOAT))
    if form == "sub":
        n.append(helper.make_node("Sub", [f"{name}_c", f"{name}_z"], [f"{name}_d"]))
    n.append(helper.make_node("Mul", [f"{name}_d" if form == "sub" else f"{name}_c", f"{name}_s"], [name]))
    return of


@case
def byte_weights(runs):
    """Products read bytes where the library is to stay small, or has one row; the file is not of floats then."""
    for form, dtype, low, many in (("dequantize", np.int8, -128, True), ("dequantize", np.uint8, 0, False), ("sub", np.uint8, 0, True), ("sub", np.int8, -128, False), ("mul", np.int8, -128, True)):
        for layer, weights_shape, axis in (("MatMul", (192, 256), 1), ("Gemm", (256, 192), 0), ("Conv", (64, 96, 3, 3), 0)):
            weights, count = rng.integers(low, low + 256, weights_shape).astype(dtype), weights_shape[axis] if many else 1
            if form != "mul" and dtype == np.uint8:
                weights = np.clip(weights, 8, 247)
            zero = (np.full(count, 120.0) + np.arange(count) % 3 if dtype == np.uint8 else np.zeros(count)).astype(np.float32)
            scale = (rng.random(count) * 0.02 + 0.001).astype(np.float32)
            if count == 1:
                zero, scale = zero[0], scale[0]
            nodes = []
            constants = bytes_of(nodes, form, "f", weights, np.asarray(scale), np.asarray(zero), axis)
            bias = {"b": floats(weights_shape[0])} if layer != "MatMul" else {}
            nodes.append(helper.make_node(layer, ["x", "f", *bias], ["y"], **({"transB": 1} if layer == "Gemm" else {"pads": [1, 1, 1, 1]} if layer == "Conv" else {})))
            for rows in (1, 5):
                x = floats(1, 96, 5, rows + 2) if layer == "Conv" else floats(rows, 192)
                model = model_of(nodes, {"x": (x, list(x.shape))}, ["y"], constants | bias)
                for goal in ("size", "speed"):
                    try:
                        runs.check(model, {"x": x}, "--optimize", goal)
                    except AssertionError as problem:
                        raise AssertionError(f"{form} {np.dtype(dtype)} {layer} rows={rows} {goal}: {problem}") from problem
                    inside = json.loads(runs.command("inspect", runs.folder / "m.so", "--json").stdout)["manifest"]["memory"]["weights"]
                    kept = goal == "size" or (rows == 1 and layer != "Conv")
                    assert (inside < 1.3 * weights.nbytes + 8192) == kept, f"{form} {layer} rows={rows} {goal}: weights of {inside} bytes"


@case
def shared_weights(runs):
    """Two calls of one module, whose batch norms fold into equal weights, and branches that join the same products: each is there once."""
    names = ["s", "o", "m", "v"]
    nodes = []
    for i in "ab":
        nodes += [helper.make_node("Conv", [f"x{i}", "w"], [f"c{i}"], pads=[1, 1, 1, 1]), helper.make_node("BatchNormalization", [f"c{i}", *names], [f"y{i}"])]
    weights = {"w": floats(64, 64, 3, 3), "s": rng.random(64).astype(np.float32) + 0.5, "o": floats(64), "m": floats(64), "v": rng.random(64).astype(np.float32) + 0.5}
    feeds = {"xa": floats(1, 64, 8, 8), "xb": floats(1, 64, 8, 8)}
    model = model_of(nodes, {name: (x, list(x.shape)) for name, x in feeds.items()}, ["ya", "yb"], weights)
    runs.check(model, feeds, "--optimize", "size")
    inside = json.loads(runs.command("inspect", runs.folder / "m.so", "--json").stdout)["manifest"]["memory"]["weights"]
    assert inside < 1.1 * weights["w"].nbytes, f"weights of {inside} bytes"


@case
def links_of_a_cache(runs):
    """Model and data are links into one folder, as in Hugging Face's cache."""
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (floats(1, 64), [1, 64])}, ["y"], {"w": floats(64, 64)})
    plain, tree, blobs = runs.folder / "plain", runs.folder / "cache/snapshots/1", runs.folder / "cache/blobs"
    for folder in (plain, tree, blobs):
        folder.mkdir(parents=True)
    onnx.save(model, plain / "model.onnx", save_as_external_data=True, location="model.onnx_data", size_threshold=0)
    for i, name in enumerate(("model.onnx", "model.onnx_data")):
        (plain / name).rename(blobs / str(i))
        (tree / name).symlink_to(f"../../blobs/{i}")
    for command in ("inspect", "compile"):
        done = runs.command(command, tree / "model.onnx", *(["-o", runs.folder / "m.so"] if command == "compile" else ["--json"]))
        assert done.returncode == 0, done.stderr
    assert json.loads(runs.command("inspect", tree / "model.onnx", "--json").stdout)
    (tree / "model.onnx_data").unlink()
    (runs.folder / "secret").write_bytes((blobs / "1").read_bytes())
    (tree / "model.onnx_data").symlink_to("../../../secret")
    done = runs.command("compile", tree / "model.onnx", "-o", runs.folder / "m.so")
    assert done.returncode == 1 and "links are not followed" in done.stderr, done.stderr


@case
def all_boxes(runs):
    """Exporters ask NonMaxSuppression for the largest integer of boxes, of as many as a mask has kept."""
    nodes = [helper.make_node("Compress", ["x", "kept"], ["boxes"], axis=1), helper.make_node("Compress", ["s", "kept"], ["scores"], axis=2),
             helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "limit"], ["y"])]
    for most in (2**63 - 1, 3, 0):
        model = model_of(nodes, {"x": (floats(1), [1, "n", 4]), "s": (floats(1), [1, 2, "n"]), "kept": (np.array([True]), ["n"])}, {"y": TensorProto.INT64},
                         {"most": np.array([most]), "limit": np.array([0.5], np.float32)})
        runs.check(model, {"x": rng.random((1, 9, 4)).astype(np.float32), "s": rng.random((1, 2, 9)).astype(np.float32), "kept": np.arange(9) % 3 > 0})


@case
def scores_of_bytes(runs):
    """An attention's scores in bytes, of a free batch and a free length: two free extents around what an instruction multiplies."""
    nodes, scales = [], {"s": np.float32(0.02), "z": np.uint8(128), "ys": np.float32(0.05)}

    def pair(name, scale):
        nodes.extend([helper.make_node("QuantizeLinear", [name, scale, "z"], [name + "q"]), helper.make_node("DequantizeLinear", [name + "q", scale, "z"], [name + "d"])])
        return name + "d"
    keys = helper.make_node("Transpose", [pair("k", "s")], ["kt"], perm=[0, 1, 3, 2])
    nodes.extend([keys, helper.make_node("MatMul", [pair("q", "s"), "kt"], ["p"])])
    nodes.append(helper.make_node("Identity", [pair("p", "ys")], ["y"]))
    dims = ["n", 4, "l", 12]
    model = model_of(nodes, {"q": (floats(1), dims), "k": (floats(1), dims)}, ["y"], scales)
    small = {name: np.round(floats(2, 4, 9, 12) / 4, 2) for name in "qk"}
    runs.check(model, small)


@case
def strings_of_two_lengths(runs):
    """Texts joined with as many others as the model holds."""
    model = model_of([helper.make_node("StringConcat", ["x", "w"], ["y"])], {"x": (np.array([1]), ["n"])}, {"y": TensorProto.STRING}, opset=20)
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.STRING, [3], [b"a", b"", b"c"]))
    runs.check(model, {"x": np.array(["1", "2", "3"])})


@case
def batch_of_one(runs):
    """An inner shape has the batch as 1: the compiler says so, and a run of two ends."""
    model = model_of([helper.make_node("Reshape", ["x", "shape"], ["y"], name="r")], {"x": (floats(1), ["batch", 64])}, ["y"], {"shape": np.array([1, 8, 8])})
    runs.check(model, {"x": floats(1, 64)})
    onnx.save(model, runs.folder / "m.onnx")
    for command in (("inspect", runs.folder / "m.onnx"), ("compile", runs.folder / "m.onnx", "-o", runs.folder / "m.so")):
        done = runs.command(*command)
        assert "the free dimension 'batch' can be 1 alone: r (Reshape) needs it" in done.stdout + done.stderr, done
    done = runs.run({"x": floats(2, 64)})
    assert done.returncode and "the shape is [2, 64]" in done.stderr and "the model takes f32[1, 64]" in done.stderr, done.stderr


@case
def one_of_two_batches(runs):
    """Sizes that meet are equal unless one is said to be 1: it repeats, and the other one stays free."""
    add = helper.make_node("Add", ["a", "b"], ["y"])
    for flag, name in (("n=1", "n"), ("m=1", "m"), ("b[0]=1", "m")):
        model = model_of([add], {"a": (floats(1), ["n", 8]), "b": (floats(1), ["m", 8])}, ["y"])
        for rows in (1, 5):
            runs.check(model, {"a": floats(1 if name == "n" else rows, 8), "b": floats(1 if name == "m" else rows, 8)}, "--dim", flag)
    runs.compile(model)
    assert "the shape is [1, 8], but n is 5 already" in runs.run({"a": floats(5, 8), "b": floats(1, 8)}).stderr


@case
def sizes_of_one_number(runs):
    """A number of elements fixes all its factors, in a region too: where that runs."""
    def warned(model, *texts):
        onnx.save(model, runs.folder / "m.onnx")
        for command in (("inspect", runs.folder / "m.onnx"), ("compile", runs.folder / "m.onnx", "-o", runs.folder / "m.so")):
            done = runs.command(*command)
            found = sorted(line for line in (done.stdout + done.stderr).splitlines() if " alone" in line)
            assert found == sorted(f"warning: the free dimension {text}" for text in texts), (command, found, done)
        return model

    reshape = helper.make_node("Reshape", ["x", "shape"], ["y"], name="r")
    flat = warned(model_of([reshape], {"x": (floats(1), ["batch", "seq", 8])}, ["y"], {"shape": np.array([1, 8])}),
                  "'batch' can be 1 alone: r (Reshape) needs it", "'seq' can be 1 alone: r (Reshape) needs it")
    runs.check(flat, {"x": floats(1, 1, 8)})
    assert "r (Reshape) needs" in runs.run({"x": floats(2, 1, 8)}).stderr
    warned(model_of([reshape], {"x": (floats(1), ["a", "b"])}, ["y"], {"shape": np.array([1, 9])}))   # 1 * 9 or 3 * 3

    shapes = {"shape": np.array([1, 8, 8]), "back": np.array([1, 64]), "five": np.array(5)}
    bodies = [helper.make_graph(nodes, name, [], [helper.make_value_info("b", helper.make_tensor_type_proto(TensorProto.FLOAT, None))]) for name, nodes in
              (("yes", [helper.make_node("Reshape", ["x", "shape"], ["s"], name="r"), helper.make_node("Exp", ["s"], ["e"]), helper.make_node("Reshape", ["e", "back"], ["b"])]),
               ("no", [helper.make_node("Neg", ["x"], ["b"])]))]
    branched = warned(model_of([helper.make_node("If", ["c"], ["y"], name="i", then_branch=bodies[0], else_branch=bodies[1])],
                               {"c": (np.array(True), []), "x": (floats(1), ["batch", 64])}, ["y"], shapes),
                      "'batch' can be 1 alone where a branch of i (If) runs: r (Reshape) needs it")
    assert "check   r (Reshape) needs batch * 64 == 64 where a branch of i (If) runs" in runs.command("inspect", runs.folder / "m.onnx").stdout
    for taken, rows in ((True, 1), (False, 1), (False, 3)):
        runs.check(branched, {"c": np.array(taken), "x": floats(rows, 64)})
    assert "needs batch * 64 == 64: 192 against 64" in runs.run({"c": np.array(True), "x": floats(3, 64)}).stderr

    state = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in
             (("n", TensorProto.INT64, []), ("go", TensorProto.BOOL, []), ("t", TensorProto.FLOAT, [1, 64]))]
    made = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in (("went", TensorProto.BOOL, []), ("u", TensorProto.FLOAT, [1, 64]))]
    body = helper.make_graph([helper.make_node("Identity", ["go"], ["went"]), helper.make_node("Reshape", ["x", "back"], ["s"], name="r"), helper.make_node("Add", ["t", "s"], ["u"])], "b", state, made)
    looped = warned(model_of([helper.make_node("Loop", ["k", "", "z"], ["y"], name="l", body=body)],
                             {"k": (np.array(3), []), "x": (floats(1), ["batch", 64]), "z": (floats(1, 64), [1, 64])}, ["y"], shapes),
                    "'batch' can be 1 alone where the body of l (Loop) runs: r (Reshape) needs it")
    runs.check(looped, {"k": np.array(3), "x": floats(1, 64), "z": floats(1, 64)})


@case
def branch_sizes_without_limit(runs):
    """A branch whose data decide how large its output is, without a limit that is known around it: a range, a shape, beside a constant or another such branch."""
    def branch(name, nodes, kind):
        return helper.make_graph(nodes, name, [], [helper.make_value_info("b", helper.make_tensor_type_proto(kind, None))])

    weights = {"zero": np.array(0), "one": np.array(1), "two": np.array(2), "three": np.array([1, 2, 3]), "at": np.array([0])}
    counted = [helper.make_node("Range", ["zero", "k", "one"], ["b"])]
    spread = [helper.make_node("Mul", ["k", "two"], ["k2"]), helper.make_node("Range", ["zero", "k2", "one"], ["r"]), helper.make_node("Mul", ["r", "r"], ["b"])]
    plain = [helper.make_node("Identity", ["three"], ["b"])]
    for yes, no in ((counted, plain), (plain, spread), (counted, spread)):
        choice = helper.make_node("If", ["c"], ["t"], name="i", then_branch=branch("yes", yes, TensorProto.INT64), else_branch=branch("no", no, TensorProto.INT64))
        model = model_of([choice, helper.make_node("Add", ["t", "one"], ["y"])], {"c": (np.array(True), []), "k": (np.array(3), [])}, {"y": TensorProto.INT64}, weights)
        for taken in (True, False):
            for k in (5, 0, 1000):
                runs.check(model, {"c": np.array(taken), "k": np.array(k)})
    table = [helper.make_node("Unsqueeze", ["k", "at"], ["k1"]), helper.make_node("Concat", ["k1", "k1"], ["s"], axis=0), helper.make_node("Expand", ["f", "s"], ["b"])]
    whole = [helper.make_node("Identity", ["x"], ["b"])]
    choice = helper.make_node("If", ["c"], ["y"], name="i", then_branch=branch("yes", table, TensorProto.FLOAT), else_branch=branch("no", whole, TensorProto.FLOAT))
    model = model_of([choice], {"c": (np.array(True), []), "k": (np.array(3), []), "x": (floats(1), ["n", 4])}, ["y"], weights | {"f": np.float32([2.5])})
    for taken in (True, False):
        runs.check(model, {"c": np.array(taken), "k": np.array(7), "x": floats(3, 4)})


@case
def branch_that_fits_no_run(runs):
    """Beside one whose data decide the size of its output, with a limit or without: a run that takes it ends, and the warning is there once."""
    def branch(name, nodes):
        return helper.make_graph(nodes, name, [], [helper.make_value_info("b", helper.make_tensor_type_proto(TensorProto.INT64, None))])

    misfit = branch("yes", [helper.make_node("Reshape", ["x", "five"], ["q"], name="r"), helper.make_node("Cast", ["q"], ["b"], to=TensorProto.INT64)])
    for nodes in ([helper.make_node("Range", ["zero", "k", "one"], ["b"])],
                  [helper.make_node("NonZero", ["x"], ["found"]), helper.make_node("Reshape", ["found", "all"], ["b"])]):
        choice = helper.make_node("If", ["c"], ["y"], name="i", then_branch=misfit, else_branch=branch("no", nodes))
        model = model_of([choice], {"c": (np.array(True), []), "k": (np.array(3), []), "x": (floats(3, 4), [3, 4])}, {"y": TensorProto.INT64},
                         {"zero": np.array(0), "one": np.array(1), "five": np.array([5]), "all": np.array([-1])})
        feeds = {"c": np.array(False), "k": np.array(4), "x": floats(3, 4)}
        runs.check(model, feeds)
        done = runs.run(feeds | {"c": np.array(True)})
        assert done.returncode and "then_branch does not fit these sizes" in done.stderr, done
        assert runs.command("inspect", runs.folder / "m.onnx").stdout.count("warning: ") == 1


@case
def sizes_divided(runs):
    """torch.export writes a size as (n * s) / n."""
    nodes = [helper.make_node("Shape", ["x"], ["n"], start=0, end=1), helper.make_node("Size", ["x"], ["all"]), helper.make_node("Div", ["all", "n"], ["s"]),
             helper.make_node("Squeeze", ["s"], ["end"]), helper.make_node("Range", ["z", "end", "o"], ["r"]), helper.make_node("Cast", ["r"], ["f"], to=TensorProto.FLOAT),
             helper.make_node("Mul", ["f", "x"], ["y"])]
    runs.check(model_of(nodes, {"x": (floats(1), ["n", "s"])}, ["y"], {"z": np.array(0), "o": np.array(1)}), {"x": floats(3, 5)})


@case
def expanded_before_it_is_known(runs):
    """An Expand to an extent of data, which a product later needs to be one of the inputs'."""
    nodes = [helper.make_node("Range", ["z", "k", "o"], ["r"]), helper.make_node("Cast", ["r"], ["f"], to=TensorProto.FLOAT), helper.make_node("Reshape", ["m", "minus"], ["to"]),
             helper.make_node("Expand", ["f", "to"], ["e"]), helper.make_node("MatMul", ["x", "e"], ["y"])]
    model = model_of(nodes, {"x": (floats(1), ["n", "s"]), "k": (np.array(1), []), "m": (np.array(1), [])}, ["y"], {"z": np.array(0), "o": np.array(1), "minus": np.array([-1])})
    runs.check(model, {"x": floats(3, 5), "k": np.array(5), "m": np.array(5)})
    done = runs.run({"x": floats(3, 5), "k": np.array(5), "m": np.array(4)})
    assert done.returncode, done.stderr


def loop_model(nodes, outputs, weights):
    """A loop over the rows of x with a number for each in k; outputs: the body's behind the condition."""
    around = [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, [])]
    made = [helper.make_value_info(name, helper.make_tensor_type_proto(kind, None)) for name, kind in outputs.items()]
    body = helper.make_graph([helper.make_node("Gather", ["x", "i"], ["row"]), helper.make_node("Gather", ["k", "i"], ["count"]), helper.make_node("Identity", ["go"], ["on"]), *nodes], "body",
                             around, [helper.make_tensor_value_info("on", TensorProto.BOOL, []), *made])
    nodes = [helper.make_node("Shape", ["k"], ["trip"]), helper.make_node("Loop", ["trip", ""], [f"{name}_all" for name in outputs], body=body)]
    return model_of(nodes, {"x": (floats(1), ["n", "w"]), "k": (np.array([1]), ["n"])}, {f"{name}_all": kind for name, kind in outputs.items()}, weights)


@case
def rows_of_computed_size(runs):
    """What a loop stacks has one size in every iteration; its body may compute that. A run of two sizes ends."""
    zero, one = np.array([0]), np.array([1])
    weights = {"zero": zero, "one": one, "z": np.array(0), "o": np.array(1), "minus": np.array([-1])}
    parts = [helper.make_node("Reshape", ["count", "minus"], ["end"]), helper.make_node("Slice", ["row", "zero", "end"], ["part"]),
             helper.make_node("Range", ["z", "count", "o"], ["many"]), helper.make_node("Cast", ["many"], ["wide"], to=TensorProto.FLOAT), helper.make_node("Mul", ["wide", "wide"], ["squares"])]
    model = loop_model(parts, {"part": TensorProto.FLOAT, "squares": TensorProto.FLOAT}, weights)
    for n, count in ((3, 4), (1, 2), (5, 0)):
        runs.check(model, {"x": floats(n, 6), "k": np.full(n, count)})
    for what in ("m.so", "m.onnx"):
        done = runs.run({"x": floats(3, 6), "k": np.array([4, 3, 4])}, what)
        assert done.returncode and "is 3, expected 4" in done.stderr, (what, done.stderr)


@case
def windows_of_the_iteration(runs):
    """Rows whose size is made of the iteration's number: a window that slides, and a size that changes, which ends a run."""
    weights = {"first": np.array([0]), "two": np.array([2])}
    window = [helper.make_node("Unsqueeze", ["i", "first"], ["from"]), helper.make_node("Add", ["from", "two"], ["to"]), helper.make_node("Slice", ["row", "from", "to"], ["part"])]
    model = loop_model(window, {"part": TensorProto.FLOAT}, weights)
    for n, w in ((3, 6), (1, 2), (4, 5)):
        runs.check(model, {"x": floats(n, w), "k": np.ones(n, np.int64)})
    for what in ("m.so", "m.onnx"):
        done = runs.run({"x": floats(4, 4), "k": np.ones(4, np.int64)}, what)   # the last window is cut off
        assert done.returncode and "part_all" in done.stderr, (what, done.stderr)
    growing = [helper.make_node("Unsqueeze", ["i", "first"], ["shape"]), helper.make_node("ConstantOfShape", ["shape"], ["zeros"])]
    model = loop_model(growing, {"zeros": TensorProto.FLOAT}, weights)
    runs.check(model, {"x": floats(1, 3), "k": np.array([1])})
    for what in ("m.so", "m.onnx"):
        assert runs.run({"x": floats(2, 3), "k": np.array([1, 1])}, what).returncode, what


@case
def limits_that_nothing_fits(runs):
    """A dimension that the model needs to be 1, where --dim says that it is more."""
    model = model_of([helper.make_node("Reshape", ["x", "s"], ["y"])], {"x": (floats(1, 4), ["batch", 4])}, ["y"], {"s": np.array([1, 4])})
    onnx.save(model, runs.folder / "m.onnx")
    done = runs.command("compile", runs.folder / "m.onnx", "-o", runs.folder / "none.so", "--dim", "batch=2..8")
    assert done.returncode and "needs batch * 4 == 4" in done.stderr, done.stderr
    runs.compile(model, "--dim", "batch=1..8")


@case
def letters_of_two_cases(runs):
    """All letters of Unicode 14 whose other case is one letter of as many bytes."""
    letters = [chr(code) for code in range(0x80, 0x1F000) if unicodedata.category(chr(code)) in ("Lu", "Ll", "Lt")]
    for action, change in (("LOWER", str.lower), ("UPPER", str.upper)):
        alike = [c for c in letters if len(change(c)) == 1 and len(change(c).encode()) == len(c.encode())]
        texts = np.array(["a".join(alike[i:i + 50]) for i in range(0, len(alike), 50)])
        model = helper.make_model(helper.make_graph([helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action=action)], "g",
                                                    [helper.make_tensor_value_info("x", TensorProto.STRING, ["n"])], [helper.make_tensor_value_info("y", TensorProto.STRING, ["n"])]),
                                  ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
        runs.compile(model)
        done = runs.run({"x": texts})
        assert done.returncode == 0, done.stderr
        assert np.load(runs.folder / "out/y.npy").tolist() == [change(text) for text in texts.tolist()], action


@case
def values_without_limit_in_a_body(runs):
    """Inside of a body: as many elements as data say, for which nobody knows a limit before."""
    weights = {"z": np.array(0), "o": np.array(1), "first": np.array([0]), "w": floats(1, 1, 3)}
    nodes = [helper.make_node("Mul", ["count", "count"], ["square"]), helper.make_node("Range", ["z", "square", "o"], ["many"]), helper.make_node("Cast", ["many"], ["wide"], to=TensorProto.FLOAT),
             helper.make_node("ReduceMean", ["row"], ["mean"], keepdims=0), helper.make_node("Mul", ["wide", "mean"], ["scaled"]), helper.make_node("Unsqueeze", ["scaled", "first"], ["map"]),
             helper.make_node("Unsqueeze", ["map", "first"], ["maps"]), helper.make_node("Conv", ["maps", "w"], ["c"], pads=[1, 1]), helper.make_node("ReduceSum", ["c"], ["sum"], keepdims=0)]
    model = loop_model(nodes, {"sum": TensorProto.FLOAT}, weights)
    runs.check(model, {"x": floats(4, 3), "k": np.array([2, 9, 1, 30])})
    runs.check(model, {"x": floats(4, 3), "k": np.array([2, 9, 1, 30])}, "--dim", "n=4")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    chosen = args.only.split(",") if args.only else list(CASES)
    wrong = 0
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            try:
                CASES[name](Runs(args.tilewright.resolve(), pathlib.Path(folder)))
            except AssertionError as problem:
                wrong += 1
                print(f"{name}: {problem}")
    print(f"{len(chosen)} kinds, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
