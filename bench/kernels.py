#!/usr/bin/env python3
"""Compares our convolution and matrix-product kernels with oneDNN's (through OpenVINO), layer by layer inside whole models,
so that both see the layouts, fused epilogues and cold weights of a real run. Blocks of both alternate.

    kernels.py --tilewright BUILD/tilewright [--threads 1] [--blocks 5] MODEL.onnx ...

Per layer: medians in ms, the ratio (above 1: Tilewright is faster), GFLOP/s and percent of the multiply-add peak that the same
run measured. FLOPs are the kernel's own: one that saves multiplications (Winograd, Strassen) is counted with those it does.
Needs: numpy, onnx, openvino.
"""
import argparse
import collections
import json
import math
import pathlib
import statistics
import subprocess
import tempfile

import numpy as np
import onnx
import openvino

LAYERS = {"Conv", "ConvTranspose", "MatMul", "Gemm"}


def load_rival(path, threads):
    core = openvino.Core()
    model = core.read_model(path)
    model.reshape({i: [d.get_length() if d.is_static else 1 for d in i.partial_shape] for i in model.inputs})
    options = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32", "PERF_COUNT": True}
    return core.compile_model(model, "CPU", options)


def make_inputs(compiled):
    generator = np.random.default_rng(1)
    return [generator.standard_normal(i.shape, dtype=np.float32) if i.element_type == openvino.Type.f32
            else generator.integers(0, 2, i.shape).astype(i.element_type.to_dtype()) for i in compiled.inputs]


def time_rival(request, inputs, runs, samples):
    for _ in range(runs):
        request.infer(inputs)
        for info in request.profiling_info:
            samples[info.node_name.removesuffix("/WithoutBiases")].append(info.real_time.total_seconds() * 1e3)


def time_ours(tilewright, artifact, threads, runs):
    command = [tilewright, "bench", artifact, "--threads", str(threads), "--runs", str(runs), "--per-kernel", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def layers_of(path):
    """Names under which the layers may appear: the node's, or its output's."""
    graph = onnx.load(path, load_external_data=False).graph
    return [(n.op_type, {n.name, n.output[0]} - {""}) for n in graph.node if n.op_type in LAYERS]


def compare(args, path, folder):
    artifact = pathlib.Path(folder) / f"{path.stem}.so"
    subprocess.run([args.tilewright, "compile", path, "-o", artifact], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    compiled = load_rival(path, args.threads)
    inputs, request = make_inputs(compiled), compiled.create_infer_request()
    rival, ours, peaks = collections.defaultdict(list), collections.defaultdict(list), []
    time_rival(request, inputs, 2, collections.defaultdict(list))
    for _ in range(args.blocks):
        time_rival(request, inputs, args.runs, rival)
        result = time_ours(args.tilewright, artifact, args.threads, args.runs)
        peaks.append(result["peaks"]["gflops"])
        for call in result["calls"]:
            ours[call["name"]].append(call)
    print(f"{path.stem}: peak {max(peaks):.0f} GFLOP/s with {args.threads} thread(s)")
    report(layers_of(path), rival, ours, max(peaks))


def report(layers, rival, ours, peak):
    rows, missed = {}, 0
    for kind, names in layers:
        calls = tuple(c for c in ours if names & set(c.split("+")))
        node = next((n for n in rival if n in names), None)
        theirs = statistics.median(rival[node]) if node else 0
        if not calls or theirs == 0 or calls in rows:
            missed += 1
            continue
        mine = sum(statistics.median(c["ms"] for c in ours[call]) for call in calls)
        kernels = "+".join(ours[call][0]["kernel"] for call in calls)
        rows[calls] = (mine, theirs, sum(ours[call][0]["flops"] for call in calls), f"{kind} {kernels} {node}")
    print(f"{'ours ms':>9} {'oneDNN ms':>9} {'ratio':>6} {'GFLOP/s':>8} {'% peak':>7}  layer")
    for mine, theirs, flops, text in sorted(rows.values(), reverse=True):
        speed = flops / mine * 1e-6
        print(f"{mine:9.4f} {theirs:9.4f} {theirs / mine:6.2f} {speed:8.1f} {100 * speed / peak:7.1f}  {text}")
    if rows:
        mean = math.exp(statistics.mean(math.log(theirs / mine) for mine, theirs, _, _ in rows.values()))
        mine, theirs = (sum(r[i] for r in rows.values()) for i in (0, 1))
        print(f"{mine:9.4f} {theirs:9.4f} {theirs / mine:6.2f}  {len(rows)} layers, geometric mean {mean:.2f}; {missed} without a partner", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--runs", type=int, default=10, help="a block's runs")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for path in args.models:
            compare(args, path, folder)


if __name__ == "__main__":
    main()
