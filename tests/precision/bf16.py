#!/usr/bin/env python3
"""Compiles small models with --precision bf16 and compares them with the same models in f64.

Of one product or convolution, weights and inputs are numbers that bf16 holds: nothing is rounded but the sums, so that the result must be as near as f32's.
By Winograd's algorithm, F(2x2), that holds of small integers, which it makes no others of; of larger tiles and other numbers its transforms are rounded.
A network of several layers with residuals, and attention, are held to the rounding of bf16. Without the instruction, and in f16, weights alone are short. The
code must have the instruction; it runs where this machine has it, and for AArch64 under qemu, beside onnxruntime in f32.

    bf16.py --tilewright BUILD/tilewright
"""
import argparse
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "models"))
from run import Runner, quiet  # noqa: E402

TARGET = "znver4"
INSTRUCTION = "vdpbf16ps"
ARM = {"neoverse-v1": r"\bbfmmla\b|\bbfdot\b"}
SUMS = 1e-5       # of an output's range, where operands are exact
NETWORK = 1e-2    # of an output's range, where they are rounded
STORED = {"fp16": 1e-3, "bf16": 1e-2}   # of an output's range, where weights alone are
# rows, depth, columns: one row, ragged panels, odd depths, several batches, a free number of them
PRODUCTS = [((1,), 64, 48), ((7,), 32, 20), ((33,), 35, 64), ((2, 9), 130, 17), ((64,), 256, 128), (("n", 9), 64, 48)]
# channels in, out, kernel, stride, padding, rows and columns
CONVOLUTIONS = [(32, 64, 1, 1, 0, 9), (64, 32, 1, 2, 0, 13), (16, 48, 3, 1, 1, 11), (32, 16, 3, 2, 1, 14), (3, 32, 7, 2, 3, 31), (20, 24, 1, 1, 0, 7),
                (48, 32, 3, 1, 0, 8), (24, 32, 3, 1, 1, 6)]
# channels in, out, stride, padding, rows and columns of 3x3 convolutions: cut tiles, channels that fill no block
WINOGRAD = [(16, 48, 1, 1, 11), (24, 40, 1, 1, 6), (64, 32, 1, 0, 9), (32, 16, 2, 1, 14), (20, 24, 1, 1, 3)]
TILES = {"winograd_f2": 8e-3, "winograd_f4": 1e-1}   # of an output's range: two roundings of each operand, as the algorithm enlarges them
ATTENTION = 2e-2  # of an output's range: the weights of the softmax are rounded
# heads, queries, keys in a cache, depth, whether a mask is causal: whole and ragged panels, an odd depth
ATTENTIONS = [(2, 64, 0, 64, False), (3, 53, 0, 20, False), (2, 64, 0, 64, True), (2, 50, 0, 32, True), (2, 48, 47, 33, False), (2, 56, 40, 32, True)]
random = np.random.default_rng(5)


def held_by_bf16(x):
    """x cut off to what bf16 holds."""
    return (x.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)


def numbers(*shape):
    return held_by_bf16(random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) if len(shape) > 1 else 1))


def normal(*shape):
    return (random.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)


def save(path, nodes, weights, x, y, opset=17):
    graph = helper.make_graph(nodes, "m", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)], [helper.make_tensor_value_info("y", TensorProto.FLOAT, y)],
                              [numpy_helper.from_array(value, name) for name, value in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return x


def conv(x, y, k, stride=1, pad=0, group=1):
    return helper.make_node("Conv", [x, y + "_w", y + "_b"], [y], kernel_shape=[k, k], strides=[stride] * 2, pads=[pad] * 4, group=group)


def conv_weights(y, channels, out, k):
    return {y + "_w": numbers(out, channels, k, k), y + "_b": numbers(out)}


def product(path, rows, depth, columns):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "b"], ["y"])]
    return save(path, nodes, {"w": numbers(depth, columns), "b": numbers(columns)}, [*rows, depth], [*rows, columns])


def convolution(path, channels, out, k, stride, pad, size):
    """Behind a depthwise one that copies its input, which makes blocks of channels; an image's few channels are taken as they are."""
    there = (size + 2 * pad - k) // stride + 1
    copied = channels > 4
    nodes = [conv("x", "c", 3, pad=1, group=channels)] if copied else []
    nodes.append(conv("c" if copied else "x", "y", k, stride, pad))
    weights = conv_weights("y", channels, out, k)
    if copied:
        weights |= {"c_w": np.zeros((channels, 1, 3, 3), np.float32), "c_b": np.zeros(channels, np.float32)}
        weights["c_w"][:, :, 1, 1] = 1
    return save(path, nodes, weights, [1, channels, size, size], [1, out, there, there])


def integers(*shape, step=1):
    return step * random.integers(-2, 3, shape).astype(np.float32)


