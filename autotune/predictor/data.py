"""A data set joined with its features: tasks, programs and times as arrays, and which of them a training may see.

    from predictor import data
    corpus = data.load("datasets/tileset-1", "features", ["steps", "loops"])
    corpus.seconds[platform, program]     # nan: not measured; inf: the program failed
"""
import hashlib
import pathlib
import re
import sys

import numpy as np

from . import features

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "dataset"))
import tileset  # noqa: E402

SPLITS = ("train", "validation", "test", "near")


class Corpus:
    """Programs are numbered through, task by task: those of tasks[i] are start[i] to start[i+1]. A layer's tasks are by different algorithms,
    and which of them is faster is worth to know too: `layer_of` numbers the layers of the tasks."""

    def __init__(self, tasks, ids, sources, schedules, start, seconds, again, platforms):
        self.tasks, self.ids, self.sources, self.schedules, self.start = tasks, ids, sources, schedules, start
        self.seconds, self.again, self.platforms = seconds, again, platforms
        self.task_of = np.repeat(np.arange(len(tasks)), np.diff(start))
        numbers = {}
        self.layer_of = np.array([numbers.setdefault((task.key, task.lowered_for), len(numbers)) for task in tasks], np.int64)
        self.features, self.hardware, self.hardware_names, self.checksum = {}, None, [], ""

    def programs(self, task):
        return np.arange(self.start[task], self.start[task + 1])

    def split(self, *names):
        return [i for i, task in enumerate(self.tasks) if task.split in names]

    def speeds(self, platform, allowed=None):
        """Least time of the layer, by any algorithm, over the program's time: 1 for the fastest, 0 for failed ones, nan where no time is
        known."""
        seconds = self.seconds[platform] if allowed is None else np.where(allowed, self.seconds[platform], np.nan)
        finite = np.where(np.isfinite(seconds), seconds, np.inf)
        least = np.full(len(self.tasks), np.inf)
        np.minimum.at(least, self.layer_of, np.minimum.reduceat(finite, self.start[:-1]))
        least = least[self.layer_of][self.task_of]
        with np.errstate(invalid="ignore"):
            speeds = np.where(np.isfinite(least), least / finite, 0.0)
        return np.where(np.isnan(seconds), np.nan, speeds).astype(np.float32)


def platform_names(platforms):
    """Short, and different for every platform of a set: target, threads, kind unless it is times, and of platforms alike in these a word
    of the machine."""
    names = [platform["target"] + ("" if platform["threads"] == 1 else f" {platform['threads']} threads") +
             ("" if platform["kind"] == "time" else f" {platform['kind']}") for platform in platforms]
    out = []
    for name, platform in zip(names, platforms):
        words = platform["machine"].split(", ")
        others = {word for other, like in zip(platforms, names) if like == name and other is not platform for word in other["machine"].split(", ")}
        own = [word for word in words if word not in others]
        out.append(f"{name} ({own[0]})" if others and own else name)
    return [name if out.count(name) == 1 else f"{name} #{at + 1}" for at, name in enumerate(out)]


def platform_key(platform):
    """Alike in all data sets that hold the platform, which number platforms each in their own way."""
    return f"{platform['target_key']} x {platform['threads']}, {platform['kind']}, {platform['machine']}"


def chip_of(platform):
    """What a platform's machine is, without the number of its cores and what its system lets programs use: the same of one chip with other
    instructions or threads."""
    return ", ".join(word for word in platform["machine"].split(", ") if not re.fullmatch(r"\d+ cores?|features \w+", word))


def check_one_kind(corpus, platforms):
    """Times, cycles and estimates mean different things: nothing learns from two of them at once."""
    if len(kinds := {corpus.kinds[platform] for platform in platforms}) > 1:
        raise SystemExit("labels of different kinds cannot be learned from together: " +
                         ", ".join(f"{platform} ({corpus.platforms[platform]}): {corpus.kinds[platform]}" for platform in platforms) +
                         f"; choose platforms of one of {', '.join(sorted(kinds))}")


def _caches(platform):
    """Sizes that the data set knows of the machine itself; targets stand for many machines."""
    return {f"l{level}_bytes": 1024.0 * int(size) for level, size in re.findall(r"\bL([123]) (\d+)K", platform["machine"])}


