"""Tables of how well methods choose from the pools of held-out families, on each platform.

    PYTHONPATH=autotune python -m predictor.evaluate --data DIR --runs RUNS --out tables.md [--split test] [--json tables.json] [--ahead TITLE]

Each platform has two kinds of pools: all programs of a task, and those that no rule made, so without the default schedule and the points of
the product's own space. The best time known is that of all programs in both. RUNS holds runs of `train.py`; runs that differ in nothing but
the seed are one row, with its deviation over seeds. Two means are given: TLP's, which is the sum of the tasks' best times over the sum of
the chosen ones, and the mean over tasks of best over chosen. The 95 % are those of a bootstrap that draws whole families. No weights are
known, so every task counts once. Scores of several seeds together are the mean of their scores; those that are no logarithms of speed are
standardised within the pool first.
"""
import argparse
import collections
import json
import pathlib

import numpy as np

from . import baselines, data, metrics

LEAST_POOL = 16
OURS = "Tilewright ranker, light"  # the shipped predictor
RULES = [data.tileset.SOURCES.index(source) for source in ("default", "product")]
KINDS = {"all": [], "without rules": RULES}  # of pools: the sources that are left out


Pool = collections.namedtuple("Pool", "task programs seconds best family")


class Pools:
    """A platform's pools of tasks with labels enough, without the programs of some sources. Failed programs have infinite times. The best
    time known is that of all programs of the task."""

    def __init__(self, corpus, platform, split, left_out=()):
        self.corpus, self.platform, self.whole, self.pools = corpus, platform, not left_out, []
        for task in corpus.split(split):
            programs = corpus.programs(task)
            programs = programs[~np.isnan(corpus.seconds[platform, programs])]
            seconds = corpus.seconds[platform, programs]
            kept = ~np.isin(corpus.sources[programs], left_out)
            if np.isfinite(seconds[kept]).sum() >= LEAST_POOL:
                self.pools.append(Pool(task, programs[kept], seconds[kept], seconds.min(), corpus.tasks[task].network))

    def __iter__(self):
        return iter(self.pools)

    def __len__(self):
        return len(self.pools)


class Outcome:
    """What one method chose on one platform: for each task the times of its choices, the best time known, and the family."""

    def __init__(self):
        self.times, self.best, self.families, self.tasks = [], [], [], []

    def add(self, pool, times, best=None):
        self.times.append(times)
        self.best.append(pool.best if best is None else best)
        self.families.append(pool.family)
        self.tasks.append(pool.task)

    def ratio(self, chosen=None):
        """[cuts]: the sum of best times over that of chosen ones."""
        times, best = np.array(self.times), np.array(self.best)
        chosen = np.arange(len(best)) if chosen is None else chosen
        return best[chosen].sum() / times[chosen].sum(0)

    def each(self):
        """[tasks, cuts]: best time over the chosen one."""
        return np.array(self.best)[:, None] / np.array(self.times)

    def mean(self, chosen=None):
        return (self.each() if chosen is None else self.each()[chosen]).mean(0)

    def networks(self):
        return {family: self.ratio(np.nonzero(np.array(self.families) == family)[0]).tolist() for family in sorted(set(self.families))}


class MeanOutcome(Outcome):
    """Of random choices: the mean of ratios is not the ratio of means."""

    def __init__(self):
        super().__init__()
        self.ratios = []

    def each(self):
        return np.array(self.ratios)


def drawn_tasks(families, draws, seed=0):
    """For each draw, the tasks of families that are drawn with return."""
    families = np.array(families)
    names, random = sorted(set(families)), np.random.default_rng(seed)
    members = {name: np.nonzero(families == name)[0] for name in names}
    for _ in range(draws):
        yield np.concatenate([members[names[i]] for i in random.integers(0, len(names), len(names))])


