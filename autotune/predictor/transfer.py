"""Transfer to a platform whose chip is left out: how few of its labels suffice, and what copying gives.

    PYTHONPATH=autotune python -m predictor.transfer --data DIR --features DIR --target 0 --runs RUNS --out transfer.md

Sources are platforms with the same kind of labels whose chips are others, those with most labels first; `--sources` names them one by one,
also of the same chip. Each configuration is trained from one source, from two and so on, without labels of the target and with shares of
them, and from the target alone with the same shares: these take as many steps as with all labels. All target labels without a source are
there too. Beside them stand copies of the order of other platforms' times, which need the labels of the very programs, and all that learns
nothing. `recovered` is the part of the gap between the first source alone and all labels alone that is closed, where there is one. The rank
correlation between platforms says how much there is to learn. Pools with and without what rules made stand side by side, as in `evaluate.py`.
"""
import argparse
import itertools
import pathlib

import numpy as np

from . import config as configs, data, evaluate, metrics, train

SHARES = (0.05, 0.1)
DRAWS = 1000


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


def others(corpus, target):
    """Platforms that one may learn from about the target without having seen its chip: those with most labels first."""
    known = [p for p, kind in enumerate(corpus.kinds)
             if kind == corpus.kinds[target] and corpus.chips[p] != corpus.chips[target] and data.is_learnable(corpus, p)]
    return sorted(known, key=lambda p: -np.isfinite(corpus.seconds[p]).sum())


def job(name, platforms, share, seed, arguments, changes=()):
    """The arguments of one training."""
    places, by = ",".join(str(p) for p in platforms), arguments.share_by
    label = f"{name}-{places.replace(',', '+')}-{seed}" + ("" if share == 1 else f"-{share:g}-{by}")
    line = [name, "--data", arguments.data, "--features", arguments.features, "--platforms", places, "--seed", str(seed), "--share", str(share),
            "--share-by", by, "--out", str(pathlib.Path(arguments.runs) / label)]
    for change in [*arguments.set, *changes]:
        line += ["--set", change]
    return train.parser().parse_args(line)


def longer(corpus, target, name, share, arguments):
    """So many epochs that a share of labels is learned from in as many steps as all of them; an epoch has a step at least."""
    config = configs.load(name, arguments.set)
    size = config["loss"].get("size", 1) * config["loss"].get("length", 1)
    labels = sum(np.isfinite(corpus.seconds[target, corpus.programs(task)]).sum() for task in corpus.split("train"))
    times = np.ceil(labels / size) / np.ceil(labels * share / size)
    return [f"{key}={round(config[key] * times)}" for key in ("epochs", "patience")]


def scores_of(corpus, options):
    train.run(options, corpus)
    return evaluate.placed(corpus, np.load(pathlib.Path(options.out) / "scores.npz"))


def measured(corpus, target, name, sources, arguments):
    """{(sources, share): the target's scores by all seeds} of one configuration; share 0: trained on sources only."""
    out = {}

    def add(count, share, platforms, changes=()):
        for seed in arguments.seeds:
            scores = scores_of(corpus, job(name, platforms, share or 1.0, seed, arguments, changes))
            out.setdefault((count, share), []).append(scores[target])
    add(0, 1.0, [target])
    for share in arguments.shares:
        if share < 1:
            add(0, share, [target], longer(corpus, target, name, share, arguments))
    for count in range(1, len(sources) + 1):
        add(count, 0.0, sources[:count])
        for share in arguments.shares:
            add(count, share, [target, *sources[:count]])
    return out


def title_of(name, count, share):
    sources = "no source" if count == 0 else "1 source" if count == 1 else f"{count} sources"
    return f"{configs.load(name)['title']}, {sources}, {share:.0%} of the labels"


