"""All tables by one command: trains every model with every seed on every platform, evaluates, transfers, exports.

    PYTHONPATH=autotune python -m predictor.study --data DIR --features DIR --out STUDY
    .. --only ranker,mlp --seeds 1 --platforms 0    some rows
    .. --again ranker                               makes the runs of a model anew
    .. --set epochs=5                               changes every configuration, for a quick look

STUDY/runs has a folder a run; complete ones are kept, ended ones go on. STUDY/tables.md and .json have the tables of test families,
near.md those of near duplicates, choices.md when a predicted schedule is taken, transfer-N.md the transfer to platform N, models/KIND-SEED.onnx the networks that tuners load, of the first
platform. The ablation trains parts of
the ranker on folds of the families of training and validation, so that no choice is made by the test families.
"""
import argparse
import json
import pathlib
import shutil

import numpy as np

from . import choices, config as configs, data, evaluate, export, metrics, train, transfer

ONE_PLATFORM = ("xgboost", "xgboost-statements", "mlp", "lstm", "tlp-attention-rank", "tlp-attention-mse", "tlp-lstm-rank", "tlp-lstm-mse",
                "tlp-wide", "tlp-light", "one-shot", "one-shot-sequence")
RANKERS = ("ranker", "ranker-light", "primitives")
ALL_PLATFORMS = ("mtl-tlp", "mtl-tlp-light", *RANKERS)
ABLATION = {
    "whole": [],
    "with registers": ["network.parts=[steps,task,hardware,attention,analytic,registers]"],
    "no analytic branch": ["network.parts=[steps,task,hardware,attention]"],
    "no attention": ["network.parts=[steps,task,hardware,analytic]"],
    "no steps": ["network.parts=[task,hardware,attention,analytic]"],
    "no task": ["network.parts=[steps,hardware,attention,analytic]"],
    "statements only": ["network.parts=[]"],
    "LambdaRank": ["loss.name=lambda_rank"],
    "no error of logarithms": ["loss.log_error=0"],
}


def options(name, platforms, seed, out, arguments, changes=(), extra=()):
    line = [name, "--data", arguments.data, "--features", arguments.features, "--platforms", ",".join(map(str, platforms)), "--seed", str(seed),
            "--out", str(out), *extra]
    for change in [*changes, *arguments.set]:
        line += ["--set", change]
    return train.parser().parse_args(line)


def trainings(name, every):
    """Lists of platforms: the baselines on each platform by itself, those of many platforms on all of them; the target comes first."""
    if name in ONE_PLATFORM:
        return [[p] for p in every]
    return [[p, *(q for q in every if q != p)] for p in every] if name == "mtl-tlp" else [every]


def run_of(arguments, name, platforms, seed):
    return pathlib.Path(arguments.out) / "runs" / f"{name}-{'+'.join(map(str, platforms))}-{seed}"


def train_rows(corpus, arguments):
    every = [int(p) for p in arguments.platforms.split(",")]
    for seed in arguments.seeds:
        for name in arguments.only:
            for platforms in trainings(name, every):
                out = run_of(arguments, name, platforms, seed)
                if name in arguments.again:
                    shutil.rmtree(out, ignore_errors=True)
                train.run(options(name, platforms, seed, out, arguments), corpus)


def fold_quality(corpus, run, fold, platforms):
    """Mean top-1, top-5 and top-10 over the tasks of a fold."""
    _, held = train.tasks_of(corpus, fold)
    scores, means = evaluate.placed(corpus, np.load(run / "scores.npz")), []
    for platform in platforms:
        for split in ("train", "validation"):
            for pool in evaluate.Pools(corpus, platform, split):
                if pool.task in held:
                    means.append([pool.best / evaluate.slowest(scores[platform][pool.programs], pool.seconds, cut) for cut in metrics.CUTS])
    return means