def winograd(path, channels, out, stride, pad, size):
    """The same, a 3x3, of weights whose transforms for F(2x2) are integers."""
    there = (size + 2 * pad - 3) // stride + 1
    weights = {"c_w": np.zeros((channels, 1, 3, 3), np.float32), "c_b": np.zeros(channels, np.float32),
               "y_w": integers(out, channels, 3, 3, step=4), "y_b": integers(out)}
    weights["c_w"][:, :, 1, 1] = 1
    nodes = [conv("x", "c", 3, pad=1, group=channels), conv("c", "y", 3, stride, pad)]
    return save(path, nodes, weights, [1, channels, size, size], [1, out, there, there])


def network(path):
    """A stem, a residual block with a 3x3, a depthwise and a strided convolution, a pool and a product."""
    relu = lambda x, y: helper.make_node("Relu", [x], [y])
    nodes = [conv("x", "a", 3, 2, 1), relu("a", "ar"), conv("ar", "b", 1), relu("b", "br"), conv("br", "c", 3, 1, 1), relu("c", "cr"), conv("cr", "d", 1),
             helper.make_node("Add", ["d", "ar"], ["e"]), relu("e", "er"), conv("er", "f", 3, 1, 1, 32), conv("f", "g", 1, 2), relu("g", "gr"),
             helper.make_node("GlobalAveragePool", ["gr"], ["p"]), helper.make_node("Flatten", ["p"], ["q"]), helper.make_node("MatMul", ["q", "w"], ["y"])]
    weights = {"w": numbers(40, 10)}
    for name, shape in {"a": (3, 32, 3), "b": (32, 64, 1), "c": (64, 64, 3), "d": (64, 32, 1), "f": (1, 32, 3), "g": (32, 40, 1)}.items():
        weights |= conv_weights(name, *shape)
    return save(path, nodes, weights, [1, 3, 33, 33], [1, 10])


def attention(path, heads, queries, cached, depth, causal):
    """Of one input, cut into queries, keys and values; what a cache holds stands before the keys and values."""
    keys = cached + queries
    nodes = [helper.make_node("Split", ["x"], ["q", "k1", "v1"], axis=0, num_outputs=3)]
    weights = {}
    for name in "kv":
        if cached:
            weights[name + "0"] = numbers(1, heads, cached, depth)
            nodes.append(helper.make_node("Concat", [name + "0", name + "1"], [name], axis=2))
        else:
            nodes.append(helper.make_node("Identity", [name + "1"], [name]))
    nodes += [helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]), helper.make_node("MatMul", ["q", "kt"], ["s"])]
    scores = "s"
    if causal:
        hidden = np.where(np.arange(keys)[None, :] <= np.arange(queries)[:, None] + cached, 0, -3e38).astype(np.float32)
        weights["mask"] = hidden.reshape(1, 1, queries, keys)
        nodes.append(helper.make_node("Add", ["s", "mask"], ["masked"]))
        scores = "masked"
    nodes += [helper.make_node("Softmax", [scores], ["p"], axis=-1), helper.make_node("MatMul", ["p", "v"], ["y"])]
    return save(path, nodes, weights, [3, heads, queries, depth], [1, heads, queries, depth], 18)


