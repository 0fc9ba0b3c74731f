#!/usr/bin/env python3
"""`compile --verify` and how `verify` judges: libraries that differ from their model are not kept, ill-conditioned models and
f16 ones pass for what they are, libraries for other machines run in an emulator.

    verified.py --tilewright BUILD/tilewright
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DIGITS = ROOT / "examples/digits/digits.onnx"
OK, WRONG, UNSUPPORTED, MISMATCH = 0, 1, 3, 4


class Suite:
    def __init__(self, tilewright, work):
        self.tilewright, self.work, self.failed, self.checks = tilewright, work, 0, 0

    def call(self, *words):
        return subprocess.run([self.tilewright, *map(str, words)], cwd=self.work, capture_output=True, text=True)

    def check(self, what, good, *said):
        self.checks += 1
        if not good:
            self.failed += 1
            print(f"FAIL {what}", *(f"\n  {line}" for line in said))

    def ends(self, what, status, *words):
        done = self.call(*words)
        self.check(f"{what}: status {done.returncode}, expected {status}", done.returncode == status, done.stdout, done.stderr)
        return done

    def model(self, name, nodes, inputs, outputs, weights=()):
        graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info(*i) for i in inputs],
                                  [helper.make_tensor_value_info(*o) for o in outputs], list(weights))
        path = self.work / f"{name}.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
        return path


def product(suite, name, dtype, rows, depth=512):
    rng = np.random.default_rng(5)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    weight = numpy_helper.from_array((rng.standard_normal((depth, 40)) / 8).astype(dtype), "w")
    return suite.model(name, [helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", kind, [rows, depth])], [("y", kind, [rows, 40])], [weight])


def kept(suite):
    done = suite.ends("digits", OK, "compile", DIGITS, "-o", "digits.so", "--verify")
    suite.check("the time is shown", "verified 4 samples by this machine in" in done.stdout, done.stdout)
    told = suite.ends("inspect", OK, "inspect", "digits.so").stdout
    suite.check("inspect says so", "verified when it was compiled, on seeded inputs, within 0.0001" in told, told)
    plain = suite.ends("digits without", OK, "compile", DIGITS, "-o", "plain.so")
    suite.check("nothing is said of what was not done", "verified" not in plain.stdout, plain.stdout)
    first = (suite.work / "digits.so").read_bytes()
    suite.ends("digits again", OK, "compile", DIGITS, "-o", "digits.so", "--verify")
    suite.check("equal inputs give equal bytes", first == (suite.work / "digits.so").read_bytes())

    np.savez(suite.work / "data.npz", image=np.random.default_rng(3).random((3, 1, 8, 8), np.float32))
    done = suite.ends("data of one's own", OK, "compile", DIGITS, "-o", "digits.so", "--verify", "--data", "data.npz", "--json")
    report = json.loads(done.stdout)["verified"]
    suite.check("each row of the file is a sample", report["samples"] == 3 and report["ok"] and report["seconds"] > 0, report)
    manifest = json.loads(suite.call("inspect", "digits.so", "--json").stdout)["manifest"]["verified"]
    suite.check("inspect names the data", len(manifest["data"]) == 64, manifest)
    np.savez(suite.work / "wrong.npz", image=np.zeros((1, 1, 8, 9), np.float32))
    suite.ends("data that do not fit", WRONG, "compile", DIGITS, "-o", "misfit.so", "--verify", "--data", "wrong.npz")
    suite.check("then no library is kept", not (suite.work / "misfit.so").exists())
    suite.ends("flags without --verify", WRONG, "compile", DIGITS, "-o", "none.so", "--data", "data.npz")
    suite.ends("an object", UNSUPPORTED, "compile", DIGITS, "--emit", "obj", "-o", "none.o", "--verify")


def refused(suite):
    """Weights in bf16 are off by far more than f32 is: by the tolerance that is given, the library differs."""
    path = product(suite, "rounded", np.float32, 1)
    short = ["compile", path, "-t", "x86-64-v3", "--precision", "bf16", "-o", "rounded.so"]
    suite.ends("bf16 within its usual tolerance", OK, *short, "--verify")
    for file in ("rounded.so", "rounded.h"):
        (suite.work / file).unlink()
    done = suite.ends("bf16 within 1e-6", MISMATCH, *short, "--verify", "--tolerance", "1e-6")
    suite.check("the output is named", "OFF  y" in done.stdout and "nothing is written" in done.stderr, done.stdout, done.stderr)
    suite.check("no file is kept", not [f for f in suite.work.iterdir() if f.stem == "rounded" and f.suffix != ".onnx"])
    done = suite.ends("the same as JSON", MISMATCH, *short, "--verify", "--tolerance", "1e-6", "--json")
    suite.check("it says which", json.loads(done.stdout)["verified"]["ok"] is False, done.stdout)


def judged(suite):
    """What unoptimized code in the model's own types makes of an output is right, and no more than four times that."""
    np.savez(suite.work / "large.npz", x=np.random.default_rng(1).random(64, np.float32), c=np.full(64, 5e6, np.float32))

    def cancelled(name, *operands):
        return suite.model(name, [helper.make_node("Add", ["x", "c"], ["a"]), helper.make_node("Sub", operands, ["d"]), helper.make_node("Mul", ["d", "d"], ["y"])],
                           [("x", TensorProto.FLOAT, [64]), ("c", TensorProto.FLOAT, [64])], [("y", TensorProto.FLOAT, [64])])

    right, wrong = cancelled("cancelled", "a", "c"), cancelled("other", "a", "x")
    for model in (right, wrong):
        suite.ends("cancellation", OK, "compile", model, "-o", model.with_suffix(".so"))
    done = suite.ends("cancellation passes", OK, "verify", "cancelled.so", right, "--input", "large.npz")
    suite.check("its inputs say little", "say little" in done.stderr, done.stdout, done.stderr)
    suite.ends("a wrong library does not", MISMATCH, "verify", "other.so", right, "--input", "large.npz")

    half, kind = product(suite, "half", np.float16, 24), TensorProto.FLOAT16
    model = onnx.load(half)
    model.graph.node.append(helper.make_node("Sub", ["y", "c"], ["d"]))
    model.graph.initializer.append(numpy_helper.from_array(np.float16([4]), "c"))
    model.graph.output[0].name = "d"
    onnx.save(model, half)
    suite.ends("f16", OK, "compile", half, "-o", "half.so", "--verify")
    done = suite.ends("verify of f16", OK, "verify", "half.so", half)
    suite.check("f16's own error is shown", "unoptimized, in the model's types" in done.stdout, done.stdout)

    for reference in ("operators", "unoptimized"):
        suite.ends(f"f16 against {reference}", OK, "verify", "half.so", half, "--reference", reference)
    # The squares overflow, so that the steps give 0; the one operator that is made of them does not
    steps = [("ReduceMean", ["x", "axes"], "m"), ("Sub", ["x", "m"], "d"), ("Mul", ["d", "d"], "s"), ("ReduceMean", ["s", "axes"], "v"), ("Add", ["v", "e"], "ve"),
             ("Sqrt", ["ve"], "r"), ("Div", ["d", "r"], "y")]
    axes = numpy_helper.from_array(np.array([-1]), "axes")
    nodes = [helper.make_node(op, read, [made]) for op, read, made in steps]
    norm = suite.model("norm", nodes, [("x", kind, [1, 4])], [("y", kind, [1, 4])], [numpy_helper.from_array(np.array(1e-5, np.float16), "e"), axes])
    np.save(suite.work / "wide.npy", np.array([[-300, 300, -300, 300]], np.float16))
    suite.ends("a norm of f16", OK, "compile", norm, "-o", "norm.so")
    for reference in ("operators", "unoptimized", "f64"):
        suite.ends(f"its squares overflow, against {reference}", OK, "verify", "norm.so", norm, "--input", "wide.npy", "--reference", reference)

    overflown = suite.model("overflown", [helper.make_node("Exp", ["x"], ["e"]), helper.make_node("Exp", ["e"], ["y"])],
                            [("x", TensorProto.FLOAT, [6])], [("y", TensorProto.FLOAT, [6])])
    np.save(suite.work / "x.npy", np.array([0, 1, 2, 4.6, 5, 6], np.float32))
    suite.ends("overflow", OK, "compile", overflown, "-o", "overflown.so")
    suite.ends("infinity is right where f32 ends", OK, "verify", "overflown.so", overflown, "--input", "x.npy")

    rows = numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(4, 3), "rows")
    indexed = suite.model("indexed", [helper.make_node("Gather", ["rows", "i"], ["y"])], [("i", TensorProto.INT64, [5])],
                          [("y", TensorProto.FLOAT, [5, 3])], [rows])
    done = suite.ends("indices", OK, "compile", indexed, "-o", "indexed.so", "--verify")
    suite.check("made-up integers are told of", "input 'i' is made up of 0 and 1" in done.stderr, done.stderr)
    np.save(suite.work / "i.npy", np.array([3, 1, 0, 2, 3]))
    done = suite.ends("given indices", OK, "verify", "indexed.so", indexed, "--input", "i.npy")
    suite.check("given ones are not", "made up" not in done.stderr, done.stderr)


