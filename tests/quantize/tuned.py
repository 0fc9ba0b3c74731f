#!/usr/bin/env python3
"""Tuning quantized models: records of integer kernels serve a compile and a lock, results stay onnxruntime's to the bit, and a kernel of which nothing works
is told of.

    tuned.py --tilewright BUILD/tilewright
"""
import argparse
import json
import pathlib
import re
import sys
import tempfile

import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/models"), str(ROOT / "tests/precision")]
from integer_products import convolution  # noqa: E402
from tuning_place import TuningPlace  # noqa: E402

NOTHING_WORKS = 4
# In place of the instructions for products of bytes: it ends the process
BROKEN = """intrinsics:
  - name: broken.dot
    features: [avx]
    rate: 1000
    semantics: |
      kernel @dot(a: in u8[4], b: in i8[16], c: out i32[4]) {
        for j in 4 { for k in 4 reduce { c: c[j] += i32(a[k]) * i32(b[j * 4 + k]) } }
      }
    emit: asm("ud2", "=x,0,x,x", c, a, b)
"""


class Place(TuningPlace):
    def __init__(self, tilewright, folder):
        super().__init__(tilewright, folder)
        self.library = folder / "m.so"

    def compile(self, *flags):
        report = json.loads(self.must("compile", self.model, "-t", self.target, "-o", self.library, "--json", "--strict", *flags))
        return {kernel["task"]: (kernel["name"], kernel["schedule"]) for kernel in report["kernel_reports"] if "task" in kernel}, self.library.read_bytes()

    def check_results(self, x):
        session = onnxruntime.InferenceSession(str(self.model), providers=["CPUExecutionProvider"])
        name = session.get_inputs()[0].name
        np.save(self.folder / "x.npy", x)
        self.must("run", self.library, "--input", f"{name}={self.folder / 'x.npy'}", "--output-dir", self.folder / "out")
        for output, want in zip(session.get_outputs(), session.run(None, {name: x})):
            got = np.load(self.folder / "out" / f"{output.name.replace('/', '_')}.npy")
            assert (got == want).all(), f"{int((got != want).sum())} of {want.size} elements differ from onnxruntime's"


def check_model(place, x, families, trials):
    place.must("tune", place.model, "-t", place.target, "--log", place.log, "--trials", trials, "--batch", 4, "--no-prove", "--json")
    log = place.folder / "fast.db"
    _, searched = place.last_is_fastest(log)
    usual, plain = place.compile()
    place.check_results(x)
    tuned, library = place.compile("--log", log)
    assert library != plain and searched <= set(tuned) == set(usual), (searched, tuned)
    # The log's times choose layouts too: of a kernel in another one than was searched a schedule is transferred
    assert all(tuned[task][1] in ("tuned", "transferred") for task in searched), tuned
    assert families <= {re.sub(r"_\d+$", "", name) for name, source in tuned.values() if source == "tuned"}, (families, tuned)
    place.check_results(x)
    place.must("lock", place.model, "-t", place.target, "--log", log)
    frozen, again = place.compile("--frozen")
    assert again == library and frozen == tuned, "the lock gives other code than its log"
    for file in (place.folder / "tilewright.lock", place.log, log):
        file.unlink()
    print(f"{sorted(families)}: {len(searched)} of {len(tuned)} kernels tuned")


def check_broken(place):
    """What is crashed by every candidate of a kernel is a line and an exit code; the others have their records."""
    convolution(place.model, 16, 16, 6, 3, 1, 128)
    whole = place.target.read_text()
    place.target.write_text(whole + BROKEN)
    tune = ("tune", place.model, "-t", place.target, "--log", place.log, "--trials", 12, "--batch", 4)
    done = place.run(*tune)
    assert done.returncode == NOTHING_WORKS, (done.returncode, done.stdout[-600:], done.stderr[-600:])
    failed = [line for line in done.stdout.splitlines() if line.startswith("failed: ")]
    assert failed and all(re.search(r"no candidate of \d+ works; the default schedule: .*SIGILL", line) for line in failed), done.stdout
    again = place.run(*tune, "--json")
    summary = json.loads(again.stdout.splitlines()[-1])
    assert again.returncode == NOTHING_WORKS and summary["failed"] == len(failed) and "works" in "".join(task.get("error", "") for task in summary["tasks"]), summary
    place.target.write_text(whole)
    place.log.unlink()
    done = place.run(*tune)
    assert done.returncode == 0 and "failed" not in done.stdout, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    tilewright = parser.parse_args().tilewright.resolve()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(tilewright, pathlib.Path(folder))
        random = np.random.default_rng(5)
        place.model.write_bytes((ROOT / "examples/digits/digits_int8.onnx").read_bytes())
        check_model(place, random.random((1, 1, 8, 8)).astype(np.float32), {"conv"}, 40)
        for groups, families in ((32, {"conv", "depthwise"}), (2, {"conv"})):
            shape, _ = convolution(place.model, 32, 32, 12, 3, 1, 0, groups)
            check_model(place, random.integers(0, 256, shape).astype(np.uint8), families, 40)
        check_broken(place)
    print("quantized models: tuned, locked, told of")


if __name__ == "__main__":
    main()