def bootstrap(outcomes, draws):
    """95 % intervals of both means of the first cut, by drawing families; of several seeds, their mean in each draw."""
    ratios, means = [], []
    for chosen in drawn_tasks(outcomes[0].families, draws):
        ratios.append(np.mean([o.ratio(chosen)[0] for o in outcomes]))
        means.append(np.mean([o.mean(chosen)[0] for o in outcomes]))
    return [np.percentile(values, [2.5, 97.5]).tolist() for values in (ratios, means)]


def ahead(ours, theirs, draws):
    """How far some outcomes are ahead of others in mean top-1 and top-5 on the tasks that both have: their number, and [lead, low, high] of
    each, 95 % of draws of families, the same ones for both."""
    common, ours_at, theirs_at = np.intersect1d(ours[0].tasks, theirs[0].tasks, return_indices=True)
    if not len(common):
        return 0, []
    lead = np.mean([o.each()[ours_at, :2] for o in ours], 0) - np.mean([o.each()[theirs_at, :2] for o in theirs], 0)
    families = np.array(ours[0].families)[ours_at]
    drawn = np.percentile([lead[chosen].mean(0) for chosen in drawn_tasks(families, draws)], [2.5, 97.5], axis=0)
    return len(common), [[float(mean), float(low), float(high)] for mean, low, high in zip(lead.mean(0), *drawn)]


def leads(rows, draws, title=OURS):
    """The row whose title begins so, all of its seeds together if there are several, and how far it is ahead of every other one."""
    ours = [name for name in rows if name.startswith(title)]
    ours = next((name for name in ours if name.endswith("together")), ours[0] if ours else None)
    if ours is None:
        return ours, {}
    leads_ = {name: ahead(rows[ours], outcomes, draws) for name, outcomes in rows.items() if name != ours}
    return ours, {name: (count, lead) for name, (count, lead) in leads_.items() if count}


def row_of(outcomes, draws):
    ratios, means = np.array([o.ratio() for o in outcomes]), np.array([o.mean() for o in outcomes])
    interval_ratio, interval_mean = bootstrap(outcomes, draws)
    networks = collections.defaultdict(list)
    for outcome in outcomes:
        for family, values in outcome.networks().items():
            networks[family].append(values)
    return {"seeds": len(outcomes), "ratio": ratios.mean(0).tolist(), "mean": means.mean(0).tolist(),
            "ratio_deviation": ratios.std(0).tolist(), "mean_deviation": means.std(0).tolist(), "ratio_interval": interval_ratio,
            "mean_interval": interval_mean, "tasks": len(outcomes[0].best),
            "least": float(min((np.array(o.best) / np.array(o.times)[:, 0]).min() for o in outcomes)),
            "networks": {family: np.mean(values, 0).tolist() for family, values in networks.items()}}


def read_runs(folder):
    """{(title, keys of the platforms that it learned from): {seed: scores}} of complete runs. Runs of folds and of shares are left out."""
    methods = collections.defaultdict(dict)
    for path in sorted(pathlib.Path(folder).glob("*/done.json")):
        facts = json.loads((path.parent / "config.json").read_text())
        if facts["share"] == 1 and not facts["fold"]:
            scores = np.load(path.parent / "scores.npz")
            learned = tuple(str(key) for key in scores["platforms"][facts["places"]])
            methods[facts["config"]["title"], learned][facts["seed"]] = scores
    return dict(methods)


def placed(corpus, run, name="scores"):
    """[platforms, programs] of the corpus: a run's scores, or its spreads. The run's data set may hold more of both."""
    order = np.argsort(run["ids"], kind="stable")
    at = order[np.minimum(np.searchsorted(run["ids"], corpus.ids, sorter=order), len(order) - 1)]
    if not (run["ids"][at] == corpus.ids).all():
        raise ValueError("a run's scores are of another data set")
    keys = [str(key) for key in run["platforms"]]
    if missing := [key for key in corpus.platform_keys if key not in keys]:
        raise ValueError(f"a run has no scores for {'; '.join(missing)}")
    return run[name][[keys.index(key) for key in corpus.platform_keys]][:, at]


