"""Statistics and the markdown table of compare_rivals.py. results: {model: {threads: {"blocks": [{contender: ms}], "failed":
{contender: reason}}}}; a ratio is a rival's time over Tilewright's in the same block."""
import math
import statistics

OURS = "tilewright"
TITLES = {"onnxruntime": "onnxruntime", "openvino": "OpenVINO", "openvino-bf16": "OpenVINO bf16", "ncnn": "ncnn", "mnn": "MNN", "inductor": "inductor", OURS: "Tilewright"}


def median_interval(values):
    """The median, and the narrowest pair of order statistics around it that holds it with 95 % probability, whatever the
    distribution (all values where there are fewer than six)."""
    ordered, n = sorted(values), len(values)
    below, k = 0.0, 0
    while True:
        below += math.comb(n, k) / 2 ** n   # P(at most k values lie below the median)
        if below > 0.025:
            break
        k += 1
    k = max(k, 1)
    return statistics.median(ordered), ordered[k - 1], ordered[n - k]


def medians(entry):
    """Contender -> median ms over the blocks in which it ran."""
    names = {name for block in entry["blocks"] for name in block}
    return {name: statistics.median(b[name] for b in entry["blocks"] if name in b) for name in names}


def best_rival(entry):
    rivals = {name: ms for name, ms in medians(entry).items() if name != OURS}
    return min(rivals, key=rivals.get) if rivals else None


def ratio(entry, rival):
    """(median, low, high) of rival / Tilewright; None where no block has both."""
    pairs = [b[rival] / b[OURS] for b in entry["blocks"] if rival in b and OURS in b]
    return median_interval(pairs) if pairs else None


def show_ms(value):
    return "n/a" if value is None else f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.1f}"


def table(results, threads, rivals):
    """Markdown lines of one thread count."""
    lines = [f"| model | {' | '.join(TITLES[r] for r in rivals)} | Tilewright | best rival | ratio | 95 % interval |",
             "|---" * (len(rivals) + 5) + "|"]
    ratios, missing, low = [], [], []
    for model, by_threads in results.items():
        entry = by_threads.get(str(threads))
        if not entry or not entry["blocks"]:
            continue
        ms, best = medians(entry), best_rival(entry)
        measured = ratio(entry, best) if best else None
        cells = [show_ms(ms.get(name)) for name in [*rivals, OURS]]
        if measured:
            ratios.append(measured[0])
            if measured[2] < 0.95:
                low.append(model)
            cells += [TITLES[best], f"{measured[0]:.2f}", f"{measured[1]:.2f} .. {measured[2]:.2f}"]
        else:
            missing.append(model)
            cells += [TITLES.get(best, "n/a"), "n/a", ""]
        lines.append(f"| {model} | {' | '.join(cells)} |")
    if ratios:
        mean = math.exp(statistics.fmean(math.log(r) for r in ratios))
        lines += ["", f"Geometric mean of {len(ratios)} models: **{mean:.2f}**, smallest {min(ratios):.2f}. Whole interval below 0.95: "
                  f"{', '.join(low) or 'none'}." + (f" Without a ratio: {', '.join(missing)}." if missing else "")]
    return lines


def describe_peaks(samples):
    """One line: the best and the median of what machine_peak measured before every process."""
    names = {"fma_gflops": "fp32 FMA {} GFLOP/s", "l1_read_gbs": "L1 read {} GB/s", "l2_read_gbs": "L2 read {} GB/s", "memory_read_gbs": "memory read {} GB/s"}
    parts = []
    for key, text in names.items():
        values = [s[key] for s in samples]
        parts.append(text.format(f"{max(values):.0f} (median {statistics.median(values):.0f})"))
    return "; ".join(parts)


def report(data, rivals):
    results = data["results"]
    threads = sorted({int(t) for by_threads in results.values() for t in by_threads})
    versions = ", ".join(f"{TITLES[name]} {data['versions'][name]}" for name in rivals if name in data["versions"])
    blocks = [len(e["blocks"]) for by_threads in results.values() for e in by_threads.values()]
    lines = [f"Median ms of a run, batch 1; {min(blocks, default=0)} or more blocks a line, every contender timed in every block in turn. "
             f"A ratio is the median over the blocks of the best rival's time over Tilewright's. {versions}.", ""]
    for count in threads:
        title = "One thread" if count == 1 else f"{count} threads"
        peaks = data["peaks"].get(str(count))
        lines += [f"{title}{' (' + describe_peaks(peaks) + ')' if peaks else ''}:", "", *table(results, count, rivals), ""]
    reasons = sorted({(model, TITLES[name], reason) for model, by_threads in results.items() for e in by_threads.values()
                      for name, reason in e["failed"].items()})
    if reasons:
        lines += ["Not available:", "", *[f"* {model}, {name}: {reason}" for model, name, reason in reasons], ""]
    return "\n".join(lines)
