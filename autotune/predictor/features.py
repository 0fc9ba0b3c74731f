"""Reads folders of features that `tilewright dataset features SET.db --as KIND -o DIR` wrote.

A folder has `ids.npy` (a program each), `offsets.npy`, `values.npy` (rows offsets[i] to offsets[i+1] are program i's) and
`columns.txt`. Beside the folders or in any of them lies `hardware.json`: numbers by platform, which is TARGET or TARGET:THREADS.
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
    """The features in a folder for programs by their ids. Programs that have none have a count of zero rows."""
    folder = pathlib.Path(folder)
    stored, offsets = np.load(folder / "ids.npy"), np.load(folder / "offsets.npy")
    values = np.load(folder / "values.npy", mmap_mode="r")
    columns = (folder / "columns.txt").read_text().split("\n")
    columns = columns[:-1] if columns[-1] == "" else columns
    if values.shape[1] != len(columns) or offsets[-1] != len(values) or len(offsets) != len(stored) + 1:
        raise ValueError(f"{folder}: sizes of values.npy, offsets.npy, ids.npy and columns.txt do not fit each other")
    order = np.argsort(stored, kind="stable")
    at = order[np.minimum(np.searchsorted(stored, ids, sorter=order), len(stored) - 1)]
    found = stored[at] == ids
    return Ragged(np.ascontiguousarray(values, np.float32), offsets[at], np.where(found, offsets[at + 1] - offsets[at], 0), columns)


def hardware(folder, platforms):
    """[platforms, numbers] of hardware.json, as they are, and the numbers' names: in the compiler's order, which is that of the networks' input."""
    folder = pathlib.Path(folder)
    path = next((p for p in [folder / "hardware.json", *sorted(folder.glob("*/hardware.json"))] if p.exists()), None)
    if path is None:
        raise ValueError(f"{folder} and the folders in it have no hardware.json")
    table = json.loads(path.read_text())
    if missing := [platform for platform in platforms if platform not in table]:
        raise ValueError(f"{path}: no entry for {', '.join(missing)}")
    names = list(table[platforms[0]])
    return np.array([[float(table[platform][name]) for name in names] for platform in platforms], np.float32), names