def part(corpus, target, results, split, left_out):
    """Rows of one kind of pools as markdown: all that learns nothing, then every configuration."""
    pools = evaluate.Pools(corpus, target, split, left_out)
    rows = evaluate.baseline_rows(pools)
    lines = ["| method | tasks | top-1 | 95 % | top-5 | 95 % | recovered |", "| --- | --- | --- | --- | --- | --- | --- |"]

    def add(title, outcomes, recovered=""):
        made = np.array([o.mean()[:2] for o in outcomes])
        deviation = [f" ±{x:.3f}" if len(made) > 1 else "" for x in made.std(0)]
        qualities = np.mean([o.each()[:, :2] for o in outcomes], 0)
        low, high = np.percentile([qualities[chosen].mean(0) for chosen in evaluate.drawn_tasks(outcomes[0].families, DRAWS)], [2.5, 97.5], axis=0)
        cells = [cell for at in range(2) for cell in (f"{made.mean(0)[at]:.3f}{deviation[at]}", f"{low[at]:.3f} to {high[at]:.3f}")]
        lines.append(evaluate.line([title, str(len(outcomes[0].best)), *cells, recovered]))
    for title, outcomes in rows.items():
        add(title, outcomes)
    for name, cells in results.items():
        made = {key: [evaluate.outcome_of(pools, scores) for scores in seeds] for key, seeds in cells.items()}
        low, high = (np.mean([o.mean()[0] for o in made[key]]) if key in made else None for key in ((1, 0.0), (0, 1.0)))
        for (count, share), outcomes in sorted(made.items()):
            gap = "" if low is None or high <= low else f"{(np.mean([o.mean()[0] for o in outcomes]) - low) / (high - low):.2f}"
            add(title_of(name, count, share), outcomes, gap)
        rows.update({title_of(name, *key): outcomes for key, outcomes in made.items()})
    return lines + lead_lines(rows, results)


def lead_lines(rows, results):
    """How far sources and a share of labels are ahead of the same labels alone, and of each copy."""
    out = ["", "How far sources and a share are ahead, 95 % of draws of families:", "", "| method | of | tasks | top-1 | 95 % | top-5 | 95 % |",
           "| --- | --- | --- | --- | --- | --- | --- |"]
    copies = [title for title in rows if title.startswith("copy of")]
    for name, cells in results.items():
        for count, share in sorted(cells):
            if count == 0 or share == 0:
                continue
            title = title_of(name, count, share)
            for other in [title_of(name, 0, share), *copies]:
                common, both = evaluate.ahead(rows[title], rows[other], DRAWS)
                if common:
                    out.append(evaluate.line([title, other, *evaluate.lead_cells(common, both)]))
    return out


def table(corpus, target, sources, results, arguments):
    own = corpus.platforms[target]
    out = [f"# Transfer to {own}", "", f"Sources in order: {', '.join(corpus.platforms[s] for s in sources) or 'none'}. Labels of the target "
           f"are shared out by {arguments.share_by}. Split {arguments.split}, seeds {', '.join(map(str, arguments.seeds))}; mean top-1 and top-5 "
           "over tasks.", "", "| platform | rank correlation | tasks |", "| --- | --- | --- |"]
    out += [f"| {b if a == own else a} | {value:.3f} | {count} |" for (a, b), (value, count) in agreement(corpus, arguments.split).items()
            if own in (a, b)]
    for kind, left_out in evaluate.KINDS.items():
        out += ["", f"## Pools: {kind}", "", *part(corpus, target, results, arguments.split, left_out)]
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--features", required=True)
    parser.add_argument("--target", type=int, required=True)
    parser.add_argument("--sources", default="others", help="numbers, or: others (all with the same kind of labels whose chips are others)")
    parser.add_argument("--most", type=int, default=3, help="of these at most (default: %(default)s)")
    parser.add_argument("--configs", default="mtl-tlp,ranker")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--runs", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--shares", "--share", default=",".join(map(str, SHARES)), help="of the target's labels (default: %(default)s)")
    parser.add_argument("--split", default="test", choices=data.SPLITS)
    parser.add_argument("--share-by", default="tasks", choices=["tasks", "programs"])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    arguments.seeds = [int(seed) for seed in arguments.seeds.split(",")]
    arguments.shares = [float(share) for share in arguments.shares.split(",")]
    train.settle()
    names = arguments.configs.split(",")
    corpus = data.load(arguments.data, arguments.features, sorted({kind for name in names for kind in configs.load(name)["features"]}))
    if arguments.sources == "others":
        sources = others(corpus, arguments.target)[:arguments.most]
    else:
        sources = [int(p) for p in arguments.sources.split(",") if p]
    for platform in [arguments.target, *sources]:
        if not data.is_learnable(corpus, platform):
            raise SystemExit(f"{corpus.platforms[platform]} has no labels of training: nothing can be learned from it")
    results = {name: measured(corpus, arguments.target, name, sources, arguments) for name in names}
    text = table(corpus, arguments.target, sources, results, arguments)
    pathlib.Path(arguments.out).write_text(text)
    print(text)


if __name__ == "__main__":
    main()
