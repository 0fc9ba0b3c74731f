#!/usr/bin/env python3
"""A lock keeps the layers that a limit of accuracy took back: --frozen makes these, searches for no others, and refuses what does not fit.

    locked.py --tilewright BUILD/tilewright
"""
import argparse
import json
import pathlib
import re
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from accuracy import PLAIN, Gate, convolutions, perceptron, random, taken_back  # noqa: E402

WINOGRAD = "--algorithm", "winograd_f6"
BF16 = "--precision", "bf16"
OVER_LIMIT, NOT_PINNED = 7, 6


class Place(Gate):
    """A model in a folder of its own, with its lock, and the flags that choose what it rounds."""

    def __init__(self, tilewright, folder, make, *flags):
        folder.mkdir()
        super().__init__(tilewright, folder)
        self.model, self.lock, self.flags = folder / "m.onnx", folder / "tilewright.lock", flags
        make(self.model)

    def locked(self, *flags, code=0):
        """What lock says, and the layers that the file names."""
        done = self.call("lock", self.model, "--json", *self.flags, *flags)
        assert done.returncode == code, (flags, done.returncode, done.stdout[-600:], done.stderr[-600:])
        if code:
            return json.loads(done.stdout)["error"][0], None
        sections = json.loads(self.lock.read_text())["models"]
        return json.loads(done.stdout), [section.get("exact", []) for section in sections]

    def built(self, *flags, code=0):
        report = self.compile(self.model, *self.flags, *flags, code=code)
        return (report, self.library.read_bytes()) if code == 0 else report["error"][0]

    def edit(self, change):
        """Another lock in its place, of which `change` is made."""
        lock = json.loads(self.lock.read_text())
        change(lock["models"][0])
        self.lock.write_text(json.dumps(lock))


def kernels(report):
    return [kernel["task"] for kernel in report["kernel_reports"] if "task" in kernel]


def part_of(place, *flags):
    """A limit that takes some layers back and not all, and what a compile without a lock makes of it."""
    whole = place.built("--max-error", 1, *flags)[0]["accuracy"]
    limit = whole["error"] * 0.7
    report, _ = place.built("--max-error", limit, *flags)
    assert 0 < len(taken_back(report["accuracy"])) < len(whole["layers"]), report["accuracy"]
    return limit, report


def check_kept(place, verified=True, *flags):
    """The layers of the limit, by name, are those of the lock and of each library that it makes."""
    limit, wanted = part_of(place, *flags)
    back = sorted(taken_back(wanted["accuracy"]))
    said, exact = place.locked("--max-error", limit, *flags)
    text = place.lock.read_bytes()
    assert exact == [back] and sorted(taken_back(said["accuracy"])) == back, (exact, back)
    assert place.locked("--max-error", limit, *flags)[1] == exact and place.lock.read_bytes() == text, "the lock differs from run to run"
    report, library = place.built("--frozen")
    assert "accuracy" not in report and kernels(report) == kernels(wanted), "the lock's kernels are not those of the limit"
    assert place.built("--frozen")[1] == library
    if verified:
        assert place.within_on_seeds(place.model, limit) and not place.within_on_seeds(place.model, said["accuracy"]["error"] * 0.99)
    assert f'"exact":{json.dumps(back)}'.replace(" ", "") in place.call("inspect", place.library, "--json").stdout.replace(" ", "").replace("\n", "")
    held, again = place.built("--frozen", "--max-error", limit)
    assert again == library and held["accuracy"]["error"] == said["accuracy"]["error"], held["accuracy"]
    kept = {layer["name"] for layer in held["accuracy"]["layers"]}
    assert kept == {layer["name"] for layer in wanted["accuracy"]["layers"]} - set(back) and not taken_back(held["accuracy"])
    print(f"{' '.join(place.flags)}: {len(back)} layers stay exact by the lock, the error is {held['accuracy']['error']:.2e}")
    return limit, back


