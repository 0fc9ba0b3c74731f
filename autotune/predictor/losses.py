"""Losses: of ranking lists, and of throughput.

Lists are rows: `scores` and `speeds` are [lists, length], `there` says which places hold a program. A shuffled batch, as TLP has it,
is one list in which programs of all tasks are mixed.
"""
import torch
import torch.nn.functional as F

EPSILON = 1e-10


def lambda_rank(scores, speeds, there):
    """LambdaRank with pairs weighted by the change of nDCG that their exchange would make."""
    low = torch.finfo(scores.dtype).min
    order = scores.detach().masked_fill(~there, low).argsort(dim=1, descending=True)
    scores, speeds, there = (x.gather(1, order) for x in (scores, speeds.masked_fill(~there, 0), there))
    ranks = torch.arange(1, scores.shape[1] + 1, device=scores.device, dtype=scores.dtype)
    discount = 1 / torch.log2(1 + ranks)
    gains = torch.where(there, torch.pow(2.0, speeds) - 1, torch.zeros_like(speeds))
    ideal = (gains.sort(dim=1, descending=True).values * discount).sum(1, keepdim=True).clamp_min(EPSILON)
    gains = gains / ideal
    weight = (discount[:, None] - discount[None, :]).abs() * (gains[:, :, None] - gains[:, None, :]).abs()
    pairs = (speeds[:, :, None] > speeds[:, None, :]) & there[:, :, None] & there[:, None, :]
    losses = -F.logsigmoid(scores[:, :, None] - scores[:, None, :]) * weight / torch.log(torch.tensor(2.0))
    return losses.masked_fill(~pairs, 0).sum() / len(scores)


def list_net(scores, speeds, there, temperature):
    """Cross entropy between softmax of the scores and softmax of the logarithms of the speeds over a temperature."""
    low = torch.finfo(scores.dtype).min
    wanted = torch.log(speeds.clamp_min(1e-3)) / temperature
    wanted = torch.softmax(wanted.masked_fill(~there, low), dim=1)
    got = torch.log_softmax((scores / temperature).masked_fill(~there, low), dim=1)
    return -(wanted * got.masked_fill(~there, 0)).sum(1).mean()


def centred(values, there):
    """Without the mean of each list."""
    count = there.sum(1, keepdim=True).clamp_min(1)
    values = values.masked_fill(~there, 0)
    return (values - values.sum(1, keepdim=True) / count).masked_fill(~there, 0)


def log_error(scores, speeds, there, least_speed=0.05):
    """Squared error of the logarithm of relative speed, without what a list has in common. Slow programs count as least_speed."""
    wanted = torch.log(speeds.clamp_min(least_speed))
    difference = centred(scores, there) - centred(wanted, there)
    return (difference**2).sum() / there.sum().clamp_min(1)


def spread_likelihood(scores, spread, speeds, there):
    """Negative log-likelihood of the errors under a normal law whose deviation is the spread; only the spread learns from it."""
    wanted = torch.log(speeds.clamp_min(0.05))
    difference = (centred(scores, there) - centred(wanted, there)).detach()
    losses = torch.log(spread) + 0.5 * (difference / spread)**2
    return losses.masked_fill(~there, 0).sum() / there.sum().clamp_min(1)


def squared(scores, wanted, there):
    return ((scores - wanted)**2).masked_fill(~there, 0).sum() / there.sum().clamp_min(1)


def inverse_density(values, bins=100):
    """Sampling weights: one over how many values share the bin of a histogram."""
    least, most = values.min(), values.max()
    place = ((values - least) / max(float(most - least), 1e-12) * bins).astype(int).clip(0, bins - 1)
    counts = torch.bincount(torch.from_numpy(place), minlength=bins).numpy()
    return 1.0 / counts[place]