def elsewhere(suite):
    for target, emulator in (("cortex-a72", "qemu-aarch64"), ("armv7-generic", "qemu-arm"), ("rv64gc", "qemu-riscv64")):
        if not shutil.which(emulator):
            print(f"left out: {target}, as there is no {emulator}")
            continue
        library = f"digits-{target}.so"
        done = suite.ends(target, OK, "compile", DIGITS, "-t", target, "-o", library, "--verify")
        suite.check("the emulator is named", f"by {emulator}" in done.stdout, done.stdout)
        done = suite.ends(f"verify of {target}", OK, "verify", library, DIGITS, "--random", 3, "--json")
        suite.check("the machine is named", emulator in done.stdout, done.stdout)
        on = f"{shutil.which(emulator)} -cpu {'rv64' if target == 'rv64gc' else 'max'}"
        suite.ends(f"{target} by a command", OK, "verify", library, DIGITS, "--on", on)
        suite.ends("another model's library", WRONG, "verify", library, suite.work / "indexed.onnx")
        suite.ends("no such emulator", UNSUPPORTED, "verify", library, DIGITS, "--on", "no-such-emulator")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(args.tilewright.resolve(), pathlib.Path(folder))
        for part in (kept, refused, judged, elsewhere):
            part(suite)
    print(f"verified: {suite.checks} checks, {suite.failed} failed")
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main())
