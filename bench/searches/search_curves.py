#!/usr/bin/env python3
"""Search methods against each other: best time found so far by trials, on kernels of whole models, with the generated space and without static rules.

    search_curves.py --tilewright BUILD/tilewright --folder OUT [--kernels 20] [--trials 333] [--random-trials 1000] [--minutes 40] MODEL.onnx ...

A point of a kernel is measured once: all methods and seeds read and write one log as a table, which answers what they ask for and teaches them nothing
else (tune --table). Spaces below --exhaustive points are measured whole. Beside the curves: the default schedule and the best point measured again
in fresh processes, the default schedule against itself (the noise band), and a random legal point (the first of random search).
Writes OUT/curves.json (of each run the trials that gained) after each kernel, OUT/curves.md and OUT/curves.svg; called again it goes on with what is missing.
"""
import argparse
import collections
import json
import math
import pathlib
import statistics
import subprocess
import time

METHODS = {"gbt": ("#c0392b", ["--tuner", "gbt"]), "gbt, knobs": ("#e59866", ["--tuner", "gbt", "--features", "knob"]), "genetic": ("#2471a3", ["--tuner", "genetic"]),
           "random": ("#7f8c8d", ["--tuner", "random"])}   # with the curves' colours; gbt learns from loops if nothing else is said


NOTHING_WORKS = 4   # tune's exit code


