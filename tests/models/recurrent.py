#!/usr/bin/env python3
"""LSTM, GRU and RNN in all their variants against onnxruntime, at one and two threads.

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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("--seeds", type=int, default=25)
    arguments = parser.parse_args()
    failures, tried = 0, 0
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for seed in range(arguments.seeds):
            for kind in GATES:
                model, feeds, attributes = make_case(kind, np.random.default_rng(seed))
                try:
                    expected = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feeds)
                except Exception as error:  # onnxruntime does not implement all of the standard
                    print(f"skipped {kind} {seed}: {str(error).splitlines()[0][:120]}")
                    continue
                tried += 1
                onnx.save(model, work / "m.onnx")
                np.savez(work / "in.npz", **feeds)
                try:
                    subprocess.run([arguments.tilewright, "compile", work / "m.onnx", "-o", work / "m.so"], check=True, capture_output=True, text=True)
                    for threads in ("1", "2"):
                        subprocess.run([arguments.tilewright, "run", work / "m.so", "-i", work / "in.npz", "--threads", threads, "-d", work],
                                       check=True, capture_output=True, text=True)
                        for output, want in zip(model.graph.output, expected):
                            error = np.abs(np.load(work / f"{output.name}.npy") - want).max() / max(1, np.abs(want).max())
                            if not error <= TOLERANCE:
                                failures += 1
                                print(f"FAIL {kind} {seed} {threads} threads, {output.name}: error {error:.2g}, {attributes}, inputs {list(feeds)}")
                except subprocess.CalledProcessError as error:
                    failures += 1
                    print(f"FAIL {kind} {seed}: {(error.stderr or error.stdout).strip()[:600]}")
    print(f"{tried} cases, {failures} failures")
    return failures > 0 or tried == 0


if __name__ == "__main__":
    sys.exit(main())
