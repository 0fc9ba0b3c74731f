#!/usr/bin/env python3
"""Do tuned kernels keep their rank? Each model is tuned (or its records in the log are taken), then the best record of every kernel is measured beside the
default schedule in fresh processes.

    rank_check.py --tilewright BUILD/tilewright --log FILE [--target host] [--trials 0] [--processes 5] [--markdown FILE] MODEL.onnx ...

A rank is kept when the ratio is on one side of 1 in all processes; a kernel whose whole range lies in the band of the default schedule against
itself is a draw, which has no rank to keep, as has one that takes its default schedule.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess


def run(*command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


def judge(kernel):
    ratios = [math.sqrt(a * b) / t for a, b, t in zip(kernel["default"], kernel["default_again"], kernel["tuned"])]
    noise = max(max(a, b) / min(a, b) for a, b in zip(kernel["default"], kernel["default_again"]))
    low, high = min(ratios), max(ratios)
    if kernel["by_default"]:
        verdict = "default"
    elif low > 1:
        verdict = "faster"
    elif high < 1:
        verdict = "slower"
    else:
        verdict = "draw" if high <= noise and low >= 1 / noise else "changes"
    return statistics.median(ratios), low, high, noise, verdict


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    parser.add_argument("--log", required=True, type=pathlib.Path)
    parser.add_argument("--target", default="host")
    parser.add_argument("--trials", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    lines = ["| kernel | algorithm | tuned, ms | default / tuned | default / itself, at most | rank |", "|---|---|---|---|---|---|"]
    counts = {}
    for model in args.models:
        common = [model, "-t", args.target, "--log", args.log, "--threads", args.threads, "--json"]
        if args.trials:
            run(args.tilewright, "tune", *common, "--trials", args.trials, "--no-prove")
        for kernel in map(json.loads, run(args.tilewright, "tune", *common, "--check", args.processes).splitlines()):
            ratio, low, high, noise, verdict = judge(kernel)
            counts[verdict] = counts.get(verdict, 0) + 1
            lines.append(f"| {model.stem}: {kernel['name']} | {kernel['algorithm']} | {statistics.median(kernel['tuned']) * 1e3:.4f} | {ratio:.3f} ({low:.3f} .. {high:.3f}) "
                         f"| {noise:.3f} | {verdict} |")
            print(lines[-1], flush=True)
    lines += ["", ", ".join(f"{verdict}: {count}" for verdict, count in sorted(counts.items()))]
    print(lines[-1])
    if args.markdown:
        args.markdown.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
