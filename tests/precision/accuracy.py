#!/usr/bin/env python3
"""Holds libraries against limits of accuracy: short floats, Winograd's algorithm and rows in 8 bits are taken back where they are over it.

What is left is verified by `tilewright verify`, which knows nothing of the gate. A limit that cannot be met leaves no file.

    accuracy.py --tilewright BUILD/tilewright
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PLAIN = "x86-64-v3"
SEEDED = 4   # inputs, where there are no data
random = np.random.default_rng(11)


def save(path, nodes, weights, x, y, domains=()):
    graph = helper.make_graph(nodes, "m", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)], [helper.make_tensor_value_info("y", TensorProto.FLOAT, y)],
                              [numpy_helper.from_array(value, name) for name, value in weights.items()])
    opsets = [helper.make_opsetid("", 17), *(helper.make_opsetid(domain, 1) for domain in domains)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def numbers(*shape):
    return (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def perceptron(path, layers=6):
    """Products one behind the other; the third has large weights that cancel, so that its rounding costs most."""
    nodes, weights, last = [], {}, "x"
    for i in range(layers):
        weights[f"w{i}"] = numbers(64, 64)
        nodes += [helper.make_node("MatMul", [last, f"w{i}"], [f"p{i}"]), helper.make_node("Relu", [f"p{i}"], [f"r{i}"])]
        last = f"r{i}"
    weights["w2"][1::2] = -weights["w2"][::2] * 0.97
    weights["w1"][:, 1::2] = weights["w1"][:, ::2]
    nodes.append(helper.make_node("MatMul", [last, "w"], ["y"]))
    weights["w"] = numbers(64, 10)
    save(path, nodes, weights, [8, 64], [8, 10])


def convolutions(path):
    nodes = [helper.make_node("Conv", ["x", "w0"], ["a"], pads=[1] * 4), helper.make_node("Relu", ["a"], ["ar"]), helper.make_node("Conv", ["ar", "w1"], ["b"], pads=[1] * 4),
             helper.make_node("Relu", ["b"], ["br"]), helper.make_node("Conv", ["br", "w2"], ["y"], pads=[1] * 4)]
    save(path, nodes, {"w0": numbers(32, 3, 3, 3), "w1": numbers(64, 32, 3, 3), "w2": numbers(32, 64, 3, 3)}, [1, 3, 24, 24], [1, 32, 24, 24])


def four_bits(path):
    """A product whose rows the model lets be rounded to 8 bits."""
    packed, scales = random.integers(0, 256, (32, 2, 16), dtype=np.uint8), random.uniform(0.5, 1, 64).astype(np.float32)
    node = helper.make_node("MatMulNBits", ["x", "b", "s"], ["y"], domain="com.microsoft", K=64, N=32, bits=4, block_size=32, accuracy_level=4)
    save(path, [node], {"b": packed, "s": scales}, [4, 64], [4, 32], ["com.microsoft"])


class Gate:
    def __init__(self, tilewright, work):
        self.tilewright, self.library = tilewright, work / "m.so"

    def call(self, *args):
        return subprocess.run([self.tilewright, *map(str, args)], capture_output=True, text=True)

    def compile(self, model, *flags, code=0):
        for file in (self.library, self.library.with_suffix(".h")):
            file.unlink(missing_ok=True)
        done = self.call("compile", model, "-o", self.library, "--json", *flags)
        assert done.returncode == code, (done.returncode, flags, done.stdout[-500:], done.stderr[-500:])
        assert self.library.exists() == (code == 0)
        return json.loads(done.stdout)

    def accuracy(self, model, *flags):
        return self.compile(model, *flags)["accuracy"]

    def verify(self, model, tolerance, *flags):
        return self.call("verify", self.library, model, "--tolerance", tolerance, *flags).returncode == 0

    def within_on_seeds(self, model, tolerance):
        return all(self.verify(model, tolerance, "--random", seed) for seed in range(SEEDED))


def taken_back(report):
    return [layer["name"] for layer in report["layers"] if layer["taken_back"]]


def check_limit(gate, model, *flags):
    """A limit below the error of all choices and above that of none: some are taken back, and what is left keeps it."""
    whole = gate.accuracy(model, "--max-error", 1, *flags)
    assert whole["layers"] and not taken_back(whole) and whole["seeded"] and whole["error"] == whole["error_of_all_choices"]
    limit = whole["error"] * 0.7
    assert not gate.within_on_seeds(model, limit)
    part = gate.accuracy(model, "--max-error", limit, *flags)
    back = taken_back(part)
    assert 0 < len(back) and part["error"] <= limit and part["error_of_all_choices"] == whole["error"], part
    assert gate.within_on_seeds(model, limit) and not gate.within_on_seeds(model, part["error"] * 0.99)
    again = gate.call("inspect", gate.library, "--json")
    assert all(name in again.stdout for name in back)
    refused = gate.compile(model, "--max-error", 0, *flags, code=7)["error"][0]
    assert refused["code"] == "over-budget" and "alone" in " ".join(refused["notes"]), refused
    print(f"{model.stem} {' '.join(flags)}: {whole['error']:.2e} with {len(whole['layers'])} choices, {part['error']:.2e} with {len(back)} taken back")
    return whole, part


def check_stand_ins(gate, model, work):
    """Another machine's library and an object are held by a library for this machine with the same choices: a limit between its errors takes choices back."""
    native = gate.accuracy(model, "--max-error", 1, "-t", PLAIN, "--algorithm", "winograd_f6")
    assert native["measured_by"] is None
    for flags, stand_in in ((("-t", "cortex-a72"), "host"), (("-t", PLAIN, "--emit", "obj"), PLAIN)):
        gate.library = work / ("s.o" if "obj" in flags else "s.so")
        flags = *flags, "--algorithm", "winograd_f6"
        whole = gate.accuracy(model, "--max-error", 1, *flags)
        assert whole["measured_by"] == stand_in and not taken_back(whole), whole
        assert {layer["choice"] for layer in whole["layers"]} == {layer["choice"] for layer in native["layers"]}
        limit = whole["error"] * 0.7
        part = gate.accuracy(model, "--max-error", limit, *flags)
        assert taken_back(part) and part["error"] <= limit, part
        refused = gate.compile(model, "--max-error", 0, *flags, code=7)["error"][0]
        assert refused["code"] == "over-budget" and "alone" in " ".join(refused["notes"]), refused
        text = gate.call("compile", model, "-o", gate.library, "--max-error", 1, *flags).stdout
        assert f"measured by a library for target '{stand_in}'" in text, text
        print(f"{' '.join(flags)}: {whole['error']:.2e}, {part['error']:.2e} with {len(taken_back(part))} taken back, by '{stand_in}'")
    gate.library = work / "m.so"


