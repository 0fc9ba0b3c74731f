"""How well scores choose from a task's pool."""
import numpy as np

CUTS = (1, 5, 10)


def chosen(scores, seconds, count):
    """Least time among the count programs with the highest scores; equal scores keep their order. Failed programs have infinite times."""
    order = np.argsort(-scores, kind="stable")[:count]
    return float(seconds[order].min())


def tops(scores, seconds, cuts=CUTS):
    """Best time over the chosen one, for each cut."""
    best = seconds.min()
    return [best / chosen(scores, seconds, cut) for cut in cuts]


def random_times(seconds, cuts=CUTS):
    """Mean over draws, exactly: the mean of the time of the best of so many programs drawn without return, and of best over time."""
    seconds = np.sort(seconds)
    n = len(seconds)
    times, ratios = [], []
    for cut in cuts:
        cut = min(cut, n)
        probability, left = np.zeros(n), 1.0
        for i in range(n - cut + 1):  # i is the fastest drawn program
            probability[i] = left * cut / (n - i)
            left -= probability[i]
        finite = np.isfinite(seconds)
        times.append(float((probability[finite] * seconds[finite]).sum() / probability[finite].sum()))
        ratios.append(float((probability * seconds[0] / seconds).sum()))
    return times, ratios


def pairwise(scores, speeds):
    """Share of the pairs that differ by more than a fiftieth and are in the right order."""
    log = np.log(np.maximum(speeds, 1e-3))
    apart = log[:, None] - log[None, :] > 0.02
    right = scores[:, None] > scores[None, :]
    return float(right[apart].mean()) if apart.any() else 1.0


def spearman(a, b):
    def ranks(x):
        order = np.argsort(x, kind="stable")
        out = np.empty(len(x))
        out[order] = np.arange(len(x))
        _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
        sums = np.bincount(inverse, out)
        return sums[inverse] / counts[inverse]
    a, b = ranks(a), ranks(b)
    return float(np.corrcoef(a, b)[0, 1]) if len(a) > 2 and a.std() > 0 and b.std() > 0 else float("nan")
