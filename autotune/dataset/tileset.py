"""Reads a data set that `tilewright dataset export` wrote, into numpy arrays.

    import tileset
    data = tileset.load("tileset-1")
    task = data.tasks[0]                     # .key .name .network .split .flops .text .kernel ...
    programs = data.programs[task.number]    # .ids (int64), .sources (int8), .schedules (list of str)
    labels = data.labels(0, task.number)     # of the first platform: .median (seconds; nan: failed), .least, .status, ... in the programs' order

`python3 tileset.py FOLDER` prints what it holds. Needs: numpy. Errors: ValueError for a file whose checksum is another one.
"""
import dataclasses
import gzip
import hashlib
import json
import pathlib
import sys

import numpy as np

SOURCES = ["default", "uniform", "search", "neighbour", "product", "predicted"]
STATUS = ["ok", "illegal", "compile-error", "timeout", "wrong-result", "crashed"]


@dataclasses.dataclass
class Task:
    number: int        # place in Set.tasks
    key: str
    lowered_for: str   # name of the target whose lowering the kernel is
    name: str
    kind: str          # "conv", "matmul", ..
    network: str       # family of networks; "sampled"
    split: str         # "train", "validation", "test", "near"
    flops: float
    complete: bool
    kernel: str        # hash, into Set.kernels
    text: str
    algorithm: str = "direct"   # or "winograd_f4", ..: a task of the same key and layer


def identity(line, key):
    """What tells a task from the others, of a line that names it."""
    return line[key], line["lowered_for"], line.get("algorithm", "direct")


@dataclasses.dataclass
class Programs:
    ids: np.ndarray        # int64
    sources: np.ndarray    # int8, into SOURCES
    schedules: list        # texts


@dataclasses.dataclass
class Labels:
    """A row a program of the task, in their order; nan and -1: not measured."""
    status: np.ndarray     # int8, into STATUS
    least: np.ndarray      # float64, seconds
    median: np.ndarray
    samples: np.ndarray    # int32
    contended: np.ndarray  # bool
    time: np.ndarray       # int64, seconds since 1970


class Set:
    def __init__(self, manifest, tasks, kernels, programs, labels):
        self.manifest, self.tasks, self.kernels, self.programs = manifest, tasks, kernels, programs
        self.platforms = manifest["platforms"]   # dicts: target, machine, threads, kind, ..
        self._labels = labels                    # (platform, task, pass) -> line

    def labels(self, platform, task, again=False):
        """Labels of a task on a platform, by number; again: of the second pass."""
        ids, line = self.programs[task].ids, self._labels.get((platform, task, int(again)))
        out = Labels(*(np.full(len(ids), *fill) for fill in ((-1, np.int8), (np.nan, float), (np.nan, float), (0, np.int32), (False, bool), (0, np.int64))))
        if line is None:
            return out
        place = {program: i for i, program in enumerate(ids.tolist())}
        rows = [place[program] for program in line["ids"]]
        for name in ("status", "samples", "contended", "time"):
            getattr(out, name)[rows] = line[name]
        good = np.array(line["status"]) == 0
        for name in ("least", "median"):
            getattr(out, name)[rows] = np.where(good, line[name], np.nan)
        return out


def _lines(folder, entry):
    data = (folder / entry["file"]).read_bytes()
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise ValueError(f"{folder / entry['file']} is damaged: its checksum is another one")
    return [json.loads(line) for line in gzip.decompress(data).splitlines()]


def load(folder):
    folder = pathlib.Path(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    if manifest["format"] != 1:
        raise ValueError(f"{folder} has format {manifest['format']}; this loader reads format 1")
    files = {entry["file"]: entry for entry in manifest["files"]}
    tasks = [Task(number, **line) for number, line in enumerate(_lines(folder, files["tasks.jsonl.gz"]))]
    number = {(task.key, task.lowered_for, task.algorithm): task.number for task in tasks}
    programs = [Programs(np.zeros(0, np.int64), np.zeros(0, np.int8), []) for _ in tasks]
    for line in _lines(folder, files["programs.jsonl.gz"]):
        programs[number[identity(line, "task")]] = Programs(np.array(line["ids"], np.int64), np.array(line["sources"], np.int8), line["schedules"])
    labels = {(at, number[identity(line, "task")], line["pass"]): line
              for at, platform in enumerate(manifest["platforms"]) for line in _lines(folder, files[platform["file"]])}
    kernels = {line["kernel"]: line["text"] for line in _lines(folder, files["kernels.jsonl.gz"])}
    return Set(manifest, tasks, kernels, programs, labels)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    data = load(sys.argv[1])
    print(f"{len(data.tasks)} tasks, {sum(len(p.ids) for p in data.programs)} programs")
    for at, platform in enumerate(data.platforms):
        medians = np.concatenate([data.labels(at, task.number).median for task in data.tasks]) if data.tasks else np.zeros(0)
        print(f"{platform['target']}, {platform['threads']} threads, {platform['machine']}: {int(np.isfinite(medians).sum())} times")


if __name__ == "__main__":
    main()