def ablation(corpus, arguments):
    """A table of the ranker's parts, by cross-validation over families."""
    platforms, base = [int(p) for p in arguments.platforms.split(",")], pathlib.Path(arguments.out)
    lines = ["# Parts of the ranker", "", f"{arguments.folds} folds of the families of training and validation; seeds "
             f"{', '.join(map(str, arguments.seeds))}; mean over tasks.", "", "| ranker | top-1 | top-5 | top-10 |", "| --- | --- | --- | --- |"]
    for title, changes in ABLATION.items():
        values = []
        for seed in arguments.seeds:
            for number in range(arguments.folds):
                fold = f"{number}/{arguments.folds}"
                run = base / "ablation" / f"{title.replace(' ', '-')}-{number}of{arguments.folds}-{seed}"
                train.run(options("ranker", platforms, seed, run, arguments, changes, ["--fold", fold]), corpus)
                values += fold_quality(corpus, run, fold, platforms)
        lines.append(f"| {title} | " + " | ".join(f"{x:.3f}" for x in np.mean(values, 0)) + " |")
    (base / "ablation.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def transfer_tables(corpus, arguments):
    """To each platform that has labels of training, from at most two of these whose chips are others."""
    every, base = [p for p in map(int, arguments.platforms.split(",")) if data.is_learnable(corpus, p)], pathlib.Path(arguments.out)
    arguments.split, arguments.share_by, arguments.runs, arguments.shares = "test", "tasks", str(base / "runs"), transfer.SHARES
    for target in every:
        sources = [p for p in transfer.others(corpus, target) if p in every][:2]
        results = {name: transfer.measured(corpus, target, name, sources, arguments) for name in ("mtl-tlp", *RANKERS) if name in arguments.only}
        (base / f"transfer-{target}.md").write_text(transfer.table(corpus, target, sources, results, arguments))


def write_tables(corpus, arguments):
    base = pathlib.Path(arguments.out)
    runs = evaluate.read_runs(base / "runs")
    for split, name in (("test", "tables"), ("near", "near")):
        made = evaluate.report(corpus, runs, split)
        (base / f"{name}.json").write_text(json.dumps(made, indent=1) + "\n")
        (base / f"{name}.md").write_text(evaluate.markdown(made) + "\n")
    choices.write(corpus, runs, base / "choices.md")


def export_networks(corpus, arguments):
    """Those of one kind are told apart by their seeds alone, so two of one kind and seed are refused."""
    folder, every = pathlib.Path(arguments.out) / "models", [int(p) for p in arguments.platforms.split(",")]
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in arguments.only:
        config = configs.load(name)
        for seed in arguments.seeds if config["model"] != "trees" else ():
            run, path = run_of(arguments, name, trainings(name, every)[0], seed), folder / f"{export.kind_of(config)}-{seed}.onnx"
            if path in written:
                raise ValueError(f"--only names two networks of the kind {export.kind_of(config)}")
            written.append(export.export(run, corpus, path))
            print(f"{path}: {path.stat().st_size} bytes, differs by {export.compare(run, corpus, path, np.arange(export.BATCH)):.1e}")


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--data", "--features", "--out"):
        parser.add_argument(name, required=True)
    parser.add_argument("--only", default=",".join(ONE_PLATFORM + ALL_PLATFORMS))
    parser.add_argument("--again", default="")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--platforms", help="numbers in the data set (default: all of the first one's kind)")
    parser.add_argument("--folds", type=int, default=4)
    parser.add_argument("--parts", default="train,tables,ablation,transfer", help="also: export")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args(words)
    train.settle()
    pathlib.Path(arguments.out).mkdir(parents=True, exist_ok=True)
    arguments.only, arguments.again = arguments.only.split(","), arguments.again.split(",")
    arguments.seeds = [int(seed) for seed in arguments.seeds.split(",")]
    kinds = sorted({kind for name in arguments.only for kind in configs.load(name)["features"]})
    corpus = data.load(arguments.data, arguments.features, kinds)
    arguments.platforms = arguments.platforms or ",".join(str(p) for p, kind in enumerate(corpus.kinds) if kind == corpus.kinds[0])
    parts = {"train": train_rows, "tables": write_tables, "ablation": ablation, "transfer": transfer_tables, "export": export_networks}
    for part in arguments.parts.split(","):
        parts[part](corpus, arguments)


if __name__ == "__main__":
    main()
