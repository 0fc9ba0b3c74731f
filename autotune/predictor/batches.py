"""What one step of training sees: shuffled batches of all tasks, lists of one layer each, or draws that flatten the labels' density."""
import numpy as np
import torch

from . import losses
from .features import ONE_ROW

LEAST_LIST = 8


def inputs_of(corpus, needs, programs, platforms):
    """Tensors by kind of features: [batch, rows, width], or [batch, columns] of kinds with one row a program."""
    out = {}
    for kind, shape in needs.items():
        if kind == "hardware":
            out[kind] = torch.from_numpy(corpus.hardware[platforms])
        elif kind in ONE_ROW:
            out[kind] = torch.from_numpy(corpus.features[kind].single(programs))
        else:
            out[kind] = torch.from_numpy(corpus.features[kind].dense(programs, shape["rows"], shape.get("width")))
    return out


class Examples:
    """Labelled programs on platforms: those of some tasks whose labels may be seen."""

    def __init__(self, corpus, tasks, platforms, allowed=None):
        """`allowed` [platforms of the corpus, programs]: which labels there are."""
        self.corpus, self.platforms = corpus, list(platforms)
        allowed = np.ones(corpus.seconds.shape, bool) if allowed is None else allowed
        self.speeds = np.stack([corpus.speeds(p, allowed[p]) for p in self.platforms])
        inside = np.isin(corpus.task_of, tasks)
        self.known = np.isfinite(self.speeds) & inside
        layers = {}
        for task in tasks:
            layers.setdefault(corpus.layer_of[task], []).append(corpus.programs(task))
        self.groups = []  # (row of platforms, programs) of each layer, by all of its algorithms
        for at in range(len(self.platforms)):
            for parts in layers.values():
                programs = np.concatenate(parts)
                programs = programs[self.known[at, programs]]
                if len(programs) > 1:
                    self.groups.append((at, programs))
        self.throughput = self._throughput()

    def _throughput(self):
        """FLOPS, without mean and deviation of the known ones, as One-Shot Tuner's target is."""
        flops = np.array([max(task.flops, 1.0) for task in self.corpus.tasks])[self.corpus.task_of]
        seconds = self.corpus.seconds[self.platforms]
        with np.errstate(invalid="ignore", divide="ignore"):
            rates = np.where(np.isfinite(seconds), flops / seconds, 0.0)
        known = rates[self.known]
        return ((rates - known.mean()) / max(known.std(), 1e-12) if len(known) else rates).astype(np.float32)

    def pairs(self):
        """(row of platforms, program) of each label."""
        return np.nonzero(self.known)


class Batch:
    """Items in lists: `programs`, `rows` (of platforms) and `there` are [lists, length]."""

    def __init__(self, programs, rows, there):
        self.programs, self.rows, self.there = programs, rows, there

    def tensors(self, examples):
        speeds = examples.speeds[self.rows, self.programs]
        targets = examples.throughput[self.rows, self.programs]
        return torch.from_numpy(np.nan_to_num(speeds)), torch.from_numpy(targets), torch.from_numpy(self.there)


def shuffled(examples, size, random, weights=None):
    """Batches of one list each, over all labels; with weights: drawn with return."""
    rows, programs = examples.pairs()
    count = len(programs)
    order = random.permutation(count) if weights is None else random.choice(count, count, p=weights / weights.sum())
    for begin in range(0, count, size):
        taken = order[begin:begin + size]
        if len(taken) > 1:
            yield Batch(programs[taken][None], rows[taken][None], np.ones((1, len(taken)), bool))


def flattened(examples, size, random):
    rows, programs = examples.pairs()
    return shuffled(examples, size, random, losses.inverse_density(examples.throughput[rows, programs]))


def of_programs(examples, size, random):
    """For networks with a head for each platform: a list a platform, all of the same programs."""
    programs = np.nonzero(examples.known.any(0))[0]
    order = random.permutation(len(programs))
    for begin in range(0, len(order), size):
        taken = programs[order[begin:begin + size]]
        if len(taken) < 2:
            continue
        count = len(examples.platforms)
        yield Batch(np.repeat(taken[None], count, 0), np.repeat(np.arange(count)[:, None], len(taken), 1), examples.known[:, taken])


def lists(examples, size, length, random):
    """Batches of `size` lists with up to `length` programs of one layer on one platform."""
    pieces = []
    for row, programs in examples.groups:
        order = random.permutation(programs)
        for begin in range(0, len(order), length):
            piece = order[begin:begin + length]
            if len(piece) >= min(LEAST_LIST, len(order)):
                pieces.append((row, piece))
    random.shuffle(pieces)
    for begin in range(0, len(pieces), size):
        taken = pieces[begin:begin + size]
        programs, there = np.zeros((len(taken), length), np.int64), np.zeros((len(taken), length), bool)
        rows = np.repeat(np.array([row for row, _ in taken])[:, None], length, 1)
        for at, (_, piece) in enumerate(taken):
            programs[at, :len(piece)], programs[at, len(piece):], there[at, :len(piece)] = piece, piece[0], True
        yield Batch(programs, rows, there)


def batches(config, examples, random, many):
    """An epoch's batches by the configuration's loss."""
    kind, size = config["loss"]["batch"], config["loss"]["size"]
    if many:
        return of_programs(examples, size, random)
    if kind == "lists":
        return lists(examples, size, config["loss"]["length"], random)
    if kind == "flattened":
        return flattened(examples, size, random)
    if kind == "shuffled":
        return shuffled(examples, size, random)
    raise ValueError(f"loss.batch is lists, shuffled or flattened, not '{kind}'")
