"""Reads folders of features that `tilewright dataset features SET.db --as KIND -o DIR` wrote.

A folder has `ids.npy` (a program each), `offsets.npy`, `values.npy` (rows offsets[i] to offsets[i+1] are program i's) and
`columns.txt`. Beside the folders lies `hardware.json`: numbers by platform.
"""
import json
import pathlib

import numpy as np

ONE_ROW = ("one-shot", "task")


class Ragged:
    """Rows of numbers for programs 0, 1, .. of a corpus; a program may have many."""

    def __init__(self, values, first, count, columns):
        self.values, self.first, self.count, self.columns = values, first, count, columns

    def dense(self, programs, rows, width=None):
        """[programs, rows, width]: the first rows and columns of each, the rest zero."""
        width = len(self.columns) if width is None else width
        at = np.arange(rows)[None, :]
        there = at < self.count[programs][:, None]
        index = np.where(there, self.first[programs][:, None] + at, 0)
        taken = min(width, self.values.shape[1])
        out = np.zeros((len(programs), rows, width), np.float32)
        out[:, :, :taken] = self.values[index][:, :, :taken]
        out[~there] = 0
        return out

    def single(self, programs):
        return self.values[self.first[programs]]


def read(folder, ids):
    """The features in a folder for programs by their ids; ValueError when some have none."""
    folder = pathlib.Path(folder)
    stored, offsets = np.load(folder / "ids.npy"), np.load(folder / "offsets.npy")
    values = np.load(folder / "values.npy", mmap_mode="r")
    columns = (folder / "columns.txt").read_text().split("\n")
    columns = columns[:-1] if columns[-1] == "" else columns
    if values.shape[1] != len(columns) or offsets[-1] != len(values) or len(offsets) != len(stored) + 1:
        raise ValueError(f"{folder}: sizes of values.npy, offsets.npy, ids.npy and columns.txt do not fit each other")
    order = np.argsort(stored, kind="stable")
    place = np.minimum(np.searchsorted(stored, ids, sorter=order), len(stored) - 1)
    at = order[place]
    missing = int((stored[at] != ids).sum())
    if missing:
        raise ValueError(f"{folder}: no features for {missing} of {len(ids)} programs")
    return Ragged(np.ascontiguousarray(values, np.float32), offsets[at], offsets[at + 1] - offsets[at], columns)


def hardware(path, platforms):
    """[platforms, numbers] of hardware.json, as log2(1 + x), and the numbers' names."""
    table = json.loads(pathlib.Path(path).read_text())
    missing = [platform for platform in platforms if platform not in table]
    if missing:
        raise ValueError(f"{path}: no entry for {', '.join(missing)}")
    names = sorted({name for platform in table.values() for name in platform})
    rows = [[np.log2(1 + float(table[platform].get(name, 0))) for name in names] for platform in platforms]
    return np.array(rows, np.float32), names
