#!/usr/bin/env python3
"""What tuning gains over the default schedules of a device's kernels: a model tuned on an OpenCL device (PoCL), then both measured again side by side.

    opencl_gains.py --tilewright BUILD/tilewright MODEL.onnx [--target opencl-generic] [--log FILE] [--time 20m] [--check 3] [--markdown FILE]

Tuning goes on from the log where it stopped. The ratios come from `tune --check` alone, which runs default and tuned kernels in turns, in several processes. Prints a line a kernel and the geometric mean.
"""
import argparse
import json
import math
import pathlib
import subprocess


def tune(args, *more):
    command = [args.tilewright, "tune", args.model, "-t", args.target, "--log", args.log, "--json", *more]
    lines = subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout.splitlines()
    return json.loads(lines[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--target", default="opencl-generic")
    parser.add_argument("--log", default="opencl_gains.db")
    parser.add_argument("--time", default="20m", help="0: measure what the log has")
    parser.add_argument("--check", type=int, default=3)
    parser.add_argument("--markdown", type=pathlib.Path)
    args = parser.parse_args()
    if args.time != "0":
        tune(args, "--time", args.time)
    lines = ["| kernel | calls | default, ms | tuned, ms | ratio |", "|---|---|---|---|---|"]
    ratios = []
    for task in tune(args, "--check", args.check)["tasks"]:
        if not task["seconds"]:
            continue
        ratios.append(task["default_seconds"] / task["seconds"])
        lines.append(f"| {task['name']} | {task['calls']} | {task['default_seconds'] * 1e3:.3f} | {task['seconds'] * 1e3:.3f} | {ratios[-1]:.2f} |")
    lines.append(f"| geometric mean | | | | {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} |")
    print("\n".join(lines))
    if args.markdown:
        args.markdown.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