def check_rows(gate, model, *flags):
    """verify's reference rounds rows as the model lets it, the gate's does not."""
    whole = gate.accuracy(model, "--max-error", 1, *flags)
    assert whole["layers"][0]["choice"] == "8-bit rows" and whole["error"] > 1e-4 and gate.within_on_seeds(model, 1e-5)
    part = gate.accuracy(model, "--max-error", 1e-5, *flags)
    assert taken_back(part) == ["y"] and part["error"] < 1e-5 and not gate.within_on_seeds(model, 1e-4)


def check_layers(gate, model, *flags):
    report = gate.accuracy(model, "--max-error", 1, "--layers", *flags)
    errors = {layer["name"]: layer["error"] for layer in report["layers"]}
    assert all(error is not None and error > 0 for error in errors.values()), errors
    assert all(layer["saved_ms"] is not None for layer in report["layers"]), report
    return errors


def check_data(gate, model, work, *flags):
    """On the user's data, whose errors differ from those of seeded inputs."""
    data = work / "data"
    data.mkdir()
    np.save(data / "a.npy", random.standard_normal((24, 64)).astype(np.float32))   # three samples
    report = gate.accuracy(model, "--max-error", "top1:50%", "--accuracy-data", data, *flags)
    assert report["samples"] == 3 and not report["seeded"] and report["error"] <= 0.5
    assert gate.accuracy(model, "--max-error", "rms:1", "--accuracy-data", data, "--samples", 2, *flags)["samples"] == 2
    assert "--accuracy-data" in gate.compile(model, "--accuracy-data", data, code=1)["error"][0]["message"]


