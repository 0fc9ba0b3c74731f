"""What every table compares with: scores that need no learning, and what the noise of the labels allows.

* the default schedule, which is what the compiler takes without tuning;
* one random program, five, ten: their exact mean;
* the nearest training task's best program: programs are ordered by how many schedule steps they share with it;
* the second label (A/A): the programs that the first labels choose, timed by the second ones.
"""
import re

import numpy as np

TYPE = re.compile(r"(%\w+): \w+\[([^\]]*)\]")
NODE = re.compile(r"\s*(%\w+): \w+\[[^\]]*\]\S* = (\w+)\(([^)]*)\)(.*)")


def shape_of(task):
    """The kind of the task's main operator, and log2 of all extents of its inputs and its output."""
    extents = {name: [float(x) if x.strip().isdigit() else 1.0 for x in shape.split(",") if x.strip()]
               for name, shape in TYPE.findall(task.text)}
    nodes = [match for match in map(NODE.match, task.text.splitlines()) if match]
    anchor = re.search(r"anchor=(\d+)", task.text)
    if not nodes:
        return task.kind, np.array([np.log2(max(1.0, x)) for shape in extents.values() for x in shape])
    name, operator, arguments, rest = nodes[min(int(anchor.group(1)) if anchor else 0, len(nodes) - 1)].groups()
    group = re.search(r"group=(\d+)", rest)
    values = [x.strip() for x in arguments.split(",") if x.strip() in extents] + [name]
    kind = operator + (" grouped" if group and int(group.group(1)) > 1 else "")
    return kind, np.array([np.log2(max(1.0, x)) for value in values for x in extents[value]])


def distance(a, b):
    if a[0] != b[0] or len(a[1]) != len(b[1]):
        return 1e9
    return float(np.abs(a[1] - b[1]).sum())


def similarity(a, b):
    either = len(a | b)
    return len(a & b) / either if either else 1.0


def steps_of(schedule):
    return {line.strip() for line in schedule.splitlines()}


class Nearest:
    """Scores of programs by their likeness to the best program of the training task that is nearest."""

    def __init__(self, corpus, platform):
        self.corpus, self.known = corpus, []
        for task in corpus.split("train"):
            programs = corpus.programs(task)
            seconds = np.where(np.isfinite(corpus.seconds[platform, programs]), corpus.seconds[platform, programs], np.inf)
            if np.isfinite(seconds).any():
                self.known.append((shape_of(corpus.tasks[task]), programs[seconds.argmin()]))

    def scores(self, task, programs):
        shape = shape_of(self.corpus.tasks[task])
        best = min(self.known, key=lambda known: distance(shape, known[0]))[1]
        wanted = steps_of(self.corpus.schedules[best])
        return np.array([similarity(wanted, steps_of(self.corpus.schedules[i])) for i in programs])


def default_place(corpus, programs):
    """The place of the default schedule among the programs, or none."""
    places = np.nonzero(corpus.sources[programs] == 0)[0]
    return int(places[0]) if len(places) else None


def second_labels(corpus, platform, programs):
    """First and second times of the programs that have both."""
    first, second = corpus.seconds[platform, programs], corpus.again[platform, programs]
    both = np.isfinite(first) & np.isfinite(second)
    return first[both], second[both]