def rule_rows(pools):
    """The default schedule, the best program that rules made, and the best one of pools that need not have the best one known."""
    rows = {name: Outcome() for name in ("default schedule", "best of rules", "best of the pool")}
    corpus = pools.corpus
    for pool in pools:
        programs = corpus.programs(pool.task)
        seconds, sources = corpus.seconds[pools.platform, programs], corpus.sources[programs]
        for name, wanted in (("default schedule", RULES[:1]), ("best of rules", RULES)):
            times = seconds[np.isin(sources, wanted) & np.isfinite(seconds)]
            if len(times):
                rows[name].add(pool, [times.min()] * len(metrics.CUTS))
        if not pools.whole:
            rows["best of the pool"].add(pool, [pool.seconds.min()] * len(metrics.CUTS))
    return rows


def copied(pools, source):
    """The order of another platform's times, of tasks with enough programs that both know. What the source does not know is not chosen."""
    out = Outcome()
    for pool in pools:
        scores = -pools.corpus.seconds[source, pool.programs]
        known = ~np.isnan(scores)
        if np.isfinite(pool.seconds[known]).sum() >= LEAST_POOL:
            out.add(pool, [slowest(scores[known], pool.seconds[known], cut) for cut in metrics.CUTS])
    return out


def copy_rows(pools):
    """Of every other platform that has labels of the same programs."""
    corpus = pools.corpus
    ends = [", the same chip" if chip == corpus.chips[pools.platform] else "" for chip in corpus.chips]
    return {f"copy of {name}'s times{ends[source]}": copied(pools, source) for source, name in enumerate(corpus.platforms)
            if source != pools.platform}


def baseline_rows(pools):
    """Methods that learn nothing of programs."""
    corpus, platform = pools.corpus, pools.platform
    rows = {**rule_rows(pools), "nearest task's best": Outcome(), "one random program": MeanOutcome(), "second label (A/A)": Outcome(),
            **copy_rows(pools)}
    nearest = baselines.Nearest(corpus, platform)
    for pool in pools:
        times, ratios = metrics.random_times(pool.seconds)
        rows["one random program"].add(pool, times)
        rows["one random program"].ratios.append([ratio * pool.best / pool.seconds.min() for ratio in ratios])
        if nearest.known:
            scores = nearest.scores(pool.task, pool.programs)
            rows["nearest task's best"].add(pool, [slowest(scores, pool.seconds, cut) for cut in metrics.CUTS])
        first, second = baselines.second_labels(corpus, platform, pool.programs)
        if len(first) > 1:
            best = baselines.second_labels(corpus, platform, corpus.programs(pool.task))[1].min()
            rows["second label (A/A)"].add(pool, [metrics.chosen(-first, second, cut) for cut in metrics.CUTS], best)
    return {name: [outcome] for name, outcome in rows.items() if outcome.best}


def slowest(scores, seconds, cut):
    """The time of a choice; when all of it failed, the slowest time of the pool stands for it."""
    time = metrics.chosen(scores, seconds, cut)
    return time if np.isfinite(time) else float(seconds[np.isfinite(seconds)].max())


def outcome_of(pools, scores):
    out = Outcome()
    for pool in pools:
        out.add(pool, [slowest(scores[pool.programs], pool.seconds, cut) for cut in metrics.CUTS])
    return out


def together(pools, all_scores, logarithms):
    """The mean of several runs' scores: as they are when they are logarithms of speed, as the tuner has it, else standardised within the
    pool."""
    out = np.full(len(pools.corpus.ids), np.nan)
    for pool in pools:
        parts = [scores[pool.programs] for scores in all_scores]
        out[pool.programs] = np.mean(parts if logarithms else [(s - s.mean()) / max(s.std(), 1e-9) for s in parts], axis=0)
    return out


