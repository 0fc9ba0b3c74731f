"""When a predicted schedule is taken in the place of the default: what different degrees of caution give and risk.

    PYTHONPATH=autotune python -m predictor.choices --data DIR --runs RUNS --out choices.md

As `compile --tune one-shot` chooses (driver/tune/predicted_schedule.cpp), without its look at the code: of the sixteen programs with the highest
scores, the one whose gain over the default is above a number of its deviations (gains.py) by most, if any is. The rankers of all seeds count as one
set. Pools are those of families that training has not seen.
"""
import argparse
import pathlib

import numpy as np

from . import baselines, data, evaluate

SHARES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
FIRST = 16        # programs that all members score
WORSE = 0.97      # smaller gains count as losses


def set_gains(scores, spreads, default):
    """Gains over the default and their deviations, of [members, programs] scores and deviations: how far the members' gains are from each other is
    added to their own."""
    each = scores - scores[:, default:default + 1]
    return each.mean(0), np.sqrt((spreads**2).mean(0) + each.var(0))


def chosen(gains, spreads, seconds, default, share):
    """The default's time over the chosen one's, and whether another one was chosen."""
    first = np.argsort(-gains, kind="stable")[:FIRST]
    sure = gains - share * spreads
    sure[default] = 0
    best = first[np.argmax(sure[first])]
    if sure[best] <= 0:
        best = default
    slowest = seconds[np.isfinite(seconds)].max()
    return seconds[default] / (seconds[best] if np.isfinite(seconds[best]) else slowest), best != default


def measured(corpus, runs):
    """{platform: {share: [gain, taken] of each task}}"""
    scores, spreads = (np.stack([evaluate.placed(corpus, run, name) for run in runs]) for name in ("scores", "gain_spreads"))
    out = {}
    for platform, name in enumerate(corpus.platforms):
        rows = {share: [] for share in SHARES}
        for split in ("validation", "near", "test"):
            for pool in evaluate.Pools(corpus, platform, split):
                default = baselines.default_place(corpus, pool.programs)
                if default is None or not np.isfinite(pool.seconds[default]):
                    continue
                gains, deviations = set_gains(scores[:, platform, pool.programs] / np.log(2), spreads[:, platform, pool.programs], default)
                for share, row in rows.items():
                    row.append(chosen(gains, deviations, pool.seconds, default, share))
        if rows[SHARES[0]]:
            out[name] = {share: np.array(row, float) for share, row in rows.items()}
    return out


def table(results):
    out = ["# When a predicted schedule is taken", "", "Gain: the default's time over that of what was chosen, geometric mean of tasks. Worse: "
           "tasks whose choice is more than 3 % slower than the default.", "",
           "| platform | tasks | deviations asked for | gain | worst task | taken | worse |", "| --- | --- | --- | --- | --- | --- | --- |"]
    whole = {share: np.concatenate([rows[share] for rows in results.values()]) for share in SHARES}
    for name, rows in {**results, "all": whole}.items():
        for share, row in rows.items():
            out.append(f"| {name} | {len(row)} | {share:g} | {np.exp(np.log(row[:, 0]).mean()):.3f} | {row[:, 0].min():.2f} | {row[:, 1].mean():.0%} | "
                       f"{(row[:, 0] < WORSE).sum()} |")
    return "\n".join(out) + "\n"


def write(corpus, runs, out):
    """runs: what evaluate.read_runs gives; the rankers that are shipped are looked for."""
    sets = [list(seeds.values()) for (title, _), seeds in runs.items() if title == evaluate.OURS]
    if sets and all("gain_spreads" in run for run in sets[0]):
        pathlib.Path(out).write_text(table(measured(corpus, sets[0])))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--data", "--runs", "--out"):
        parser.add_argument(name, required=True)
    arguments = parser.parse_args()
    write(data.load(arguments.data), evaluate.read_runs(arguments.runs), arguments.out)


if __name__ == "__main__":
    main()
