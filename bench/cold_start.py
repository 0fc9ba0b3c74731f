#!/usr/bin/env python3
"""From the start of a process to its first result: a C program with a compiled model, and onnxruntime's Python module, whose own
start (Python with numpy and the module) is told apart. Files are in the system's cache: both are run before they are timed.

    cold_start.py --tilewright BUILD/tilewright [--runs 15] [--threads 1] MODEL.onnx...
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
START = "import numpy, onnxruntime"
SESSION = START + """
import sys
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[2])
if sys.argv[3]:
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
given = session.get_inputs()[0]
shape = [d if isinstance(d, int) else 1 for d in given.shape]
print(session.run(None, {given.name: numpy.zeros(shape, numpy.float32)})[0].flat[0])
"""


def milliseconds(command, runs):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times), min(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        host = folder / "cold_start"
        subprocess.run(["cc", "-std=c11", "-O2", "-I", ROOT, ROOT / "bench/cold_start.c", "-o", host, "-ldl"], check=True)
        rows = [("Python, numpy, onnxruntime: imports alone", "", [sys.executable, "-c", START])]
        for model in args.models:
            library = folder / f"{model.stem}.so"
            subprocess.run([args.tilewright, "compile", model, "-o", library], check=True, capture_output=True)
            threads = str(args.threads)
            rows += [("Tilewright, C program", model.stem, [host, library, threads]),
                     ("onnxruntime", model.stem, [sys.executable, "-c", SESSION, model, threads, ""]),
                     ("onnxruntime, no optimizing", model.stem, [sys.executable, "-c", SESSION, model, threads, "1"])]
        print(f"{'what':44} {'model':20} {'median ms':>10} {'least ms':>10}")
        for what, model, command in rows:
            median, least = milliseconds(command, args.runs)
            print(f"{what:44} {model:20} {median:10.1f} {least:10.1f}", flush=True)


if __name__ == "__main__":
    main()
