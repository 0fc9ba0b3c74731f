#!/usr/bin/env python3
"""Times models as their exporters write them beside onnxruntime, with free sizes and with bound ones, on one thread, in turns.

    real_models.py --tilewright BUILD/tilewright --folder OUT [--only NAME,..] [--target host] [--rounds 7]

The models are those of tests/exports, made in the environment of `scripts/setup.sh rivals` and kept in OUT/models. A ratio is onnxruntime's median
over ours, each the median of the rounds. Writes OUT/real_models.md, the slowest beside onnxruntime first, and OUT/real_models.json after each model;
called again it goes on with what is missing.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/exports"), str(ROOT / "runtime")]
import exports  # noqa: E402
import tilewright  # noqa: E402

LARGE = 300e-6   # seconds of onnxruntime, from which a call's own cost counts little


def theirs(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(feeds):
        session.run(None, {name: value.astype(object) if value.dtype.kind == "U" else value for name, value in feeds.items()})
    return run


def ours(args, path, flags, library):
    subprocess.run([args.tilewright, "compile", path, "-t", args.target, "-o", library, *map(str, flags)], check=True, capture_output=True, text=True)
    model = tilewright.Model(str(library), threads=1)
    return lambda feeds: model(**feeds)


def block(run, feeds, seconds):
    """The median second of the calls that fit into the seconds, five at the least."""
    times, end = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        run(feeds)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure(args, entry):
    """Seconds of onnxruntime and of ours by the kind of sizes; or what went wrong."""
    path, runs = exports.written(entry, args.folder / "models")
    bound = exports.bound_dims(path, runs[0])
    forms = {"free": entry.flags, "bound": bound} if bound else {"bound": ()}
    found, rival = {}, theirs(path)
    for form, flags in forms.items():
        try:
            mine = ours(args, path, flags, args.folder / f"{entry.name}.{form}.so")
            for run in (rival, mine):
                run(runs[0])
        except subprocess.CalledProcessError as failed:
            found[form] = {"error": failed.stderr.strip().splitlines()[-1]}
            continue
        times = {"onnxruntime": [], "tilewright": []}
        for turn in range(args.rounds):
            for name, run in (("onnxruntime", rival), ("tilewright", mine))[::1 if turn % 2 else -1]:
                times[name].append(block(run, runs[0], args.seconds))
        found[form] = {name: statistics.median(values) for name, values in times.items()}
        (args.folder / f"{entry.name}.{form}.so").unlink()
    return found


def page(results):
    rows = [(form, name, times) for name, found in results.items() for form, times in found.items()]
    failed = [f"* {name}, {form}: {times['error']}" for form, name, times in rows if "error" in times]
    timed = sorted((times["onnxruntime"] / times["tilewright"], form, name, times) for form, name, times in rows if "error" not in times)
    lines = []
    for form in ("bound", "free"):
        for title, least in ((f"from {LARGE * 1e6:.0f} us of onnxruntime on", LARGE), ("all", 0)):
            ratios = [ratio for ratio, of, _, times in timed if of == form and times["onnxruntime"] >= least]
            if ratios:
                mean = math.exp(statistics.mean(map(math.log, ratios)))
                lines.append(f"* {form} sizes, {title}: {len(ratios)} models, {mean:.2f} in the geometric mean, the least {min(ratios):.2f}")
    lines += ["", "| model | sizes | onnxruntime, ms | tilewright, ms | ratio |", "|---|---|---|---|---|"]
    lines += [f"| {name} | {form} | {times['onnxruntime'] * 1e3:.3f} | {times['tilewright'] * 1e3:.3f} | {ratio:.2f} |" for ratio, form, name, times in timed]
    return "\n".join(lines + failed) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--target", default="host")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.2)
    args = parser.parse_args()
    (args.folder / "models").mkdir(parents=True, exist_ok=True)
    state = args.folder / "real_models.json"
    results = json.loads(state.read_text()) if state.exists() else {}
    for name in args.only.split(",") if args.only else exports.EXPORTS:
        if name not in results:
            results[name] = measure(args, exports.EXPORTS[name])
            state.write_text(json.dumps(results))
        for form, times in results[name].items():
            print(f"{name:28} {form:6}", times.get("error") or f"{times['onnxruntime'] / times['tilewright']:.2f} of {times['onnxruntime'] * 1e3:.3f} ms", flush=True)
    (args.folder / "real_models.md").write_text(page(results))


if __name__ == "__main__":
    np.random.seed(1)
    main()
