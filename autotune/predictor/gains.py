"""How far off a predicted gain may be: the variance of the error of the difference of two scores of a task, by how alike the programs are.

It is c + s d^2 + sum of v_i e_i^2, where d is the difference of the scores as binary logarithms and e that of the embeddings; none of the
numbers is negative. They are those under which the errors on held-out tasks are most likely, by a normal law, with the default schedule as
one of the two programs. Two programs that the network cannot tell apart have an error of noise alone.
"""
import numpy as np
import torch

from . import baselines, evaluate

LEAST_VARIANCE = 0.01**2   # noise of times
MOST_ERROR = 3.0           # greater errors, of programs that nobody would choose, count as this
STEPS, RATE = 1500, 0.02


def held_out(corpus, scores, embeddings, platforms, splits=("validation",)):
    """[pairs] errors and differences of scores, [pairs, size] differences of embeddings: each program that worked beside its default.
    Scores are binary logarithms of speed, [platforms, programs]; embeddings are [platforms, programs, size]."""
    errors, ahead, apart = [], [], []
    for platform in platforms:
        for split in splits:
            for pool in evaluate.Pools(corpus, platform, split):
                default = baselines.default_place(corpus, pool.programs)
                if default is None or not np.isfinite(pool.seconds[default]):
                    continue
                score, embedding = scores[platform, pool.programs], embeddings[platform, pool.programs]
                good = np.isfinite(pool.seconds)
                good[default] = False
                d = score[good] - score[default]
                errors.append(d - np.log2(pool.seconds[default] / pool.seconds[good]))
                ahead.append(d)
                apart.append(embedding[good] - embedding[default])
    if not errors:
        return None
    return np.concatenate(errors).clip(-MOST_ERROR, MOST_ERROR), np.concatenate(ahead), np.concatenate(apart)


def squares(scores, embeddings):
    return torch.from_numpy(np.concatenate([np.ones((len(scores), 1)), scores[:, None]**2, embeddings**2], axis=1)).float()


def fit(errors, scores, embeddings):
    """c, s and the v_i."""
    terms, square = squares(scores, embeddings), torch.from_numpy(errors**2).float()
    size = terms.mean(0).clamp_min(1e-9)
    weights = torch.full((terms.shape[1],), -3.0, requires_grad=True)
    optimizer = torch.optim.Adam([weights], lr=RATE)
    for _ in range(STEPS):
        variance = (terms / size) @ torch.nn.functional.softplus(weights) + LEAST_VARIANCE
        loss = (torch.log(variance) + square / variance).mean() / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    found = (torch.nn.functional.softplus(weights) / size).detach().numpy()
    found[0] += LEAST_VARIANCE
    return found


def variance(corpus, scores, embeddings, platforms):
    """The numbers of a network, [2 + size of an embedding]; none: no held-out task has labels."""
    pairs = held_out(corpus, scores, embeddings, platforms)
    return None if pairs is None else fit(*pairs)


def spreads(corpus, scores, embeddings, numbers, splits=("validation", "near", "test")):
    """[platforms, programs] deviations of the gains over the tasks' default programs; nan where a task has none."""
    out = np.full(scores.shape, np.nan, np.float32)
    for platform in range(len(scores)):
        for task in corpus.split(*splits):
            programs = corpus.programs(task)
            default = baselines.default_place(corpus, programs)
            if default is None or np.isnan(corpus.seconds[platform, programs]).all():
                continue
            score, embedding = scores[platform, programs], embeddings[platform, programs]
            terms = squares(score - score[default], embedding - embedding[default]).numpy()
            out[platform, programs] = np.sqrt(terms @ numbers)
    return out


def coverage(numbers, errors, scores, embeddings):
    """The share of errors within one and within two deviations; of a normal law 0.68 and 0.95."""
    deviations = np.abs(errors) / np.sqrt(squares(scores, embeddings).numpy() @ numbers)
    return float((deviations < 1).mean()), float((deviations < 2).mean())
