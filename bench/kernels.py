#!/usr/bin/env python3
"""Our convolution and matrix-product kernels, layer by layer inside whole models, so that layouts, fused epilogues and cold weights are
those of a real run: in percent of the peak that bench/machine_peak.c measures with the target's instruction set in the same run, and, with
--rival, against oneDNN (through OpenVINO) held to the same instruction set. Blocks of all alternate.

    kernels.py --tilewright BUILD/tilewright [--target x86-64-v3] [--algorithm direct] [--rival] [--threads 1] [--blocks 5] MODEL.onnx ...

Per kernel or layer: medians in ms, with --rival the ratio (above 1: Tilewright is faster), else the least time, GFLOP/s, percent of the peak,
by the least time too (what the code can do when other users of the machine leave it alone), stack accesses of inner loops. FLOPs are the kernel's own: one that saves multiplications (Winograd, Strassen) is counted with those it does. --folder keeps
the compiled models, so that a second call only measures. Needs: clang-22; with --rival numpy, onnx, openvino.
"""
import argparse
import collections
import json
import math
import os
import pathlib
import statistics
import subprocess
import tempfile

# What oneDNN calls a target's instruction set; others are not held back.
ISA = {"x86-64-v2": "SSE41", "x86-64-v3": "AVX2", "x86-64-v4": "AVX512_CORE"}
FEWEST_FLOPS = 2e7   # of a kernel in the table
LAYERS = {"Conv", "ConvTranspose", "MatMul", "Gemm"}


def load_rival(path, threads):
    import openvino
    core = openvino.Core()
    model = core.read_model(path)
    model.reshape({i: [d.get_length() if d.is_static else 1 for d in i.partial_shape] for i in model.inputs})
    options = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32", "PERF_COUNT": True}
    return core.compile_model(model, "CPU", options)


def make_inputs(compiled):
    import numpy as np
    import openvino
    generator = np.random.default_rng(1)
    return [generator.standard_normal(i.shape, dtype=np.float32) if i.element_type == openvino.Type.f32
            else generator.integers(0, 2, i.shape).astype(i.element_type.to_dtype()) for i in compiled.inputs]


def time_rival(request, inputs, runs, samples):
    for _ in range(runs):
        request.infer(inputs)
        for info in request.profiling_info:
            samples[info.node_name.removesuffix("/WithoutBiases")].append(info.real_time.total_seconds() * 1e3)


def time_ours(tilewright, artifact, threads, runs):
    command = [tilewright, "profile", artifact, "--threads", str(threads), "--runs", str(runs), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def layers_of(path):
    """Names under which the layers may appear: the node's, or its output's."""
    import onnx
    graph = onnx.load(path, load_external_data=False).graph
    return [(n.op_type, {n.name, n.output[0]} - {""}) for n in graph.node if n.op_type in LAYERS]


def build_peak(target, folder):   # of a description file: the machine's own
    source, program = pathlib.Path(__file__).with_name("machine_peak.c"), folder / f"peak.{pathlib.Path(target).stem}"
    if not program.exists():
        march = "native" if target == "host" or pathlib.Path(target).exists() else target
        subprocess.run(["clang-22", "-O3", f"-march={march}", "-ffp-contract=fast", "-pthread", source, "-o", program], check=True)
    return program


def measure_peak(program, threads):
    return json.loads(subprocess.run([program, str(threads)], check=True, capture_output=True, text=True).stdout)["fma_gflops"]


def compiled(args, path, target, folder):
    artifact = folder / f"{path.stem}.{pathlib.Path(target).stem}.{args.algorithm or 'default'}.so"
    if not artifact.exists():
        command = [args.tilewright, "compile", path, "-t", target, "-o", artifact] + (["--algorithm", args.algorithm] if args.algorithm else [])
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return artifact


def measure(args, path, target, folder):
    artifact, peak = compiled(args, path, target, folder), build_peak(target, folder)
    rival, ours, peaks = collections.defaultdict(list), collections.defaultdict(list), [measure_peak(peak, args.threads)]
    if args.rival:
        network = load_rival(path, args.threads)
        inputs, request = make_inputs(network), network.create_infer_request()
        time_rival(request, inputs, 2, collections.defaultdict(list))
    for _ in range(args.blocks):
        if args.rival:
            time_rival(request, inputs, args.runs, rival)
        for call in time_ours(args.tilewright, artifact, args.threads, args.runs)["calls"]:
            ours[call["name"]].append(call)
    peaks.append(measure_peak(peak, args.threads))
    print(f"{path.stem}, {target}: peak {max(peaks):.0f} GFLOP/s with {args.threads} thread(s)")
    if args.rival:
        report_layers(layers_of(path), rival, ours, max(peaks))
    else:
        report_kernels(ours, max(peaks))


def report_kernels(ours, peak):
    kernels = collections.defaultdict(list)
    for samples in ours.values():
        times = [c["ms"] for c in samples]
        kernels[samples[0]["kernel"]].append((statistics.median(times), min(times), samples[0]))
    print(f"{'calls':>5} {'ms':>9} {'least':>9} {'GFLOP/s':>8} {'% peak':>7} {'least':>6} {'spills':>6}  kernel, first call")
    for name, calls in sorted(kernels.items(), key=lambda k: -sum(c[0] for c in k[1])):
        ms, least, first = statistics.median(c[0] for c in calls), min(c[1] for c in calls), calls[0][2]
        if first["flops"] >= FEWEST_FLOPS:
            speed, most = first["flops"] / ms * 1e-6, first["flops"] / least * 1e-6
            print(f"{len(calls):5d} {ms:9.4f} {least:9.4f} {speed:8.1f} {100 * speed / peak:7.1f} {100 * most / peak:6.1f} {first['spills']:6d}  "
                  f"{name} {first['name'].split('+')[0]}", flush=True)


def report_layers(layers, rival, ours, peak):
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
    parser.add_argument("--target", default="host")
    parser.add_argument("--algorithm")
    parser.add_argument("--rival", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--runs", type=int, default=10, help="a block's runs")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--compile-only", action="store_true", help="into the folder")
    args = parser.parse_args()
    if args.target in ISA:
        os.environ["ONEDNN_MAX_CPU_ISA"] = ISA[args.target]   # before the library is loaded
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or pathlib.Path(temporary)
        folder.mkdir(exist_ok=True)
        for path in args.models:
            compiled(args, path, args.target, folder) if args.compile_only else measure(args, path, args.target, folder)


if __name__ == "__main__":
    main()
