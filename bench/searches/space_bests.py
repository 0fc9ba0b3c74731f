#!/usr/bin/env python3
"""What the generated space holds: the best point of a search without static rules against the default schedule, kernel by kernel.

    space_bests.py --tilewright BUILD/tilewright --folder OUT [--kernels 20] [--trials 1000] [--minutes 60] MODEL.onnx ...

The kernels are those of search_curves.py. A kernel's search begins with its default schedule, as every search does; so that the best is one of the space,
records of defaults are left out before the best one is measured again beside the default, in fresh processes and in turns.
Writes OUT/bests.json after each kernel and OUT/bests.md; called again it goes on with what is missing, a kernel's own search too.
"""
import json
import math
import statistics

import search_curves


def search(args, kernel, log):
    lines = search_curves.run(args.tilewright, "tune", kernel["model"], "-t", args.target, "--kernel", kernel["kernel"], "--no-rules",
                              "--log", log, "--seed", args.seed, "--trials", args.trials, "--jobs", args.jobs, "--json").splitlines()
    return json.loads(lines[-1])["tasks"][0]


def of_the_space(args, log):
    """A log of the records whose schedules are points of the space."""
    lines, points = log.with_suffix(".jsonl"), log.with_suffix(".points.db")
    search_curves.run(args.tilewright, "log", "export", lines, "--log", log)
    records = [json.loads(line) for line in lines.read_text().splitlines()]
    kept = [r for r in records if r.get("status") == "ok" and "{" in r["about"]]
    texts = [r for r in records if "status" not in r]   # of kernels and tasks
    lines.write_text("".join(json.dumps(r) + "\n" for r in texts + kept))
    points.unlink(missing_ok=True)
    search_curves.run(args.tilewright, "log", "import", lines, "--log", points)
    best = min(kept, key=lambda r: r["seconds"], default=None)
    return points, best and best["about"].split(" ")[-1 - best["about"].split("{")[1].count(" ")].split("{")[0]


def measure(args, kernel, entry):
    log = args.folder / f"{kernel['task']}.db"
    task = search(args, kernel, log)
    points, sketch = of_the_space(args, log)
    entry.update(trials=task["trials"], illegal=task["illegal"], sketch=sketch)
    checked = search_curves.run(args.tilewright, "tune", kernel["model"], "-t", args.target, "--kernel", kernel["kernel"], "--log", points,
                                "--check", args.processes, "--json").splitlines()
    if checked:
        told = json.loads(checked[0])
        pairs = list(zip(told["default"], told["default_again"]))
        entry["default"] = min(min(pair) for pair in pairs)
        entry["best"] = min(told["tuned"])
        entry["median_ratio"] = statistics.median(math.sqrt(a * b) for a, b in pairs) / statistics.median(told["tuned"])
        entry["noise"] = max(max(a, b) / min(a, b) for a, b in pairs) - 1


def table(entries):
    lines = ["| kernel | points | trials | sketch of the best | default, us | best, us | least / least | median / median | default against itself |",
             "|" + "---|" * 9]
    for e in entries:
        if "best" not in e:
            lines.append(f"| {e['model']}: {e['name']} | {e['points']:.2g} | {e['trials']} | none |  |  |  |  |  |")
            continue
        lines.append(f"| {e['model']}: {e['name']} | {e['points']:.2g} | {e['trials']} | {e['sketch']} | {e['default'] * 1e6:.1f} | {e['best'] * 1e6:.1f} | "
                     f"{e['default'] / e['best']:.3f} | {e['median_ratio']:.3f} | {e['noise']:.1%} |")
    ratios = [e["default"] / e["best"] for e in entries if "best" in e]
    lines += ["", f"{len(ratios)} kernels, geometric mean {search_curves.geomean(ratios):.3f} (medians: "
                  f"{search_curves.geomean([e['median_ratio'] for e in entries if 'best' in e]):.3f}), below 0.97: {sum(r < 0.97 for r in ratios)}"]
    return "\n".join(lines) + "\n"


def main():
    parser = search_curves.flags(__doc__, trials=1000, most_flops=2e8, minutes=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=0)
    args = parser.parse_args()
    search_curves.go_on(args, "bests.json", search_curves.choose(args, args.models), lambda entry: "sketch" in entry, measure,
                        lambda entries: {"bests.md": table(entries)})


if __name__ == "__main__":
    main()
