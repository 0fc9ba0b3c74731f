#!/usr/bin/env python3
"""Attention alone, at many sizes, in percent of the peak that bench/machine_peak.c measures in the same run, beside onnxruntime's time.

    attention.py --tilewright BUILD/tilewright [--target host] [--tokens 64,197,512] [--widths 32,64,128] [--heads 8] [--causal] [--threads 1]
                 [--rounds 5] [--seconds 0.3] [--without-rival]

A row per size: the least time of all rounds and the median of the rounds' least ones, GFLOP/s and percent of the peak by both, the rival's
least time over ours (above 1: Tilewright is faster). FLOPs are those of the two products; with --causal half of them, as far as a query sees.
Rounds of both alternate. Needs: clang-22, numpy, onnx, onnxruntime.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from kernels import build_peak, measure_peak  # noqa: E402


def make_model(path, heads, tokens, width, causal):
    shape = [1, heads, tokens, width]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "qkvy"]
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], is_causal=int(causal))
    graph = helper.make_graph([node], "attention", values[:3], values[3:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10), path)


def make_rival(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "1")
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def time_rival(session, inputs, seconds):
    least, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        session.run(None, inputs)
        least = min(least, time.perf_counter() - begin)
    return least * 1e3


def time_ours(args, library):
    command = [args.tilewright, "bench", library, "--threads", args.threads, "--seconds", args.seconds, "--json"]
    return json.loads(subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout)["min"]


def measure(args, folder, tokens, width):
    model, library = folder / "attention.onnx", folder / "attention.so"
    make_model(model, args.heads, tokens, width, args.causal)
    subprocess.run([args.tilewright, "compile", model, "-t", args.target, "-o", library], check=True, capture_output=True)
    generator = np.random.default_rng(1)
    inputs = {name: generator.standard_normal((1, args.heads, tokens, width), dtype=np.float32) for name in "qkv"}
    rival = None if args.without_rival else make_rival(model, args.threads)
    ours, theirs = [], []
    for _ in range(args.rounds):
        ours.append(time_ours(args, library))
        if rival:
            theirs.append(time_rival(rival, inputs, args.seconds))
    seen = tokens * (tokens + 1) // 2 if args.causal else tokens * tokens
    return 4 * args.heads * width * seen, ours, theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    parser.add_argument("--target", default="host")
    parser.add_argument("--tokens", default="64,128,197,256,512,1024")
    parser.add_argument("--widths", default="32,64,128")
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--without-rival", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        peak = build_peak(args.target, folder)
        print(f"{'tokens':>6} {'width':>5} {'least ms':>9} {'median':>9} {'GFLOP/s':>8} {'% peak':>7} {'median':>7} {'rival/ours':>10}")
        for tokens in map(int, args.tokens.split(",")):
            for width in map(int, args.widths.split(",")):
                peaks = [measure_peak(peak, args.threads)]
                flops, ours, theirs = measure(args, folder, tokens, width)
                peaks.append(measure_peak(peak, args.threads))
                least, middle = min(ours), statistics.median(ours)
                percent = [100 * flops / ms * 1e-6 / max(peaks) for ms in (least, middle)]
                ratio = f"{min(theirs) / least:10.2f}" if theirs else ""
                print(f"{tokens:6d} {width:5d} {least:9.4f} {middle:9.4f} {flops / least * 1e-6:8.1f} {percent[0]:7.1f} {percent[1]:7.1f} {ratio}", flush=True)


if __name__ == "__main__":
    main()
