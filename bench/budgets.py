#!/usr/bin/env python3
"""Quality against budget: what each way to choose schedules reaches after 1, 4, 16, .. measurements, on kernels of networks that no predictor has seen,
with the generated space and without static rules.

    budgets.py --tilewright BUILD/tilewright --folder OUT [--kernels 20] [--minutes 40] [--methods random,gbt,ranker] MODEL.onnx ...

A point of a kernel is measured once: all methods and seeds use one log as a table, as in search_curves.py. The quality of a budget is the best time known
of the kernel over the best of so many measurements; "1" is the choice that a predictor makes without any. Beside it the default schedule, which rules made.
With --whole all kernels of each network are taken, and a second table has the networks: the default schedules' time over that of the first choices.
Writes OUT/budgets.json after each kernel and OUT/budgets.md; called again it goes on with what is missing.
"""
import json
import math
import random
import statistics

import search_curves

FLAGS = {"random": ["--tuner", "random"], "genetic": ["--tuner", "genetic"], "gbt": ["--tuner", "gbt"], "one-shot": ["--tuner", "one-shot"],
         "tlp": ["--tuner", "tlp"], "mtl-tlp": ["--tuner", "mtl-tlp"], "ranker": ["--tuner", "ranker"]}
BUDGETS = [1, 4, 16, 64, 256, 1000]


def best_after(run, budget):
    return min((seconds for trial, seconds in run["gains"] if trial <= budget), default=math.inf)


def best_known(entry):
    return min(run["gains"][-1][1] for runs in entry["methods"].values() for run in runs if run["gains"])


def measure(args, kernel, entry):
    for method in args.methods:
        if method in entry["methods"]:
            continue
        trials = args.trials if method in ("random", "genetic", "gbt") else args.predicted_trials
        entry["methods"][method] = [search_curves.tune(args, kernel, FLAGS[method], seed, trials) for seed in range(1, args.seeds + 1)]
    if "default" not in entry:   # the rules' own, in the same log
        lines = search_curves.run(args.tilewright, "tune", kernel["model"], "-t", args.target, "--kernel", kernel["kernel"], "--log", args.folder / "defaults.db",
                                  "--trials", 1, "--json").splitlines()
        entry["default"] = json.loads(lines[-1])["tasks"][0]["default_seconds"]


def qualities(entry, method, budget):
    best = best_known(entry)
    return [best / best_after(run, budget) for run in entry["methods"][method]]


def interval(entries, value, draws=2000):
    """A 95 % interval of the geometric mean, by drawing networks (families) anew."""
    groups = {}
    for entry in entries:
        groups.setdefault(entry["model"], []).append(math.log(max(value(entry), 1e-9)))
    names, generator = list(groups), random.Random(1)
    means = sorted(statistics.fmean([v for name in generator.choices(names, k=len(names)) for v in groups[name]]) for _ in range(draws))
    return math.exp(means[int(0.025 * draws)]), math.exp(means[int(0.975 * draws)])


def table(args, entries):
    lines = ["| method | " + " | ".join(f"{b} measured" for b in BUDGETS) + " | 10th percentile at 1 |", "|" + "---|" * (len(BUDGETS) + 2)]
    for method in args.methods:
        have = [e for e in entries if method in e["methods"] and all(run["gains"] for run in e["methods"][method])]
        if not have:
            continue
        cells = []
        for budget in BUDGETS:
            if budget > max(run["trials"] for e in have for run in e["methods"][method]):
                cells.append("-")
                continue
            value = lambda e: statistics.fmean(qualities(e, method, budget))
            low, high = interval(have, value)
            cells.append(f"{search_curves.geomean([max(value(e), 1e-9) for e in have]):.3f} ({low:.3f}..{high:.3f})")
        firsts = sorted(statistics.fmean(qualities(e, method, 1)) for e in have)
        tenth = firsts[max(0, math.ceil(0.1 * len(firsts)) - 1)]
        lines.append(f"| {method} | " + " | ".join(cells) + f" | {tenth:.3f} |")
    lasting = [e for e in entries if e.get("default")]
    lines += ["", f"The default schedule, which rules made: {search_curves.geomean([best_known(e) / e['default'] for e in lasting]):.3f} of the best known "
              f"(another space; above 1: better than all that was measured here). {len(entries)} kernels, {args.seeds} seeds."]
    return "\n".join(lines) + "\n"


def networks(args, entries):
    """Of networks whose kernels are all there: the defaults' time over that of the first, and of the best of the first 64."""
    lines = ["", "| network | kernels | " + " | ".join(f"{method}, 1 | {method}, 64" for method in args.methods) + " |", "|" + "---|" * (2 + 2 * len(args.methods))]
    for model in dict.fromkeys(e["model"] for e in entries):
        own = [e for e in entries if e["model"] == model and e.get("default") and set(args.methods) <= e["methods"].keys()]
        usual = sum(e["calls"] * e["default"] for e in own)
        cells = [f"{usual / sum(e['calls'] * statistics.median(best_after(run, budget) for run in e['methods'][method]) for e in own):.3f}"
                 for method in args.methods for budget in (1, 64)]
        lines.append(f"| {model} | {len(own)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = search_curves.flags(__doc__, trials=256, most_flops=1e9, minutes=40)
    parser.add_argument("--methods", default="random,gbt,genetic,one-shot,tlp,mtl-tlp,ranker", type=lambda text: text.split(","))
    parser.add_argument("--predicted-trials", type=int, default=64, help="of methods that learn nothing from measurements but random search")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--whole", action="store_true", help="all kernels of each network")
    args = parser.parse_args()
    kernels = [k for model in args.models for k in search_curves.kernels_of(args, model)] if args.whole else search_curves.choose(args, args.models)
    search_curves.go_on(args, "budgets.json", kernels, lambda entry: set(args.methods) <= entry["methods"].keys(), measure,
                        lambda entries: {"budgets.md": table(args, entries) + (networks(args, entries) if args.whole else "")})


if __name__ == "__main__":
    main()
