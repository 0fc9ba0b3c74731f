#!/usr/bin/env python3
"""Somebody writes into a model's file, or cuts it off, while it is compiled: the compile says so and leaves no library, or it
was done before; no signal ends it, and no library is made of both contents. Other commands that read a model say so too.

    changing_files.py [--tilewright BUILD/tilewright] [--times N]
"""
import argparse
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SIDE, WEIGHTS = 1024, 12   # 48 MB
MOST_ROUNDS = 4   # each at earlier moments: a machine is not always as fast


def write_model(folder, fill):
    nodes, weights, value = [], [], "x"
    with open(folder / "m.data", "wb") as data:
        for i in range(WEIGHTS):
            weight = TensorProto(name=f"w{i}", dims=[SIDE, SIDE], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
            for key, text in (("location", "m.data"), ("offset", data.tell()), ("length", 4 * SIDE * SIDE)):
                entry = weight.external_data.add()
                entry.key, entry.value = key, str(text)
            data.write(np.full(SIDE * SIDE, (fill + i) / SIDE, np.float32).tobytes())
            weights.append(weight)
            nodes.append(helper.make_node("MatMul", [value, f"w{i}"], [f"y{i}"]))
            value = f"y{i}"
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, SIDE]) for name in ("x", value))
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "m.onnx").write_bytes(model.SerializeToString())


def cut_off(path):
    os.truncate(path, 4096)


def written_over(path):
    with open(path, "r+b") as file:
        file.write(np.full(SIDE * SIDE * WEIGHTS, 99 / SIDE, np.float32).tobytes())


class Compiles:
    def __init__(self, tilewright, folder):
        self.tilewright, self.folder = tilewright, folder
        self.library = folder / "m.so"

    def begin(self):
        for file in (self.library, self.folder / "m.h"):
            file.unlink(missing_ok=True)
        return subprocess.Popen([self.tilewright, "compile", "m.onnx", "-o", "m.so"], cwd=self.folder, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def whole(self):
        """The library of what the files hold, and the time it takes."""
        start = time.monotonic()
        process = self.begin()
        said = process.communicate()[1]
        assert process.returncode == 0, said
        return self.library.read_bytes(), time.monotonic() - start


def problem_of(compiles, change, after, before):
    process = compiles.begin()
    time.sleep(after)
    done = process.poll() is not None
    change(compiles.folder / "m.data")
    said = process.communicate()[1]
    if process.returncode == 0:
        made = compiles.library.read_bytes()
        if done or made == before:
            return None
        return None if change is written_over and made == compiles.whole()[0] else "a library of both contents"
    if process.returncode not in (1, 5):
        return f"exit code {process.returncode}: {said}"
    if compiles.library.exists() or (compiles.folder / "m.h").exists():
        return f"a library was left: {said}"
    return None if "m.data" in said or "tensor" in said or "'w" in said else f"not said clearly: {said}"


# Commands that read a model for some while, and what they leave.
OTHERS = {"run": (["run", "m.onnx", "--random", "1"], None), "verify": (["verify", "kept.so", "m.onnx"], None),
          "quantize": (["quantize", "m.onnx", "--random", "4", "-o", "q.onnx"], "q.onnx"), "lock": (["lock", "m.onnx"], None),
          "tune": (["tune", "m.onnx", "--trials", "2", "--log", "m.db"], None), "inspect": (["inspect", "m.onnx"], None)}


def other_problem(tilewright, folder, name):
    """At some moment it is noticed, and at none does it end by a signal or leave a file. Of inspect, which is done in a moment, only the latter."""
    words, made = OTHERS[name]
    write_model(folder, 1)
    noticed, start = 0, time.monotonic()
    done = subprocess.run([tilewright, *words], cwd=folder, capture_output=True, text=True)
    seconds = time.monotonic() - start
    if done.returncode != 0:
        return f"{name}: status {done.returncode}: {done.stderr[-300:]}"
    for number in range(MOST_ROUNDS):
        if noticed:
            break
        for change, share in itertools.product((written_over, cut_off), (0.35, 0.6, 0.85)):
            write_model(folder, 1)
            if made:
                (folder / made).unlink(missing_ok=True)
            process = subprocess.Popen([tilewright, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep((share - 0.1 * number) * seconds)
            change(folder / "m.data")
            said = process.communicate()[1]
            noticed += process.returncode == 5 and ("while it was read" in said)
            if process.returncode not in (0, 1, 4, 5):
                return f"{name}, {change.__name__}: status {process.returncode}: {said[-300:]}"
            if process.returncode != 0 and made and (folder / made).exists():
                return f"{name}, {change.__name__}: status {process.returncode}, and {made} is there"
    return None if noticed or name == "inspect" else f"{name}: it is never noticed that the model changes"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", default=ROOT / "build/release/tilewright", type=pathlib.Path)
    parser.add_argument("--times", type=int, default=8)
    arguments = parser.parse_args()
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        compiles = Compiles(arguments.tilewright.resolve(), pathlib.Path(folder))
        write_model(compiles.folder, 1)
        before, seconds = compiles.whole()
        for change in (cut_off, written_over):
            for i in range(arguments.times):
                write_model(compiles.folder, 1)
                after = seconds * i / arguments.times
                problem = problem_of(compiles, change, after, before)
                if problem:
                    problems.append(f"{change.__name__} after {after:.3f} s: {problem}")
        (compiles.folder / "kept.so").write_bytes(before)
        problems += filter(None, (other_problem(compiles.tilewright, compiles.folder, name) for name in OTHERS))
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"changing files: {len(OTHERS)} other commands, {2 * arguments.times} compiles of {seconds:.2f} s, {len(problems)} not as they should be")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