def check_refused(place, limit):
    """--frozen searches for no other layers; names that the model does not have are refused, wherever the lock is read."""
    over = place.built("--frozen", "--max-error", limit * 1e-3, code=OVER_LIMIT)
    assert "layers that the lock keeps exact" in over["message"] and "\n" not in over["message"] and not over.get("notes"), over
    layers = place.built("--frozen", "--max-error", limit, "--layers", code=1)
    assert "--layers" in layers["message"], layers
    text = place.lock.read_text()
    place.edit(lambda section: section["exact"].insert(0, "nowhere"))
    for flags in ((), ("--frozen",)):
        unknown = place.built(*flags, code=1)
        assert re.search(r"keeps layers exact that 'm.onnx' does not have: nowhere;", unknown["message"]) and not unknown.get("notes"), unknown
    place.lock.write_text(text)
    before = place.lock.read_bytes()
    assert place.locked("--max-error", 0, code=OVER_LIMIT)[0]["code"] == "over-budget" and place.lock.read_bytes() == before
    assert "--accuracy-data" in place.locked("--accuracy-data", place.lock.parent, code=1)[0]["message"]
    assert place.locked()[1] == [[]], "a lock without a limit keeps layers exact"
    whole, _ = place.built("--frozen", "--max-error", 1)
    assert whole["accuracy"]["layers"] and not taken_back(whole["accuracy"])


def check_pins(place, limit):
    """Without its names the same lock does not pin the kernels of the layers: no two of the model are alike."""
    place.locked("--max-error", limit)
    place.edit(lambda section: section.pop("exact"))
    assert "does not pin" in place.built("--frozen", code=NOT_PINNED)["message"], "other layers are rounded than the lock pins"


def check_budget(place, limit, back):
    """The error of the target's budget is a limit of the lock, too."""
    target = place.lock.parent / "t.yaml"
    target.write_text(place.call("target", "host").stdout + f"budget: {{error: {limit}}}\n")
    said, exact = place.locked("-t", target)
    assert back in exact and said["accuracy"]["error"] <= limit, (said, exact)
    assert not taken_back(place.built("-t", target, "--frozen")[0]["accuracy"])
    place.lock.unlink()


def check_data(place, folder):
    """On the user's data."""
    folder.mkdir()
    np.save(folder / "a.npy", random.standard_normal((24, 64)).astype(np.float32))   # three samples
    data = "--accuracy-data", folder
    limit, _ = part_of(place, *data)
    said, exact = place.locked("--max-error", limit, *data)
    assert said["accuracy"]["samples"] == 3 and not said["accuracy"]["seeded"] and exact == [sorted(taken_back(said["accuracy"]))]
    held, _ = place.built("--frozen", "--max-error", limit, *data)
    assert held["accuracy"]["error"] == said["accuracy"]["error"] <= limit
    place.lock.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    tilewright = parser.parse_args().tilewright.resolve()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        here = Place(tilewright, work / "winograd", convolutions, "-t", PLAIN, *WINOGRAD)
        limit, _ = check_kept(here)
        check_refused(here, limit)
        check_pins(here, limit)
        there = Place(tilewright, work / "there", convolutions, "-t", "cortex-a72", *WINOGRAD)
        check_kept(there, verified=False)
        if "avx512_bf16" not in pathlib.Path("/proc/cpuinfo").read_text():
            print("SKIPPED bf16: this machine has no avx512_bf16")
            return
        both = Place(tilewright, work / "both", convolutions, *BF16, "--algorithm", "winograd_f4")
        choices = [layer["choice"] for layer in both.built("--max-error", 1)[0]["accuracy"]["layers"]]
        assert choices == ["bf16", "bf16 winograd_f4", "bf16 winograd_f4"], choices
        check_kept(both)
        short = Place(tilewright, work / "bf16", perceptron, *BF16)
        limit, back = check_kept(short)
        check_refused(short, limit)
        check_budget(short, limit, back)
        check_data(short, work / "data")


if __name__ == "__main__":
    main()