def _times(labels):
    """The least time of a measurement: where other work disturbs it, second passes agree with it far better than with the median."""
    return np.where(labels.status > 0, np.inf, np.where(labels.status == 0, labels.least, np.nan))


def load(folder, feature_folder=None, kinds=()):
    """Tasks that have programs, with the features of the kinds."""
    folder = pathlib.Path(folder)
    source = tileset.load(folder)
    tasks = [task for task in source.tasks if len(source.programs[task.number].ids)]
    programs = [source.programs[task.number] for task in tasks]
    start = np.concatenate([[0], np.cumsum([len(p.ids) for p in programs])])
    places = range(len(source.platforms))
    seconds, again = (np.stack([np.concatenate([_times(source.labels(at, task.number, second)) for task in tasks]) for at in places])
                      for second in (False, True))
    corpus = Corpus(tasks, np.concatenate([p.ids for p in programs]), np.concatenate([p.sources for p in programs]),
                    [text for p in programs for text in p.schedules], start, seconds, again, platform_names(source.platforms))
    corpus.kinds = [platform["kind"] for platform in source.platforms]
    corpus.platform_keys = [platform_key(platform) for platform in source.platforms]
    corpus.chips = [chip_of(platform) for platform in source.platforms]
    corpus.checksum = hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()[:16]
    if feature_folder is None:
        return corpus
    feature_folder = pathlib.Path(feature_folder)
    for kind in kinds:
        if kind == "hardware":
            keys = [p["target"] if p["threads"] == 1 else f"{p['target']}:{p['threads']}" for p in source.platforms]
            corpus.hardware, corpus.hardware_names = features.hardware(feature_folder, keys)
            for row, platform in zip(corpus.hardware, source.platforms):
                for name, size in _caches(platform).items():
                    if name in corpus.hardware_names:
                        row[corpus.hardware_names.index(name)] = size
        else:
            corpus.features[kind] = features.read(feature_folder / kind, corpus.ids)
            missing = corpus.features[kind].count == 0
            if missing.any():
                print(f"{feature_folder / kind}: no features for {int(missing.sum())} of {len(missing)} programs, which are left out")
                corpus.seconds[:, missing], corpus.again[:, missing] = np.nan, np.nan
    return corpus


def is_learnable(corpus, platform):
    """Whether a task of training has a label on the platform."""
    return any(np.isfinite(corpus.seconds[platform, corpus.programs(task)]).any() for task in corpus.split("train"))


def keep_algorithm(corpus, start):
    """Takes the tasks of algorithms with other names out of all splits."""
    for task in corpus.tasks:
        if not task.algorithm.startswith(start):
            task.split = ""


def unit(text, seed):
    """A number in [0, 1) that only the text and the seed decide."""
    digest = hashlib.sha256(f"{seed} {text}".encode()).digest()
    return int.from_bytes(digest[:8], "little") / 2.0**64


def folds(corpus, count):
    """The fold of every task: families stay whole, but for sampled tasks, which are families of one."""
    out = []
    for task in corpus.tasks:
        name = task.key if task.network == "sampled" else task.network
        out.append(int(unit(name, "fold") * count))
    return np.array(out)


def share_of_labels(corpus, share, by, seed, platform):
    """Which programs' labels are there when only a share of a platform's may be seen; by whole tasks that have any, or by programs. A
    greater share of the same seed holds a lesser one, and at least one task of each split is there."""
    if share >= 1:
        return np.ones(len(corpus.ids), bool)
    if by == "programs":
        return np.array([unit(i, seed) < share for i in corpus.ids.tolist()])
    if by != "tasks":
        raise ValueError(f"labels are shared out by tasks or by programs, not by '{by}'")
    chosen = np.zeros(len(corpus.tasks), bool)
    for split in SPLITS:
        members = [i for i in corpus.split(split) if np.isfinite(corpus.seconds[platform, corpus.programs(i)]).any()]
        members.sort(key=lambda i: unit(corpus.tasks[i].key, seed))
        chosen[members[:max(1, round(share * len(members)))]] = True
    return chosen[corpus.task_of]
