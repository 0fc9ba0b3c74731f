#!/usr/bin/env python3
"""Times compiled models against onnxruntime, block by block in turn, and prints the ratio of medians.

    compare_onnxruntime.py --tilewright BUILD/tilewright [--threads 1] [--blocks 9] MODEL.onnx ...

A ratio above 1 means that Tilewright is faster. The machine's noise shows in the spread of the block ratios.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnxruntime


def make_session(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.force_spinning_stop", "1")   # between runs its threads would take our core
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def make_inputs(session):
    generator = np.random.default_rng(1)
    inputs = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else 1 for d in i.shape]
        inputs[i.name] = (generator.standard_normal(shape, dtype=np.float32) if i.type == "tensor(float)"
                          else generator.integers(0, 2, shape, dtype=np.int64))
    return inputs


def time_session(session, inputs, seconds):
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        session.run(None, inputs)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def time_artifact(tilewright, artifact, threads, seconds):
    done = subprocess.run([tilewright, "bench", artifact, "--threads", str(threads), "--seconds", str(seconds), "--json"],
                          check=True, capture_output=True, text=True)
    return statistics.median(json.loads(done.stdout)["ms"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--blocks", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.0)
    args = parser.parse_args()
    print(f"{'model':18} {'onnxruntime ms':>15} {'tilewright ms':>14} {'ratio':>6}  block ratios")
    with tempfile.TemporaryDirectory() as work:
        for model in args.models:
            artifact = pathlib.Path(work) / f"{model.stem}.so"
            subprocess.run([args.tilewright, "compile", model, "-o", artifact], check=True, stdout=subprocess.DEVNULL)
            session = make_session(model, args.threads)
            inputs = make_inputs(session)
            time_session(session, inputs, 0.5)
            pairs = []
            for _ in range(args.blocks):
                pairs.append((time_session(session, inputs, args.seconds),
                              time_artifact(args.tilewright, artifact, args.threads, args.seconds)))
            ratios = sorted(a / b for a, b in pairs)
            ort, ours = statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)
            print(f"{model.stem:18} {ort:15.2f} {ours:14.2f} {statistics.median(ratios):6.2f}  "
                  f"{ratios[0]:.2f} .. {ratios[-1]:.2f}", flush=True)


if __name__ == "__main__":
    main()
