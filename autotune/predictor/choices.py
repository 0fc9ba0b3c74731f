"""When a predicted schedule is taken in the place of the default: what different degrees of caution give and risk.

    PYTHONPATH=autotune python -m predictor.choices --data DIR --runs RUNS --out choices.md

As `compile --tune one-shot` chooses (driver/tune/predicted_schedule.cpp): of the sixteen programs with the highest scores and the default,
the one whose score less half of its spread is the highest; taken where its score is above the default's by more than a share of what both
may be off together. The rankers of all seeds count as one set. Pools are those of families that training has not seen.
"""
import argparse
import pathlib

import numpy as np

from . import baselines, data, evaluate

SHARES = (0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0)
FIRST = 16        # programs that all members score
WORSE = 0.97      # smaller gains count as losses


def set_scores(corpus, runs):
    """([platforms, programs] scores, spreads) of the seeds' mean: a spread is the members' own and how far they are from each other."""
    scores = np.stack([evaluate.placed(corpus, run) for run in runs])
    spreads = np.stack([evaluate.placed(corpus, run, "spreads") for run in runs])
    return scores.mean(0), np.sqrt((spreads**2).mean(0) + scores.var(0))


def gains(scores, spreads, seconds, default, share):
    """The default's time over the chosen one's, and whether another one was chosen."""
    first = np.append(np.argsort(-scores, kind="stable")[:FIRST], default)
    best = first[np.argmax((scores - spreads / 2)[first])]
    if scores[best] - scores[default] <= share * np.hypot(spreads[best], spreads[default]):
        best = default
    slowest = seconds[np.isfinite(seconds)].max()
    return seconds[default] / (seconds[best] if np.isfinite(seconds[best]) else slowest), best != default


def measured(corpus, scores, spreads):
    """{platform: {share: [gain, taken] of each task}}"""
    out = {}
    for platform, name in enumerate(corpus.platforms):
        rows = {share: [] for share in SHARES}
        for split in ("validation", "near", "test"):
            for pool in evaluate.Pools(corpus, platform, split):
                default = baselines.default_place(corpus, pool.programs)
                if default is None or not np.isfinite(pool.seconds[default]):
                    continue
                for share, row in rows.items():
                    row.append(gains(scores[platform, pool.programs], spreads[platform, pool.programs], pool.seconds, default, share))
        if rows[SHARES[0]]:
            out[name] = {share: np.array(row, float) for share, row in rows.items()}
    return out


def table(results):
    out = ["# When a predicted schedule is taken", "", "Gain: the default's time over that of what was chosen, geometric mean of tasks. Worse: "
           "tasks whose choice is more than 3 % slower than the default.", "",
           "| platform | tasks | share of what both may be off | gain | worst task | taken | worse |", "| --- | --- | --- | --- | --- | --- | --- |"]
    whole = {share: np.concatenate([rows[share] for rows in results.values()]) for share in SHARES}
    for name, rows in {**results, "all": whole}.items():
        for share, row in rows.items():
            out.append(f"| {name} | {len(row)} | {share:g} | {np.exp(np.log(row[:, 0]).mean()):.3f} | {row[:, 0].min():.2f} | {row[:, 1].mean():.0%} | "
                       f"{(row[:, 0] < WORSE).sum()} |")
    return "\n".join(out) + "\n"


def write(corpus, runs, out):
    """runs: what evaluate.read_runs gives; the rankers that are shipped are looked for."""
    sets = [seeds for (title, _), seeds in runs.items() if title == evaluate.OURS]
    if sets:
        scores, spreads = set_scores(corpus, list(sets[0].values()))
        pathlib.Path(out).write_text(table(measured(corpus, scores, spreads)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--data", "--runs", "--out"):
        parser.add_argument(name, required=True)
    arguments = parser.parse_args()
    write(data.load(arguments.data), evaluate.read_runs(arguments.runs), arguments.out)


if __name__ == "__main__":
    main()
