#!/usr/bin/env python3
"""What tuning gains on whole networks: each model is compiled with default schedules, tuned, compiled with the log, and the two libraries run in
turns, every run in a process of its own. A ratio is the median over the rounds of the default one's median time over the tuned one's.

    tuning.py --tilewright BUILD/tilewright --folder OUT [--time 120s | --trials 1000 | --in-compile one-shot] [--rounds 7] [--rivals rivals.json] MODEL.onnx ...

Nine models of two minutes each take half an hour. --in-compile: the words of `compile --tune` make the tuned library, and nothing is tuned before. --rivals: the JSON file of compare_rivals.py, whose best rival stands beside ours (of another run:
for orientation). Writes OUT/tuning.md and OUT/tuning.json after each model, and keeps the log in OUT/tuning.db; called again it goes on with the models
that are missing.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

THREADS = (1, 2)


def run(*command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


def interval(ratios):   # of the median, 95 % and more from seven rounds on: smallest and largest
    ordered = sorted(ratios)
    return statistics.median(ordered), ordered[0], ordered[-1]


def tune(args, model, log):
    start = time.monotonic()
    limit = ("--trials", args.trials) if args.trials else ("--time", args.time)
    lines = run(args.tilewright, "tune", model, "-t", args.target, "--log", log, *limit, "--json").splitlines()
    summary = json.loads(lines[-1])
    return summary["trials"], time.monotonic() - start


def time_both(args, libraries):
    times = {(name, threads): [] for name in libraries for threads in THREADS}
    for turn in range(args.rounds):
        for threads in THREADS:
            for name in list(libraries)[::1 if turn % 2 else -1]:
                result = json.loads(run(args.tilewright, "bench", libraries[name], "--threads", threads, "--seconds", args.seconds, "--json"))
                times[name, threads].append(result["median"])
    return times


def best_rival(rivals, model, threads):
    blocks = rivals.get("results", {}).get(model, {}).get(str(threads), {}).get("blocks", [])
    names = {name for block in blocks for name in block} - {"tilewright"}
    medians = {name: statistics.median(block[name] for block in blocks if name in block) for name in names}
    return min(((ms, name) for name, ms in medians.items()), default=None)


def measure(args, model, folder):
    libraries = {name: folder / f"{model.stem}.{name}.so" for name in ("default", "tuned")}
    log = args.folder / "tuning.db"
    run(args.tilewright, "compile", model, "-t", args.target, "-o", libraries["default"])
    if args.in_compile:
        start = time.monotonic()
        own = ("--log", folder / "own.db") if args.in_compile != "one-shot" else ()
        run(args.tilewright, "compile", model, "-t", args.target, "--tune", args.in_compile, *own, "-o", libraries["tuned"])
        trials, seconds = 0, time.monotonic() - start
    else:
        trials, seconds = tune(args, model, log)
        run(args.tilewright, "compile", model, "-t", args.target, "--log", log, "-o", libraries["tuned"])
    times = time_both(args, libraries)
    for library in libraries.values():
        library.unlink()
    return {"trials": trials, "minutes": seconds / 60, "times": {f"{name} {threads}": values for (name, threads), values in times.items()}}


def line_of(name, result, rivals):
    cells = [name, str(result["trials"]), f"{result['minutes']:.2f}"]
    for threads in THREADS:
        default, tuned = result["times"][f"default {threads}"], result["times"][f"tuned {threads}"]
        ratio, low, high = interval([a / b for a, b in zip(default, tuned)])
        rival = best_rival(rivals, name, threads)
        cells += [f"{statistics.median(default):.3f}", f"{statistics.median(tuned):.3f}", f"{ratio:.3f} ({low:.3f} .. {high:.3f})", f"{rival[1]} {rival[0]:.3f}" if rival else "-"]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("--target", default="host")
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("--time", default="120s")
    parser.add_argument("--trials", type=int, default=0, help="instead of --time")
    parser.add_argument("--in-compile", default="", metavar="WORDS", help="of compile --tune: one-shot, one-shot:4, 10s")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rivals", type=pathlib.Path)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    rivals = json.loads(args.rivals.read_text()) if args.rivals else {}
    head = ["model", "trials", "minutes"]
    for threads in THREADS:
        head += [f"default, {threads} thread(s), ms", "tuned", "ratio", "best rival"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    print("\n".join(lines), flush=True)
    args.folder.mkdir(parents=True, exist_ok=True)
    state = args.folder / "tuning.json"
    results = json.loads(state.read_text()) if state.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for model in args.models:
            if model.stem not in results:
                results[model.stem] = measure(args, model, pathlib.Path(folder))
                state.write_text(json.dumps(results))
            lines.append(line_of(model.stem, results[model.stem], rivals))
            print(lines[-1], flush=True)
            (args.folder / "tuning.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
