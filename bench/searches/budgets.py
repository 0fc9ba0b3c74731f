#!/usr/bin/env python3
"""Quality against budget: what each way to choose schedules reaches after 0, 1, 4, 16, .. measurements, on kernels of networks that no predictor has seen,
without static rules.

    budgets.py --tilewright BUILD/tilewright --folder OUT [--kernels 20] [--minutes 40] [--methods random,gbt,ranker] MODEL.onnx ...

A point of a kernel is measured once: all methods and seeds use one log as a table, as in search_curves.py. Beside the methods stands the default schedule,
which rules made. What each method has chosen after 1, 16, 64 and all of its measurements is then measured again beside the default schedule, in
--processes fresh processes and in turns. With --whole all kernels of each network are taken, and there are tables of networks.
Writes OUT/budgets.json after each kernel, OUT/budgets.md with the tables of budget_tables.py, and OUT/budgets.svg; called again it goes on with what is
missing. TILEWRIGHT_PREDICTORS names the folder of the predictors, where they are others than the installed ones.
"""
import json
import re
import statistics

import budget_tables
import search_curves

FLAGS = {"random": ["--tuner", "random"], "genetic": ["--tuner", "genetic"], "gbt": ["--tuner", "gbt"], "one-shot": ["--tuner", "one-shot"],
         "tlp": ["--tuner", "tlp"], "mtl-tlp": ["--tuner", "mtl-tlp"], "ranker": ["--tuner", "ranker"]}
PREDICTED = ("one-shot", "tlp", "mtl-tlp", "ranker")
CHECKED = (1, 16, 64)
BATCHES = {"gbt": 64, "one-shot": 64, "tlp": 64, "mtl-tlp": 64}   # AutoTVM's own; the papers' predictors explore once


def trials_of(args, method):
    return args.autotvm_trials if method == "gbt" else args.predicted_trials if method in PREDICTED else args.trials


def measure(args, kernel, entry):
    for method in args.methods:
        if method not in entry["methods"]:
            entry["methods"][method] = [search_curves.tune(args, kernel, FLAGS[method], seed, trials_of(args, method), BATCHES.get(method))
                                          for seed in range(1, (args.seeds if method in PREDICTED else args.search_seeds) + 1)]
    if "default" not in entry:   # the rules' own, in a log of its own
        lines = search_curves.run(args.tilewright, "tune", kernel["model"], "-t", args.target, "--kernel", kernel["kernel"], "--log", args.folder / "defaults.db",
                                  "--trials", 1, "--json").splitlines()
        entry["default"] = json.loads(lines[-1])["tasks"][0]["default_seconds"]
    if args.processes > 0:
        measure_again(args, kernel, entry)


def records_of(args, task):
    """Of a task in the table: {median seconds: record}, and the lines that describe kernels and tasks."""
    lines = args.folder / "table.jsonl"
    search_curves.run(args.tilewright, "log", "export", lines, "--log", args.folder / "table.db")
    records = [json.loads(line) for line in lines.read_text().splitlines()]
    texts = [r for r in records if "status" not in r]
    return {statistics.median(r["seconds"]): r for r in records if r.get("status") == "ok" and r["task"] == task}, texts


def measure_again(args, kernel, entry):
    """entry["again"]: {method: {measurements: speed over the default schedule}} of the first seed's choices."""
    again = entry.setdefault("again", {})
    missing = [method for method in args.methods if method not in again]
    if not missing:
        return
    records, texts = records_of(args, kernel["task"])
    speeds = {}
    for method in missing:
        run = entry["methods"][method][0]
        budgets = [b for b in CHECKED if b <= run["trials"]] + [run["trials"]]
        chosen = {budget: min((seconds for trial, seconds in run["gains"] if trial <= budget), default=None) for budget in budgets}
        for seconds in chosen.values():
            if seconds is not None and seconds not in speeds:
                speeds[seconds] = speed(args, kernel, records[min(records, key=lambda known: abs(known - seconds))], texts)
        again[method] = {str(budget): speeds.get(seconds) for budget, seconds in chosen.items()}


def speed(args, kernel, record, texts):
    """Of a record's schedule over the default one, both measured in turns; None where either fails."""
    lines, log = args.folder / "winner.jsonl", args.folder / "winner.db"
    lines.write_text("".join(json.dumps(line) + "\n" for line in [*texts, record]))
    log.unlink(missing_ok=True)
    search_curves.run(args.tilewright, "log", "import", lines, "--log", log)
    checked = search_curves.run(args.tilewright, "tune", kernel["model"], "-t", args.target, "--kernel", kernel["kernel"], "--log", log, "--check", args.processes,
                                "--json").splitlines()
    if not checked:
        return None
    first = json.loads(checked[0])
    return min(first["default"] + first["default_again"]) / min(first["tuned"])


def one_core(args):
    """The target with a core: kernels are of one thread, so what would leave other cores idle is as good as the rest."""
    text = search_curves.run(args.tilewright, "target", args.target)
    args.folder.mkdir(parents=True, exist_ok=True)
    path = args.folder / "one_core.yaml"
    path.write_text(re.sub(r"(?m)^cores: .*$", "cores: 1", text))
    return path


def main():
    parser = search_curves.flags(__doc__, trials=256, most_flops=1e9, minutes=40)
    parser.add_argument("--methods", default="random,gbt,genetic,one-shot,tlp,mtl-tlp,ranker", type=lambda text: text.split(","))
    parser.add_argument("--autotvm-trials", type=int, default=1000, help="of gbt, whose result is what others are held against")
    parser.add_argument("--predicted-trials", type=int, default=64, help="of the predictors; --trials are those of random and genetic search")
    parser.add_argument("--seeds", type=int, default=3, help="of the predictors")
    parser.add_argument("--search-seeds", type=int, default=1, help="of the others, which take many measurements")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--whole", action="store_true", help="all kernels of each network")
    args = parser.parse_args()
    args.target = one_core(args)
    kernels = [k for model in args.models for k in search_curves.kernels_of(args, model)] if args.whole else search_curves.choose(args, args.models)
    search_curves.go_on(args, "budgets.json", kernels, lambda entry: set(args.methods) <= entry["methods"].keys() and "default" in entry, measure,
                        lambda entries: {"budgets.md": budget_tables.text(entries, args.methods, args.whole),
                                         "budgets.svg": budget_tables.figure(entries, args.methods)})


if __name__ == "__main__":
    main()