def run(*command, codes=(0,)):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode not in codes:
        raise SystemExit(f"{' '.join(done.args)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def documents(text):
    """JSON documents one after the other: rounds and a summary, or an error."""
    out, decoder, at = [], json.JSONDecoder(), 0
    while at < len(text):
        document, at = decoder.raw_decode(text, at)
        out.append(document)
        at += len(text[at:]) - len(text[at:].lstrip())
    return out


def kernels_of(args, model):
    spaces = json.loads(run(args.tilewright, "space", model, "-t", args.target, "--no-rules", "--json"))["kernels"]
    return [dict(kernel, model=str(model)) for kernel in spaces if args.least_points <= kernel["points"] <= args.most_points and kernel["flops"] <= args.most_flops]


def choose(args, models):
    """One of each family first, then the families in turns: always the one with most work, of the model that has fewest so far."""
    families = collections.defaultdict(list)
    for model in models:
        for kernel in kernels_of(args, model):
            families[kernel["family"]].append(kernel)
    chosen, seen, used = [], set(), collections.Counter()
    while len(chosen) < args.kernels and any(families.values()):
        for family in sorted(families):
            rest = [k for k in families[family] if k["task"] not in seen]
            families[family] = rest
            if rest and len(chosen) < args.kernels:
                best = min(rest, key=lambda k: (used[k["model"]], -k["flops"] * k["calls"]))
                chosen.append(best)
                seen.add(best["task"])
                used[best["model"]] += 1
    return chosen


def tune(args, kernel, flags, seed, trials, batch=None):
    start = time.monotonic()
    *rounds, summary = documents(run(args.tilewright, "tune", kernel["model"], "-t", args.target, "--kernel", kernel["kernel"], "--no-rules",
                                     "--table", "--log", args.folder / "table.db", *flags, "--seed", seed, "--trials", trials, "--batch", batch or args.batch, "--json",
                                     codes=(0, NOTHING_WORKS)))
    task = summary["tasks"][0] if "tasks" in summary else {"curve": [None] * trials, "trials": trials, "illegal": 0}
    curve = [math.inf if seconds is None else seconds for seconds in task["curve"][:trials]]   # until something has worked
    gains = [[trial + 1, seconds] for trial, seconds in enumerate(curve) if seconds < (curve[trial - 1] if trial else math.inf)]
    searching = [[r["round"]["trials"] + r["round"]["known"], round(r["searched"] - r["measuring"], 3)] for r in rounds]   # seconds by trials
    return {"gains": gains, "trials": len(curve), "measured": task["trials"], "seconds": round(time.monotonic() - start, 1), "illegal": task["illegal"],
            "searching": searching, "measuring": round(summary.get("measuring", 0), 3)}


def trials_of(args, method):
    return args.random_trials if method == "random" else args.trials


def new_entry(kernel):
    return {"name": kernel["name"], "family": kernel["family"], "model": pathlib.Path(kernel["model"]).stem, "points": kernel["points"], "task": kernel["task"], "calls": kernel["calls"],
            "methods": {}}


def measure(args, kernel, entry):
    """Adds to the entry the methods that it lacks."""
    if kernel["points"] < args.exhaustive and "exhaustive" not in entry:
        entry["exhaustive"] = best_of(tune(args, kernel, ["--tuner", "grid"], 1, int(kernel["points"])))
    for method, (_, flags) in METHODS.items():
        if method not in entry["methods"]:
            entry["methods"][method] = [tune(args, kernel, flags, seed, trials_of(args, method)) for seed in range(1, args.seeds + 1)]
    checked = [json.loads(line) for line in run(args.tilewright, "tune", kernel["model"], "-t", args.target, "--kernel", kernel["kernel"], "--log",
                                                args.folder / "table.db", "--check", args.processes, "--json").splitlines()]
    if checked:
        pairs = list(zip(checked[0]["default"], checked[0]["default_again"]))
        entry["default"] = statistics.median([math.sqrt(a * b) for a, b in pairs])
        entry["best_again"] = statistics.median(checked[0]["tuned"])
        entry["noise"] = max(max(a, b) / min(a, b) for a, b in pairs) - 1


def best_of(run_):
    return run_["gains"][-1][1] if run_["gains"] else math.inf


def flags(description, **defaults):
    """What all measurements of kernels' searches take."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    parser.add_argument("--target", default="host")
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("--kernels", type=int, default=20)
    parser.add_argument("--least-points", type=float, default=500, help="of the space")
    parser.add_argument("--most-points", type=float, default=math.inf)
    parser.add_argument("--most-flops", type=float)
    parser.add_argument("--trials", type=int)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--minutes", type=float, help="no kernel is begun later")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.set_defaults(**defaults)
    return parser


def go_on(args, name, kernels, whole, measure_, tables):
    """Measures the kernels whose entries in folder/name are not whole yet, and writes that file and `tables(entries)`, texts by file name, after each."""
    args.folder.mkdir(parents=True, exist_ok=True)
    results = args.folder / name
    entries = json.loads(results.read_text()) if results.exists() else []
    start = time.monotonic()
    for kernel in kernels:
        entry = next((e for e in entries if e["task"] == kernel["task"]), None)
        if entry and whole(entry):
            continue
        if time.monotonic() - start > args.minutes * 60:
            break
        if not entry:
            entry = new_entry(kernel)
            entries.append(entry)
        measure_(args, kernel, entry)
        results.write_text(json.dumps(entries))
        for file, text in tables([e for e in entries if whole(e)]).items():
            (args.folder / file).write_text(text)
        print(f"{(time.monotonic() - start) / 60:6.1f} min  {entry['model']}: {entry['name']}", flush=True)
    print((args.folder / f"{results.stem}.md").read_text(), end="")


def first_within(run_, bound):
    return next((trial for trial, seconds in run_["gains"] if seconds <= bound), None)


def geomean(values):
    return math.exp(statistics.fmean(math.log(v) for v in values)) if values else math.nan


def analyse(args, entry):
    """Trials that each method needs for the quality of random search at its end, within the noise band."""
    noise = min(max(entry.get("noise", 0.02), 0.01), 0.05)
    ends = {method: statistics.median(best_of(run_) for run_ in runs) for method, runs in entry["methods"].items()}
    bound = ends["random"] * (1 + noise)
    needed = {}
    for method, runs in entry["methods"].items():
        reached = [first_within(run_, bound) for run_ in runs]
        needed[method] = statistics.median([r if r else 2 * run_["trials"] for r, run_ in zip(reached, runs)])
    best = min(best_of(run_) for runs in entry["methods"].values() for run_ in runs)
    return {"noise": noise, "ends": ends, "needed": needed, "best": min(best, entry.get("exhaustive") or best)}


def table(args, entries):
    lines = ["| kernel | points | default, us | first random point | " + " | ".join(METHODS) + " | exhaustive | noise | trials to random's end: " + " | ".join(METHODS) + " |",
             "|" + "---|" * (6 + 2 * len(METHODS))]
    ratios = {method: [] for method in METHODS}
    finals = {method: [] for method in METHODS}
    for entry in entries:
        a = analyse(args, entry)
        us = lambda s: f"{s * 1e6:.1f}" if s and s < math.inf else "-"
        firsts = [run_["gains"][0][1] for run_ in entry["methods"]["random"] if run_["gains"]]
        for method in METHODS:
            ratios[method].append(args.random_trials / a["needed"][method])
            finals[method].append(a["ends"][method] / a["best"])
        lines.append(f"| {entry['model']}: {entry['name']} | {entry['points']:.3g} | {us(entry.get('default'))} | {us(statistics.median(firsts))} | " +
                     " | ".join(us(a["ends"][m]) for m in METHODS) + f" | {us(entry.get('exhaustive'))} | {a['noise']:.1%} | " +
                     " | ".join(f"{a['needed'][m]:.0f}" for m in METHODS) + " |")
    lines.append("")
    for method in METHODS:
        lines.append(f"* {method}: {geomean(ratios[method]) / geomean(ratios['random']):.2f} times fewer trials than random search for its quality, both counted up to where they reach it "
                     f"(geometric mean; within the noise band, a search that never reaches it counts twice its trials); "
                     f"{geomean(ratios[method]):.2f} times fewer than random search's whole {args.random_trials}, a third of these or less on {sum(r >= 3 for r in ratios[method])} of {len(entries)} kernels; "
                     f"after {trials_of(args, method)} trials {geomean(finals[method]):.3f} of the best time known")
    defaults = [entry["default"] / entry["best_again"] for entry in entries if entry.get("default")]
    lines.append(f"* best point known against the default schedule, measured again in {args.processes} processes: {geomean(defaults):.3f} x (geometric mean)")
    return "\n".join(lines) + "\n"


def panel(entry, a, x, y, width, height, most):
    """One kernel: x is log(trials), y the time over the best one known, from 1 to 2.5."""
    line_x = lambda trial: x + width * math.log(trial) / math.log(most)
    line_y = lambda seconds: y + height - height * (min(max(seconds / a["best"], 1), 2.5) - 1) / 1.5
    parts = [f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="none" stroke="#bbb"/>',
             f'<text x="{x}" y="{y - 4}" font-size="9">{entry["model"]}: {entry["name"][:40]}</text>',
             f'<rect x="{x}" y="{line_y(a["best"] * (1 + a["noise"])):.1f}" width="{width}" height="{height - line_y(a["best"] * (1 + a["noise"])) + y:.1f}" fill="#eee"/>']
    if entry.get("default"):
        parts.append(f'<line x1="{x}" x2="{x + width}" y1="{line_y(entry["default"]):.1f}" y2="{line_y(entry["default"]):.1f}" stroke="#000" stroke-dasharray="3"/>')
    for method, (colour, _) in METHODS.items():
        for run_ in entry["methods"][method]:
            ends = [trial for trial, _ in run_["gains"][1:]] + [run_["trials"]]   # where each best is passed
            points = [point for (trial, s), end in zip(run_["gains"], ends) for point in ((line_x(trial), line_y(s)), (line_x(end), line_y(s)))]
            path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="0.8"/>')
    return parts


def figure(args, entries):
    columns, width, height = 4, 220, 120
    parts = []
    for i, entry in enumerate(entries):
        parts += panel(entry, analyse(args, entry), 20 + i % columns * (width + 20), 30 + i // columns * (height + 30), width, height, args.random_trials)
    w, h = 20 + columns * (width + 20), 40 + (len(entries) + columns - 1) // columns * (height + 30)
    legend = "  ".join(f'<tspan fill="{c}">{m}</tspan>' for m, (c, _) in METHODS.items())
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" font-family="sans-serif"><text x="20" y="14" font-size="11">time over the best known (1 to 2.5) '
            f'by trials (1 to {args.random_trials}, log): {legend}; dashed: default schedule; grey: noise band</text>' + "".join(parts) + "</svg>\n")


def main():
    parser = flags(__doc__, trials=333, most_flops=2e7, minutes=40)
    parser.add_argument("--random-trials", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--exhaustive", type=float, default=2000, help="spaces of fewer points are searched whole at once")
    args = parser.parse_args()
    go_on(args, "curves.json", choose(args, args.models), lambda entry: METHODS.keys() <= entry["methods"].keys(), measure,
          lambda entries: {"curves.md": table(args, entries), "curves.svg": figure(args, entries)})


if __name__ == "__main__":
    main()
