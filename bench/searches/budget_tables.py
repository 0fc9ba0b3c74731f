"""The tables and the figure of budgets.py.

An entry is a kernel: `methods` has the runs of each method, one a seed; of a run `gains` are [trial, seconds] of each better candidate, `searching` the
seconds that went into choosing, by trials, and `measuring` those of `measured` measurements that the table did not have.
"""
import math
import random
import statistics

BUDGETS = (1, 4, 16, 64, 256, 1000)
COLOURS = {"random": "#7f8c8d", "genetic": "#2471a3", "gbt": "#c0392b", "one-shot": "#d68910", "tlp": "#7d3c98", "mtl-tlp": "#bb8fce", "ranker": "#1e8449"}
NOISE = 1.01     # what counts as the same time
LEAST = 1e-9     # quality of nothing that works


def geomean(values):
    return math.exp(statistics.fmean(math.log(max(v, LEAST)) for v in values)) if values else math.nan


def best_after(run, budget):
    return min((seconds for trial, seconds in run["gains"] if trial <= budget), default=math.inf)


def best_known(entry):
    return min(run["gains"][-1][1] for runs in entry["methods"].values() for run in runs if run["gains"])


def quality(entry, method, budget):
    """The mean over seeds of the best time known over that of the best of so many measurements."""
    best = best_known(entry)
    return statistics.fmean(best / best_after(run, budget) for run in entry["methods"][method])


def seconds_of_trial(entry):
    """What compiling and measuring one candidate takes, by all that was measured of the kernel."""
    runs = [run for runs in entry["methods"].values() for run in runs]
    return sum(run["measuring"] for run in runs) / max(1, sum(run["measured"] for run in runs))


def seconds_after(entry, run, trials):
    """Of a search by itself, which would measure all of its candidates; 0 trials: until the first choice."""
    searching = next((seconds for done, seconds in run["searching"] if done >= max(1, trials)), run["searching"][-1][1])
    return searching + trials * seconds_of_trial(entry)


def interval(entries, value, draws=2000):
    """A 95 % interval of the geometric mean, by drawing networks (families) anew."""
    groups = {}
    for entry in entries:
        groups.setdefault(entry["model"], []).append(math.log(max(value(entry), LEAST)))
    names, generator = list(groups), random.Random(1)
    means = sorted(statistics.fmean([v for name in generator.choices(names, k=len(names)) for v in groups[name]]) for _ in range(draws))
    return math.exp(means[int(0.025 * draws)]), math.exp(means[int(0.975 * draws)])


def most_trials(entries, method):
    return max(run["trials"] for entry in entries for run in entry["methods"][method])


def row(cells):
    return "| " + " | ".join(cells) + " |"


def head(*cells):
    return [row(cells), "|" + "---|" * len(cells)]


def by_measurements(entries, methods):
    lines = head("method", "first choice", *(f"{b} measured" for b in BUDGETS[1:]), "tenth percentile of first choices")
    for method in methods:
        cells = []
        for budget in BUDGETS:
            low, high = interval(entries, lambda e: quality(e, method, budget))
            there = budget <= most_trials(entries, method)
            cells.append(f"{geomean([quality(e, method, budget) for e in entries]):.3f} ({low:.3f}..{high:.3f})" if there else "-")
        firsts = sorted(quality(e, method, 1) for e in entries)
        lines.append(row([method, *cells, f"{firsts[max(0, math.ceil(0.1 * len(firsts)) - 1)]:.3f}"]))
    lasting = [e for e in entries if e.get("default")]
    lines += ["", f"The default schedule, which rules made: {geomean([best_known(e) / e['default'] for e in lasting]):.3f} of the best known (another space; above "
                  f"1: better than all that was measured here)."]
    return lines


def again(entries, methods):
    """Speeds over the default schedule, measured together in fresh processes: free of the luck of the best of many."""
    budgets = ("1", "16", "64", "1000")
    lines = head("method", "first choice", *(f"{b} measured" for b in budgets[1:]), "all of its measurements")
    for method in methods:
        have = [e["again"][method] for e in entries if method in e.get("again", {})]
        cells = []
        for budget in (*budgets, "all"):
            values = [speeds[max(speeds, key=int) if budget == "all" else budget] or LEAST for speeds in have if budget == "all" or budget in speeds]
            cells.append(f"{geomean(values):.3f}" if len(values) == len(have) and have else "-")
        lines.append(row([method, *cells]))
    return lines


def by_seconds(entries, methods):
    """Median seconds of a kernel until so many measurements are done, and how much sooner a method is where AutoTVM's trees end."""
    lines = head("method", "first choice", *(f"{b} measured" for b in BUDGETS), "times faster to the trees' end", "kernels and seeds that reach it")
    for method in methods:
        most = most_trials(entries, method)
        cells = [f"{statistics.median(seconds_after(e, run, budget) for e in entries for run in e['methods'][method]):.2f} s" if budget <= most else "-"
                 for budget in (0, *BUDGETS)]
        gains = [gain for e in entries for gain in sooner(e, method)] if "gbt" in methods else []
        reached = [gain for gain in gains if gain]
        cells += [f"{geomean([gain or 1 for gain in gains]):.1f}" if gains else "-", f"{len(reached)} of {len(gains)}"]
        lines.append(row([method, *cells]))
    return lines