def row_name(corpus, title, learned, platform):
    """What the row says of the platforms that a model learned from, when they are not just the table's own."""
    own = corpus.platform_keys[platform]
    if learned == (own,):
        return title
    if own in learned:
        return f"{title}, from {len(learned)} platforms"
    names = dict(zip(corpus.platform_keys, corpus.platforms))
    return f"{title}, from {' and '.join(names.get(key, key) for key in learned)}"


def method_rows(pools, runs):
    """Of networks with a head for each platform, those count whose target the platform is."""
    rows, corpus, platform = {}, pools.corpus, pools.platform
    for (title, learned), seeds in sorted(runs.items(), key=lambda item: item[0][1][0] != corpus.platform_keys[platform]):
        name = row_name(corpus, title, learned, platform)
        if name in rows:
            continue
        scores = [placed(corpus, run)[platform] for _, run in sorted(seeds.items())]
        rows[name] = [outcome_of(pools, s) for s in scores]
        if len(scores) > 1:
            mean = together(pools, scores, all("spreads" in run for run in seeds.values()))
            rows[f"{name}, {len(scores)} seeds together"] = [outcome_of(pools, mean)]
    return {**rows, **set_rows(pools, runs)}


def set_rows(pools, runs):
    """Of the rankers of all kinds that learned from the same platforms: the mean of their scores, as a tuner's set of them has it."""
    sets = collections.defaultdict(list)
    for (title, learned), seeds in runs.items():
        if all("spreads" in run for run in seeds.values()):
            sets[learned].append((title, [placed(pools.corpus, run)[pools.platform] for run in seeds.values()]))
    rows = {}
    for learned, members in sets.items():
        if len(members) > 1:
            scores = [one for _, parts in members for one in parts]
            kinds = " and ".join(f"{len(parts)} {title.rpartition(', ')[2]}" for title, parts in members)
            name = row_name(pools.corpus, f"Tilewright ranker, {kinds}", learned, pools.platform)
            rows[name] = [outcome_of(pools, together(pools, scores, True))]
    return rows


def part_of(pools, runs, draws, title):
    """All rows of one kind of pools on a platform."""
    sizes = [len(pool.programs) for pool in pools]
    rows = {**baseline_rows(pools), **method_rows(pools, runs)}
    ours, leads_ = leads(rows, draws, title)
    return {"ours": ours, "leads": leads_, "tasks": len(sizes), "pool": float(np.mean(sizes)), "least_pool": min(sizes), "most_pool": max(sizes),
            "labels": int((~np.isnan(pools.corpus.seconds[pools.platform])).sum()),
            "rows": {name: row_of(outcomes, draws) for name, outcomes in rows.items()}}


def report(corpus, runs, split, draws=1000, title=OURS):
    """{"platforms": {name: {kind of pools: part}}}; leads are those of the row with the title."""
    out = {"data": corpus.checksum, "split": split, "platforms": {}}
    for platform, name in enumerate(corpus.platforms):
        parts = {kind: part_of(pools, runs, draws, title) for kind, left_out in KINDS.items()
                 if len(pools := Pools(corpus, platform, split, left_out))}
        if parts:
            out["platforms"][name] = parts
    return out


def line(cells):
    return "| " + " | ".join(cells) + " |"


def lead_cells(count, both):
    return [str(count), *(cell for lead, low, high in both for cell in (f"{lead:+.3f}", f"{low:+.3f} to {high:+.3f}"))]