def token(path):
    """A product of one row."""
    save(path, [helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": normal(256, 200)}, [1, 256], [1, 200])


def embedding(path):
    nodes = [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Cast", ["a"], ["i"], to=TensorProto.INT64), helper.make_node("Gather", ["t", "i"], ["g"]),
             helper.make_node("Tanh", ["g"], ["y"])]
    save(path, nodes, {"t": normal(300, 64)}, [5], [5, 64])


def lstm(path):
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=64)
    save(path, [node], {"w": normal(1, 256, 4), "r": normal(1, 256, 64)}, [6, 2, 4], [6, 1, 2, 64])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    tilewright = parser.parse_args().tilewright.resolve()
    runs_here = "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text()
    if not runs_here:
        print("this machine has no avx512_bf16: the code is only looked at")
    failures = []
    cases = [(product, case, SUMS) for case in PRODUCTS] + [(convolution, case, SUMS) for case in CONVOLUTIONS] + [(network, (), NETWORK)]
    cases += [(attention, case, ATTENTION) for case in ATTENTIONS]
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        model, library, x = work / "m.onnx", work / "m.so", work / "x.npy"

        def call(*args):
            return subprocess.run([tilewright, *args], capture_output=True, text=True)

        runner = Runner(tilewright, work)
        if not runner.qemu:
            print("no qemu-aarch64 or cross compiler: AArch64's code is only looked at")

        def off_on_arm(target, instruction, tolerance, *flags):
            """What is wrong with the model compiled for that target; None: nothing."""
            assembly = call("compile", model, "-t", target, "--precision", "bf16", *flags, "--emit", "asm")
            if not re.search(instruction, assembly.stdout):
                return f"no {instruction} {assembly.stderr[-300:]}"
            if not runner.qemu:
                return None
            compiled = call("compile", model, "-t", target, "--precision", "bf16", *flags, "--strict", "--name", "model", "-o", library)
            if compiled.returncode:
                return compiled.stderr[-300:]
            inputs = {"x": np.load(x)}
            want = onnxruntime.InferenceSession(str(model), quiet(), providers=["CPUExecutionProvider"]).run(["y"], inputs)[0]
            got = runner.arm(library, inputs, {"y": want})["y"]
            error = np.abs(got - want).max() / np.ptp(want)
            return None if error <= tolerance else f"off by {error:.1e} of the range"

        def off(target, tolerance, *flags):
            """The same for a target that may run here, with the instruction that is wanted there."""
            assembly = call("compile", model, "-t", target, "--precision", "bf16", *flags, "--emit", "asm")
            if INSTRUCTION not in assembly.stdout:
                return f"no {INSTRUCTION} {assembly.stderr[-300:]}"
            if not runs_here:
                return None
            compiled = call("compile", model, "-t", target, "--precision", "bf16", *flags, "--strict", "-o", library)
            verified = call("verify", library, model, "-i", f"x={x}", "--tolerance", str(tolerance))
            return f"{compiled.stderr[-300:]} {verified.stdout} {verified.stderr[-300:]}" if compiled.returncode or verified.returncode else None

        for case in WINOGRAD:
            for whole, (algorithm, tolerance) in itertools.product((True, False), TILES.items()):
                shape = winograd(model, *case)
                np.save(x, integers(*shape) if whole else held_by_bf16(numbers(*shape)))
                flags = ("--algorithm", algorithm)
                groups = call("compile", model, "-t", TARGET, "--precision", "bf16", *flags, "--emit", "groups").stdout
                if algorithm not in groups:
                    failures.append(f"winograd {case}: no {algorithm}")
                if whole and algorithm == "winograd_f2":
                    tolerance = 1e-6
                wrong = {TARGET: off(TARGET, tolerance, *flags)} | {arm: off_on_arm(arm, r"\bbfdot\b", tolerance, *flags) for arm in ARM}
                failures += [f"{algorithm} {case} for {target}: {text}" for target, text in wrong.items() if text]
        for make, case, tolerance in cases:
            name = f"{make.__name__} {case}"
            flags = ("--algorithm", "direct") if make is convolution else ()
            shape = [5 if extent == "n" else extent for extent in make(model, *case)]
            scale = 0.5 * np.sqrt(np.prod(shape[1:])) if make is attention else 1   # a softmax that prefers some keys
            np.save(x, held_by_bf16(scale * numbers(*shape)))
            if wrong := off(TARGET, tolerance, *flags):
                failures.append(f"{name}: {wrong}")
            for target, instruction in ARM.items():
                free = make is product and "n" in case[0]   # the driver of other machines gives no sizes
                if not free and (wrong := off_on_arm(target, instruction, tolerance, *flags)):
                    failures.append(f"{name} for {target}: {wrong}")
        if runs_here:   # a limit of accuracy counts attention as it does other layers, and takes it back
            attention(model, *ATTENTIONS[0])
            held = call("compile", model, "-t", TARGET, "--precision", "bf16", "--max-error", "1e-5", "-o", library, "--json")
            report = json.loads(held.stdout)["accuracy"]
            layers = [(layer["name"], layer["choice"], layer["taken_back"]) for layer in report["layers"]]
            if layers != [("y", "bf16", True)] or not report["error"] <= 1e-5 < report["error_of_all_choices"]:
                failures.append(f"attention under a limit: {report}")
        for make, (precision, tolerance) in itertools.product((token, embedding, lstm), STORED.items()):
            make(model)
            sizes = []
            for flag in ("fp32", precision):
                compiled = call("compile", model, "-t", "x86-64-v3", "--precision", flag, "--strict", "-o", library, "--json")
                sizes.append(json.loads(compiled.stdout)["weight_bytes"])
            verified = call("verify", library, model, "--tolerance", str(tolerance))
            exact = call("verify", library, model, "--tolerance", str(SUMS))
            if verified.returncode or not exact.returncode or sizes[1] > 0.6 * sizes[0]:
                failures.append(f"{make.__name__} in {precision}: weights {sizes} {verified.stdout} {verified.stderr[-300:]}")
        refused = call("compile", model, "-t", "x86-64-v2", "--precision", "fp16", "-o", library)
        if refused.returncode != 3 or "no instruction that widens f16" not in refused.stderr:
            failures.append(f"x86-64-v2 is not refused: {refused.returncode} {refused.stderr}")
        chosen = call("compile", model, "-t", "x86-64-v3", "--precision", "auto", "-o", library)
        if chosen.returncode or "precision auto: fp32" not in chosen.stderr:
            failures.append(f"auto says nothing of its choice: {chosen.returncode} {chosen.stderr}")
    for failure in failures:
        print("FAIL", failure)
    print(f"bf16: {len(cases) + len(WINOGRAD)} models, {len(failures)} failures")
    return len(failures) > 0


if __name__ == "__main__":
    sys.exit(main())
