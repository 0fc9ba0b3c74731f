"""Transfer between platforms: how few labels of a new one suffice.

    PYTHONPATH=autotune python -m predictor.transfer --data DIR --features DIR --target 1 --sources 0,2 --runs RUNS --out transfer.md

For each share of the target's labels (1, 2, 5, 10, 100 % of the tasks) it trains MTL-TLP with no, one and two source platforms, and the
ranker with the same ones and the hardware token. It compares with rankings that are copied: of the source's times, which knows labels
of the test tasks and is of those tasks only that have them on both, and of a model trained on the source only. `recovered` is the part
of the gap between the copied model and all labels that is closed. The rank correlation between the platforms says how much there is to
learn.
"""
import argparse
import itertools
import pathlib

import numpy as np

from . import config as configs, data, evaluate, metrics, train

SHARES = (0.01, 0.02, 0.05, 0.1, 1.0)


def agreement(corpus, split=None):
    """Spearman's correlation of times, for each pair of platforms: mean over tasks, and how many tasks."""
    out = {}
    tasks = range(len(corpus.tasks)) if split is None else corpus.split(split)
    for a, b in itertools.combinations(range(len(corpus.platforms)), 2):
        values = []
        for task in tasks:
            programs = corpus.programs(task)
            both = np.isfinite(corpus.seconds[a, programs]) & np.isfinite(corpus.seconds[b, programs])
            if both.sum() >= evaluate.LEAST_POOL:
                values.append(metrics.spearman(corpus.seconds[a, programs[both]], corpus.seconds[b, programs[both]]))
        if values:
            out[corpus.platforms[a], corpus.platforms[b]] = (float(np.mean(values)), len(values))
    return out


def copied(corpus, target, source, split):
    """The source's own times as scores for the target: of the programs that have labels on both."""
    out = evaluate.Outcome()
    for task, programs, seconds in evaluate.pools(corpus, target, split):
        both = ~np.isnan(corpus.seconds[source, programs])
        if np.isfinite(seconds[both]).sum() >= evaluate.LEAST_POOL:
            scores = -corpus.seconds[source, programs[both]]
            times = [evaluate.slowest(scores, seconds[both], cut) for cut in metrics.CUTS]
            out.add(times, seconds[both].min(), corpus.tasks[task].network)
    return out


def job(name, platforms, share, by, seed, arguments):
    """The arguments of one training."""
    places = ",".join(str(p) for p in platforms)
    label = f"{name}-{places.replace(',', '+')}-{seed}" + ("" if share == 1 else f"-{share:g}-{by}")
    line = [name, "--data", arguments.data, "--features", arguments.features, "--platforms", places, "--seed", str(seed), "--share", str(share),
            "--share-by", by, "--out", str(pathlib.Path(arguments.runs) / label)]
    for change in arguments.set:
        line += ["--set", change]
    return train.parser().parse_args(line)


def scores_of(corpus, options):
    train.run(options, corpus)
    return evaluate.placed(corpus, np.load(pathlib.Path(options.out) / "scores.npz"))


def measured(corpus, target, name, sources, arguments):
    """{(sources, share): outcomes of all seeds} of one configuration; share 0: trained on the first source only."""
    out = {}
    for seed in arguments.seeds:
        if sources:
            scores = scores_of(corpus, job(name, sources[:1], 1.0, arguments.share_by, seed, arguments))
            out.setdefault((1, 0.0), []).append(evaluate.outcome_of(corpus, target, arguments.split, scores[target]))
        for count in range(len(sources) + 1):
            for share in arguments.shares:
                scores = scores_of(corpus, job(name, [target, *sources[:count]], share, arguments.share_by, seed, arguments))
                out.setdefault((count, share), []).append(evaluate.outcome_of(corpus, target, arguments.split, scores[target]))
    return out


def table(corpus, target, sources, results, arguments):
    out = [f"# Transfer to {corpus.platforms[target]}", "",
           f"Sources in order: {', '.join(corpus.platforms[s] for s in sources) or 'none'}. Labels of the target are shared out by "
           f"{arguments.share_by}. Split {arguments.split}, seeds {', '.join(map(str, arguments.seeds))}; mean top-1 and top-5 over tasks.", "",
           "| platforms | rank correlation | tasks |", "| --- | --- | --- |"]
    out += [f"| {a}, {b} | {value:.3f} | {count} |" for (a, b), (value, count) in agreement(corpus, arguments.split).items()]
    out += ["", "| method | sources | labels of the target | top-1 | top-5 | recovered |", "| --- | --- | --- | --- | --- | --- |"]
    for source in sources:
        row = copied(corpus, target, source, arguments.split)
        if row.best:
            mean = row.mean()
            out.append(f"| times of {corpus.platforms[source]}, {len(row.best)} tasks | | 0% | {mean[0]:.3f} | {mean[1]:.3f} | |")
    for name, cells in results.items():
        means = {key: np.mean([o.mean() for o in outcomes], 0) for key, outcomes in cells.items()}
        low, high = means.get((1, 0.0)), means.get((0, 1.0))
        for (count, share), mean in sorted(means.items()):
            gap = "" if low is None or high is None or abs(high[0] - low[0]) < 1e-9 else f"{(mean[0] - low[0]) / (high[0] - low[0]):.2f}"
            out.append(f"| {configs.load(name)['title']} | {count} | {share:.0%} | {mean[0]:.3f} | {mean[1]:.3f} | {gap} |")
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--features", required=True)
    parser.add_argument("--target", type=int, required=True)
    parser.add_argument("--sources", default="")
    parser.add_argument("--configs", default="mtl-tlp,ranker")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--runs", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--shares", default=",".join(map(str, SHARES)), help="of the target's labels")
    parser.add_argument("--split", default="test", choices=data.SPLITS)
    parser.add_argument("--share-by", default="tasks", choices=["tasks", "programs"])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    arguments.seeds = [int(seed) for seed in arguments.seeds.split(",")]
    arguments.shares = [float(share) for share in arguments.shares.split(",")]
    train.settle()
    sources = [int(p) for p in arguments.sources.split(",") if p]
    names = arguments.configs.split(",")
    corpus = data.load(arguments.data, arguments.features, sorted({kind for name in names for kind in configs.load(name)["features"]}))
    for platform in [arguments.target, *sources]:
        if not data.is_learnable(corpus, platform):
            raise SystemExit(f"{corpus.platforms[platform]} has no labels of training: nothing can be learned from it")
    results = {name: measured(corpus, arguments.target, name, sources, arguments) for name in names}
    text = table(corpus, arguments.target, sources, results, arguments)
    pathlib.Path(arguments.out).write_text(text)
    print(text)


if __name__ == "__main__":
    main()