def check_description(gate, model, work):
    """Precision and budget in a target's description; what cannot be met is a case of JUnit."""
    base = gate.call("target", "znver4").stdout
    target, junit = work / "t.yaml", work / "j.xml"
    target.write_text(base + "precision: bf16\nbudget: {error: 1}\n")
    report = gate.compile(model, "-t", target)
    assert {layer["choice"] for layer in report["accuracy"]["layers"]} == {"bf16"}
    assert report["budget"][0]["needed"] == report["accuracy"]["error"]
    assert not gate.accuracy(model, "-t", target, "--precision", "fp32")["layers"]
    target.write_text(base + "precision: auto\nbudget: {error: 0}\n")
    gate.compile(model, "-t", target, "--junit", junit, code=7)
    assert 'failures="1"' in junit.read_text()


def check_tune(gate, model, work):
    """Algorithms over the limit are left out of the search, those below it are not."""
    target = work / "loose.yaml"
    target.write_text(re.sub("^accuracy:.*$", "accuracy: 1e-2", gate.call("target", "host").stdout, flags=re.MULTILINE))

    def tune(log, *flags, code=0):
        done = gate.call("tune", model, "-t", target, "--log", work / log, "--trials", 4, "--seed", 1, "--json", *flags)
        assert done.returncode == code, (done.returncode, done.stderr[-500:], done.stdout[-500:])
        return [json.loads(line) for line in done.stdout.splitlines()] if code == 0 else done.stdout

    def spaces(lines):
        return [task["space"] for task in lines[-1]["tasks"]]

    free, whole = tune("free.db"), tune("whole.db", "--max-error", 1)
    errors = {line["algorithm"]: line["accuracy"]["error"] for line in whole if "algorithm" in line}
    assert "algorithm" not in free[0] and spaces(free) == spaces(whole) and {"winograd_f2", "winograd_f6"} <= errors.keys(), errors
    assert errors["winograd_f2"] < errors["winograd_f6"] / 4, errors
    limit = np.sqrt(errors["winograd_f2"] * errors["winograd_f6"])
    held = tune("held.db", "--max-error", limit)
    back = {line["algorithm"]: taken_back(line["accuracy"]) for line in held if "algorithm" in line}
    assert not back["winograd_f2"] and back["winograd_f6"], back
    assert all(line["accuracy"]["error"] <= limit for line in held if "algorithm" in line)
    assert sum(spaces(held)) < sum(spaces(free)) and all(a <= b for a, b in zip(spaces(held), spaces(free))), (spaces(held), spaces(free))
    assert "over-budget" in tune("none.db", "--max-error", 0, code=7)
    print(f"tune: {errors}, at most {limit:.1e} takes back {back}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    tilewright = parser.parse_args().tilewright.resolve()
    multiplies_bf16 = "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        gate = Gate(tilewright, work)
        models = {make: work / f"{make.__name__}.onnx" for make in (perceptron, convolutions, four_bits)}
        for make, path in models.items():
            make(path)
        check_limit(gate, models[convolutions], "-t", PLAIN, "--algorithm", "winograd_f6")
        check_rows(gate, models[four_bits], "-t", PLAIN)
        check_stand_ins(gate, models[convolutions], work)
        check_tune(gate, models[convolutions], work)
        if multiplies_bf16:
            whole, part = check_limit(gate, models[perceptron], "--precision", "bf16")
            errors = check_layers(gate, models[perceptron], "--precision", "bf16")
            assert max(errors, key=errors.get) in taken_back(part), (errors, part)
            check_data(gate, models[perceptron], work, "--precision", "bf16")
            check_description(gate, models[perceptron], work)
            there = gate.accuracy(models[perceptron], "--max-error", 1, "--precision", "bf16", "-t", "neoverse-v1")
            assert there["measured_by"] == "host" and there["layers"], there
            refused = gate.compile(models[perceptron], "--max-error", 1, "--precision", "bf16", "-t", "cortex-a72", code=3)
            assert "multiplies bf16" in refused["error"][0]["message"], refused
        else:
            print("this machine has no avx512_bf16: bf16 is not measured")
    print("accuracy: all limits kept")


if __name__ == "__main__":
    sys.exit(main())
