#!/usr/bin/env python3
"""What tuning gains over the default schedules of a device's kernels: a model tuned on an OpenCL device (PoCL), then run whole with both.

    opencl_gains.py --tilewright BUILD/tilewright MODEL.onnx [--target opencl-generic] [--log FILE] [--time 20m] [--rounds 5] [--markdown FILE]

Tuning goes on from the log where it stopped. Kernels are those that were measured more than once, by the search's own times, in which default and tuned are not side by side; the last line is the whole model, the two libraries run in turns, minima of all rounds.
"""
import argparse
import json
import math
import pathlib
import subprocess
import tempfile


def run(args, *command):
    lines = subprocess.run([str(c) for c in (args.tilewright, *command)], check=True, capture_output=True, text=True).stdout
    return lines


def whole_model(args, folder):
    libraries = {"default": folder / "default.so", "tuned": folder / "tuned.so"}
    run(args, "compile", args.model, "-t", args.target, "-o", libraries["default"])
    run(args, "compile", args.model, "-t", args.target, "--log", args.log, "-o", libraries["tuned"])
    best = dict.fromkeys(libraries, math.inf)
    for _ in range(args.rounds):
        for name, library in libraries.items():
            best[name] = min(best[name], json.loads(run(args, "bench", library, "--seconds", 2, "--json"))["min"])
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--target", default="opencl-generic")
    parser.add_argument("--log", default="opencl_gains.db")
    parser.add_argument("--time", default="20m")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--markdown", type=pathlib.Path)
    args = parser.parse_args()
    result = json.loads(run(args, "tune", args.model, "-t", args.target, "--log", args.log, "--json", "--time", args.time).splitlines()[-1])
    lines = ["| kernel | calls | trials | default, ms | tuned, ms | ratio |", "|---|---|---|---|---|---|"]
    ratios = []
    for task in result["tasks"]:
        if not task["seconds"] or not task["default_seconds"] or task["trials"] < 2:
            lines.append(f"| {task['name']} | {task['calls']} | {task['trials']} | not measured | | |")
            continue
        ratios.append(task["default_seconds"] / task["seconds"])
        lines.append(f"| {task['name']} | {task['calls']} | {task['trials']} | {task['default_seconds'] * 1e3:.3f} | {task['seconds'] * 1e3:.3f} | {ratios[-1]:.2f} |")
    if ratios:
        lines.append(f"| geometric mean | | | | | {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} |")
    with tempfile.TemporaryDirectory() as folder:
        best = whole_model(args, pathlib.Path(folder))
    lines.append(f"| whole model | | | {best['default']:.3f} | {best['tuned']:.3f} | {best['default'] / best['tuned']:.2f} |")
    print("\n".join(lines))
    if args.markdown:
        args.markdown.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
