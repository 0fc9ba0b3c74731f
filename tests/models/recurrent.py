#!/usr/bin/env python3
"""LSTM, GRU and RNN in all their variants, and DynamicQuantizeLSTM, against onnxruntime, at one and two threads.

    recurrent.py --tilewright BUILD/tilewright [--seeds N]
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TOLERANCE = 2e-5
# A hidden state that lies at the middle between two bytes may be rounded to either by sums of another order; few do.
TOLERANCE_OF_A_STEP = 2e-2
QUANTIZED = "DynamicQuantizeLSTM"
TARGETS = ["x86-64-v2", "x86-64-v3", "x86-64-v4", "host"]   # whose instructions multiply words, bytes
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
ACTIVATIONS = ["Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu", "Softsign", "Softplus"]
WITH_ALPHA = {"Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu"}
WITH_BETA = {"Affine", "ScaledTanh", "HardSigmoid"}


def make_case(kind, rng):
    """A model and its inputs; every attribute is drawn."""
    steps, batch, inputs, hidden = (int(rng.integers(1, n)) for n in (7, 8, 20, 40))
    direction = ["forward", "reverse", "bidirectional"][rng.integers(3)]
    both = 2 if direction == "bidirectional" else 1
    attributes = {"hidden_size": hidden, "direction": direction}
    if rng.random() < 0.3:
        attributes["clip"] = float(rng.uniform(0.3, 1))
    if rng.random() < 0.3:
        names = [ACTIVATIONS[rng.integers(len(ACTIVATIONS))] for _ in range(FUNCTIONS[kind] * both)]
        attributes["activations"] = names
        for name, value, takers in (("activation_alpha", 0.3, WITH_ALPHA), ("activation_beta", 0.6, WITH_BETA)):
            if any(n in takers for n in names):
                attributes[name] = [value] * sum(n in takers for n in names)
    if kind == "GRU":
        attributes["linear_before_reset"] = int(rng.integers(2))
    if kind == "LSTM" and rng.random() < 0.2:
        attributes["input_forget"] = 1
    constant_weights = rng.random() < 0.7
    names, feeds, constants = [], {}, []

    def tensor(name, shape, there=True, constant=False, scale=0.4):
        names.append(name if there else "")
        if not there:
            return
        value = (rng.standard_normal(shape) * scale).astype(np.float32)
        if constant:
            constants.append(numpy_helper.from_array(value, name))
        else:
            feeds[name] = value

    gates = GATES[kind]
    tensor("X", (steps, batch, inputs), scale=1.0)
    tensor("W", (both, gates * hidden, inputs), constant=constant_weights)
    tensor("R", (both, gates * hidden, hidden), constant=constant_weights)
    tensor("B", (both, 2 * gates * hidden), rng.random() < 0.7, constant_weights)
    lengths = rng.random() < 0.4
    names.append("lengths" if lengths else "")
    if lengths:
        feeds["lengths"] = rng.integers(1, steps + 1, batch).astype(np.int32)
        feeds["lengths"][rng.integers(batch)] = steps
    tensor("H0", (both, batch, hidden), rng.random() < 0.5)
    outputs = {"Y": (steps, both, batch, hidden), "Yh": (both, batch, hidden)}
    if kind == "LSTM":
        tensor("C0", (both, batch, hidden), rng.random() < 0.5)
        tensor("P", (both, 3 * hidden), rng.random() < 0.3, constant_weights)
        outputs["Yc"] = (both, batch, hidden)
    wanted = [name for name in outputs if rng.random() < 0.7] or ["Y"]
    node = helper.make_node(kind, names, [name if name in wanted else "" for name in outputs], "n", **attributes)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info(k, TensorProto.INT32 if v.dtype == np.int32 else TensorProto.FLOAT, v.shape) for k, v in feeds.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, outputs[name]) for name in wanted], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), feeds, attributes


def make_quantized_case(rng):
    """A DynamicQuantizeLSTM and its inputs: weights of either type, with any zero point where there is one a direction."""
    steps, batch, inputs, hidden = (int(rng.integers(1, n)) for n in (7, 8, 20, 70))
    direction = ["forward", "reverse", "bidirectional"][rng.integers(3)]
    both = 2 if direction == "bidirectional" else 1
    attributes = {"hidden_size": hidden, "direction": direction}
    if rng.random() < 0.3:
        attributes["clip"] = float(rng.uniform(0.3, 1))
    if rng.random() < 0.2:
        attributes["input_forget"] = 1
    t = [np.uint8, np.int8][rng.integers(2)]
    info = np.iinfo(t)
    names, feeds, constants = [], {}, []
    constant_weights = rng.random() < 0.8

    def tensor(name, value, there=True, constant=False):
        names.append(name if there else "")
        if there and constant:
            constants.append(numpy_helper.from_array(value, name))
        elif there:
            feeds[name] = value

    def floats(*shape, scale=0.4):
        return (rng.standard_normal(shape) * scale).astype(np.float32)

    by_gate = rng.random() < 0.5
    shape = (both, 4 * hidden) if by_gate else (both,)
    middle = int(info.max) // 2 + 1 if t == np.uint8 else 0
    zero = middle if by_gate or rng.random() < 0.6 else int(rng.integers(info.min, info.max + 1))
    tensor("X", floats(steps, batch, inputs, scale=1))
    for name, rows in (("W", inputs), ("R", hidden)):
        tensor(name, rng.integers(info.min, info.max + 1, (both, rows, 4 * hidden)).astype(t), constant=constant_weights)
    tensor("B", floats(both, 8 * hidden), rng.random() < 0.7, constant_weights)
    # Of one length where the direction is reverse: onnxruntime lines up the ends of sequences
    lengths = direction == "forward" and rng.random() < 0.5
    if lengths:
        tensor("lengths", rng.integers(1, steps + 1, batch).astype(np.int32))
        feeds["lengths"][rng.integers(batch)] = steps
    else:
        names.append("")
    tensor("H0", floats(both, batch, hidden), rng.random() < 0.5)
    tensor("C0", floats(both, batch, hidden), rng.random() < 0.5)
    tensor("P", floats(both, 3 * hidden), rng.random() < 0.3, constant_weights)
    for name in "WR":
        tensor(name + "_scale", rng.uniform(0.001, 0.003, shape).astype(np.float32), constant=True)
        tensor(name + "_zero", np.full(shape, zero, t), constant=True)
    node = helper.make_node(QUANTIZED, names, ["Y", "Yh", "Yc"], "n", domain="com.microsoft", **attributes)
    outputs = {"Y": (steps, both, batch, hidden), "Yh": (both, batch, hidden), "Yc": (both, batch, hidden)}
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()],
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), feeds, attributes


def is_close(case, have, want):
    error = np.abs(have - want) / max(1, np.abs(want).max())
    if not case.startswith(QUANTIZED) or error.max() <= TOLERANCE:
        return error.max() <= TOLERANCE
    return error.max() <= TOLERANCE_OF_A_STEP and np.median(error) <= TOLERANCE


def check(tilewright, work, target, case, expected, about):
    """The number of outputs that are off, by onnxruntime or by the reference evaluators."""
    failures, expected = 0, list(expected)
    try:
        subprocess.run([tilewright, "compile", work / "m.onnx", "-t", target, "-o", work / "m.so"], check=True, capture_output=True, text=True)
        for threads in ("1", "2"):
            subprocess.run([tilewright, "run", work / "m.so", "-i", work / "in.npz", "--threads", threads, "-d", work],
                           check=True, capture_output=True, text=True)
            for output, want in expected:
                have = np.load(work / f"{output.name}.npy")
                if not is_close(case, have, want):
                    failures += 1
                    error = np.abs(have - want)
                    print(f"FAIL {case} {threads} threads, {output.name}: error {error.max():.2g}, median {np.median(error):.2g}, {about}")
        if case.startswith(QUANTIZED):
            subprocess.run([tilewright, "verify", work / "m.so", work / "m.onnx", "-i", work / "in.npz", "--reference", "operators", "--tolerance", str(TOLERANCE_OF_A_STEP)],
                           check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        failures += 1
        print(f"FAIL {case}: {(error.stderr or error.stdout).strip()[:600]}")
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("--seeds", type=int, default=25)
    arguments = parser.parse_args()
    failures, tried = 0, 0
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1   # of a quantized batch each thread rounds its part by a range of its own
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for seed in range(arguments.seeds):
            for kind in [*GATES, QUANTIZED]:
                rng = np.random.default_rng(seed)
                model, feeds, attributes = make_quantized_case(rng) if kind == QUANTIZED else make_case(kind, rng)
                try:
                    expected = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feeds)
                except Exception as error:  # onnxruntime does not implement all of the standard
                    print(f"skipped {kind} {seed}: {str(error).splitlines()[0][:120]}")
                    continue
                tried += 1
                onnx.save(model, work / "m.onnx")
                np.savez(work / "in.npz", **feeds)
                for target in TARGETS if kind == QUANTIZED else ["host"]:
                    failures += check(arguments.tilewright, work, target, f"{kind} {seed} {target}", zip(model.graph.output, expected), f"{attributes}, inputs {list(feeds)}")
    print(f"{tried} cases, {failures} failures")
    return failures > 0 or tried == 0


if __name__ == "__main__":
    sys.exit(main())