def sooner(entry, method):
    """Of each seed: the seconds of the trees' whole search over those after which the method was as good; None: it never was."""
    out, trees = [], entry["methods"]["gbt"][0]
    bound = best_after(trees, math.inf) * NOISE
    for run in entry["methods"][method]:
        trial = next((trial for trial, seconds in run["gains"] if seconds <= bound), None)
        out.append(seconds_after(entry, trees, trees["trials"]) / seconds_after(entry, run, trial) if trial else None)
    return out


def networks(entries, methods):
    """Of networks: the default schedules' time over that of the first choices and of the best of 64; then, as in One-Shot Tuner's figures, what the search of
    the whole network takes and how fast it is beside the trees' one."""
    names = list(dict.fromkeys(e["model"] for e in entries))
    lines = head("network", "kernels", *(f"{method}, {budget}" for method in methods for budget in ("first choice", "64 measured")))
    for name in names:
        own = [e for e in entries if e["model"] == name]
        usual = sum(e["calls"] * e["default"] for e in own)
        cells = [f"{usual / network_seconds(own, method, budget):.3f}" for method in methods for budget in (1, 64)]
        lines.append(row([name, str(len(own)), *cells]))
    if "gbt" not in methods:
        return lines
    lines += ["", *head("network", "trees: search", "network", *(f"{method}: search, times shorter, network's speed" for method in methods if method != "gbt"))]
    for name in names:
        own = [e for e in entries if e["model"] == name]
        base, latency = search_seconds(own, "gbt"), network_seconds(own, "gbt", math.inf)
        cells = [f"{search_seconds(own, method):.0f} s, {base / search_seconds(own, method):.1f}, {latency / network_seconds(own, method, math.inf):.3f}"
                 for method in methods if method != "gbt"]
        lines.append(row([name, f"{base:.0f} s", f"{latency * 1e3:.3f} ms", *cells]))
    return lines


def network_seconds(own, method, budget):
    """With the first candidate that works, where none of so many does."""
    def best(run):
        return best_after(run, max(budget, run["gains"][0][0])) if run["gains"] else math.inf
    return sum(e["calls"] * statistics.median(best(run) for run in e["methods"][method]) for e in own)


def search_seconds(own, method):
    return sum(statistics.fmean(seconds_after(e, run, run["trials"]) for run in e["methods"][method]) for e in own)


def text(entries, methods, whole):
    if not entries:
        return ""
    seeds = max(len(runs) for e in entries for runs in e["methods"].values())
    parts = [f"# Quality against budget\n\n{len(entries)} kernels, up to {seeds} seeds. Quality is the best time known over the best of so many measurements: geometric "
             "mean, and its 95 % interval over networks.", by_measurements(entries, methods),
             "## Seconds\n\nMedian of kernels; the last columns: until it is within 1 % of where AutoTVM's trees are after all of their measurements (what never "
             "is counts as 1).", by_seconds(entries, methods)]
    if any("again" in e for e in entries):
        parts += ["## Measured again together\n\nThe first seed's choices: geometric mean of the speed over the default schedule.", again(entries, methods)]
    if whole:
        parts += ["## Networks\n\nThe sums of kernels' times: the default schedules' over the chosen ones'. Kernels whose space has few points are left out.",
                  networks(entries, methods)]
    return "\n\n".join(part if isinstance(part, str) else "\n".join(part) for part in parts) + "\n"


def figure(entries, methods):
    """Quality by seconds of search: a step for each method, from its first choice on."""
    width, height, left, top = 560, 300, 50, 20
    begin, end = 0.1, 1000
    place = lambda seconds: left + width * math.log(min(max(seconds, begin), end) / begin) / math.log(end / begin)
    level = lambda value: top + height * (1 - max(0.0, value))
    parts = [f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#999"/>']
    for value in (0.25, 0.5, 0.75, 0.9, 1):
        parts.append(f'<line x1="{left}" x2="{left + width}" y1="{level(value):.1f}" y2="{level(value):.1f}" stroke="#ddd"/>'
                     f'<text x="{left - 6}" y="{level(value) + 3:.1f}" font-size="10" text-anchor="end">{value}</text>')
    for seconds in (0.1, 1, 10, 100, 1000):
        parts.append(f'<text x="{place(seconds):.1f}" y="{top + height + 14}" font-size="10" text-anchor="middle">{seconds} s</text>')
    for number, method in enumerate(methods):
        line = " ".join(f"{place(x):.1f},{level(y):.1f}" for x, y in steps(entries, method))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[method]}" stroke-width="1.5"/>'
                     f'<text x="{left + width + 8}" y="{top + 14 + 16 * number}" font-size="11" fill="{COLOURS[method]}">{method}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 80} {top + height + 40}" font-family="sans-serif">' + "".join(parts) +
            f'<text x="{left + width / 2}" y="{top + height + 32}" font-size="11" text-anchor="middle">seconds of a kernel\'s search</text></svg>\n')


def steps(entries, method):
    """[seconds, quality] of each budget: medians of seconds, geometric means of qualities."""
    out = []
    most = most_trials(entries, method)
    for trials in [0] + [2 ** (i / 2) for i in range(2, 21) if 2 ** (i / 2) <= most] + [most]:
        trials = int(trials)
        seconds = statistics.median(seconds_after(e, run, trials) for e in entries for run in e["methods"][method])
        value = geomean([quality(e, method, max(1, trials)) for e in entries])
        if out:
            out.append((seconds, out[-1][1]))
        out.append((seconds, value))
    return out