def markdown_platform(name, part, split):
    rows = part["rows"]
    out = [f"## {name}", "", f"{part['tasks']} tasks of {split}, pools of {part['least_pool']} to {part['most_pool']} programs "
           f"({part['pool']:.0f} on average); {part['labels']} labels of all splits.", "",
           line(["method", "seeds", "top-1", "top-5", "top-10", "95 % of top-1", "mean top-1", "mean top-5", "mean top-10", "95 % of mean top-1",
                 "worst task"]), line(["---"] * 11)]
    for title, row in rows.items():
        few = row["tasks"] < part["tasks"]
        deviation = f" ±{row['mean_deviation'][0]:.3f}" if row["seeds"] > 1 else ""
        out.append(line([title + (f" ({row['tasks']} tasks)" if few else ""), str(row["seeds"]), *(f"{x:.3f}" for x in row["ratio"]),
                         "{:.3f} to {:.3f}".format(*row["ratio_interval"]), f"{row['mean'][0]:.3f}{deviation}",
                         *(f"{x:.3f}" for x in row["mean"][1:]), "{:.3f} to {:.3f}".format(*row["mean_interval"]), f"{row['least']:.3f}"]))
    if part["leads"]:
        out += ["", f"How far '{part['ours']}' is ahead, as means over tasks; 95 % of draws of families, the same for both:", "",
                line(["method", "tasks", "top-1", "95 %", "top-5", "95 %"]), line(["---"] * 6)]
        out += [line([title, *lead_cells(count, both)]) for title, (count, both) in part["leads"].items()]
    families = sorted({family for row in rows.values() for family in row["networks"]})
    out += ["", "Top-1 / top-5 of each network:", "", line(["method", *families]), line(["---"] * (1 + len(families)))]
    for title, row in rows.items():
        cells = ["{0:.3f} / {1:.3f}".format(*row["networks"][f]) if f in row["networks"] else "" for f in families]
        out.append(line([title, *cells]))
    return out


def summary(report_, kind):
    """Methods by platforms, top-1 / top-5 of TLP's formula, and of how many tasks unless it is of all."""
    platforms = {name: parts[kind] for name, parts in report_["platforms"].items() if kind in parts}
    titles = list(dict.fromkeys(title for part in platforms.values() for title in part["rows"]))
    out = [f"Top-1 / top-5 by TLP's formula, pools: {kind}", "", line(["method", *(f"{name} ({part['tasks']} pools of {part['pool']:.0f})"
                                                                      for name, part in platforms.items())]), line(["---"] * (1 + len(platforms)))]
    for title in titles:
        cells = []
        for part in platforms.values():
            row = part["rows"].get(title)
            few = f" ({row['tasks']} tasks)" if row and row["tasks"] < part["tasks"] else ""
            cells.append("{:.3f} / {:.3f}".format(*row["ratio"]) + few if row else "")
        out.append(line([title, *cells]))
    return [*out, ""]


def markdown(report_):
    out = ["# How well predictors choose", "", f"Data set {report_['data']}, split {report_['split']}. Top-k is the best time known over the best "
           "one of the k programs with the highest scores: first as the sum over tasks of best times over the sum of chosen ones (TLP's "
           "formula, every task once), then as the mean over tasks. The 95 % are those of a bootstrap over families. Pools without rules have "
           "neither the default schedule nor points of the product's own space; the best time known is that of all programs all the same.", ""]
    for kind in KINDS:
        out += summary(report_, kind)
    for name, parts in report_["platforms"].items():
        for kind, part in parts.items():
            out += markdown_platform(name if kind == "all" else f"{name}, {kind}", part, report_["split"]) + [""]
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--runs", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--json")
    parser.add_argument("--split", default="test", choices=data.SPLITS)
    parser.add_argument("--algorithm", default="", metavar="START", help="only tasks by it, such as direct or winograd (default: all)")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--ahead", default=OURS, metavar="TITLE", help="the method whose lead over all others is told (default: %(default)s)")
    arguments = parser.parse_args()
    corpus = data.load(arguments.data)
    data.keep_algorithm(corpus, arguments.algorithm)
    made = report(corpus, read_runs(arguments.runs), arguments.split, arguments.draws, arguments.ahead)
    text = markdown(made)
    pathlib.Path(arguments.out).write_text(text + "\n")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(made, indent=1) + "\n")
    print(text)


if __name__ == "__main__":
    main()
