#!/usr/bin/env python3
"""Tuning at a precision: what is tuned in bf16 or fp16 is compiled, locked and refused by its own records alone.

    tuned.py --tilewright BUILD/tilewright
"""
import argparse
import json
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from bf16 import INSTRUCTION, NETWORK, STORED, network, token  # noqa: E402
from tuning_place import TuningPlace  # noqa: E402

NOT_PINNED = "does not pin|pins nothing"


class Place(TuningPlace):
    def __init__(self, tilewright, folder, make):
        folder.mkdir()
        super().__init__(tilewright, folder)
        # Direct sums alone: times that are made up would have algorithms taken for whose kernels there is no record
        self.target.write_text(re.sub(r"^accuracy: .*$", "accuracy: 1e-9", self.target.read_text(), flags=re.MULTILINE))
        make(self.model)

    def tune(self, *flags):
        lines = self.must("tune", self.model, "-t", self.target, "--log", self.log, "--no-prove", "--json", *flags).splitlines()
        return [json.loads(line) for line in lines]

    def tasks(self, precision):
        """Names of the kernels by their task."""
        space = json.loads(self.must("space", self.model, "-t", self.target, "--precision", precision, "--json"))
        return {kernel["task"]: kernel["name"] for kernel in space["kernels"]}

    def compile(self, name, *flags):
        """The report and the bytes; libraries of one file name, which is part of them."""
        (self.folder / name).mkdir(exist_ok=True)
        library = self.folder / name / "m.so"
        report = json.loads(self.must("compile", self.model, "-t", self.target, "-o", library, "--json", "--strict", *flags))
        return report, library.read_bytes()

    def verify(self, name, tolerance):
        self.must("verify", self.folder / name / "m.so", self.model, "--tolerance", tolerance)

    def refuses(self, what, *flags):
        done = self.run("compile", self.model, "-t", self.target, "-o", self.folder / "refused.so", *flags)
        assert done.returncode and re.search(what, done.stderr), (flags, done.returncode, done.stderr[-600:])

    def schedules(self, report):
        """How kernels got their schedules, by task."""
        return {kernel["task"]: kernel["schedule"] for kernel in report["kernel_reports"] if "task" in kernel}


def own_records(place, precision):
    """A log that was tuned at a precision serves its kernels, and none of another precision that round."""
    place.tune("--precision", precision, "--trials", 40, "--batch", 4)
    fast = place.folder / "fast.db"
    recorded, searched = place.last_is_fastest(fast)
    mine, exact = place.tasks(precision), place.tasks("fp32")
    assert searched and recorded <= set(mine), (searched, recorded, mine)
    report, _ = place.compile("own", "--precision", precision, "--log", fast)
    own = place.schedules(report)
    assert all(own[task] == "tuned" for task in searched & set(own)), (own, searched)
    rounding = searched - set(exact)
    assert rounding & set(own), (searched, mine)
    report, _ = place.compile("other", "--log", fast)
    for task, source in place.schedules(report).items():
        assert source == "default" or task in recorded & set(exact), (task, exact[task], source)
    return fast


def locked(place, precision, log):
    """A lock has a section a precision; what it does not pin is refused."""
    own = ("--precision", precision)
    _, wanted = place.compile("logged", *own, "--log", log)
    _, again = place.compile("again", *own, "--log", log)
    assert wanted == again, "the same log gives other bytes"
    place.refuses("no 'tilewright.lock'", *own, "--frozen")
    place.must("lock", place.model, "-t", place.target, "--log", log, *own)
    _, frozen = place.compile("frozen", *own, "--frozen")
    assert frozen == wanted, "the lock gives other bytes than its log"
    place.refuses(NOT_PINNED, "--frozen")
    place.must("lock", place.model, "-t", place.target, "--log", log)
    place.compile("exact", "--frozen")
    _, frozen = place.compile("frozen", *own, "--frozen")
    assert frozen == wanted, "a lock of fp32 changes that of " + precision
    lock = json.loads((place.folder / "tilewright.lock").read_text())
    assert [section.get("precision", "fp32") for section in lock["models"]] == ["fp32", precision], lock["models"]
    lock["models"][1]["kernels"].pop()
    (place.folder / "tilewright.lock").write_text(json.dumps(lock))
    place.refuses(NOT_PINNED, *own, "--frozen")
    (place.folder / "tilewright.lock").unlink()


def limited(place, log):
    """The same layers by the same log, and a search for what a limit leaves."""
    flags = ("--precision", "bf16", "--log", log)
    (first, bytes_first), (second, bytes_second) = (place.compile(name, *flags, "--max-error", "5e-4") for name in ("one", "two"))
    assert bytes_first == bytes_second and first["accuracy"]["layers"] == second["accuracy"]["layers"], (first["accuracy"], second["accuracy"])
    assert first["accuracy"]["error"] <= 5e-4 and any(layer["taken_back"] for layer in first["accuracy"]["layers"]), first["accuracy"]
    held, summary = (lambda lines: (lines[0], lines[-1]))(place.tune("--precision", "bf16", "--max-error", "1e-6", "--trials", 1))
    assert held["operands"] == "bf16" and all(layer["taken_back"] for layer in held["accuracy"]["layers"]), held
    rounding = set(place.tasks("bf16")) - set(place.tasks("fp32"))
    assert not rounding & {task["task"] for task in summary["tasks"]}, "rounded kernels are searched for under a limit that refuses them"


def locked_and_limited(place, log):
    """What a log and a limit choose together is what their lock pins, layer by layer."""
    own = ("--precision", "bf16")
    place.must("lock", place.model, "-t", place.target, "--log", log, *own)
    (_, frozen), (report, within) = place.compile("frozen", *own, "--frozen"), place.compile("within", *own, "--frozen", "--max-error", "0.1")
    assert within == frozen and not any(layer["taken_back"] for layer in report["accuracy"]["layers"]), report["accuracy"]
    place.refuses("layers that the lock keeps exact", *own, "--frozen", "--max-error", "5e-4")
    wanted, _ = place.compile("limited", *own, "--log", log, "--max-error", "5e-4")
    place.must("lock", place.model, "-t", place.target, "--log", log, *own, "--max-error", "5e-4")
    back = sorted(layer["name"] for layer in wanted["accuracy"]["layers"] if layer["taken_back"])
    assert json.loads((place.folder / "tilewright.lock").read_text())["models"][0]["exact"] == back, back
    report, frozen = place.compile("frozen", *own, "--frozen")
    assert place.schedules(report) == place.schedules(wanted), "the lock has other kernels than its log and limit"
    report, within = place.compile("within", *own, "--frozen", "--max-error", "5e-4")
    assert within == frozen and report["accuracy"]["error"] == wanted["accuracy"]["error"], report["accuracy"]
    (place.folder / "tilewright.lock").unlink()


def automatic(place, log):
    """auto is the code of what it comes to, by the log and by the lock; libraries differ in the target's text that they hold."""
    def code(precision, *flags):
        return place.must("compile", place.model, "-t", place.target, "--precision", precision, "--emit", "asm", *flags)
    assert code("auto", "--log", log) == code("bf16", "--log", log), "auto is other code than what it comes to"
    place.must("lock", place.model, "-t", place.target, "--log", log, "--precision", "bf16")
    assert code("auto", "--frozen") == code("bf16", "--log", log), "auto does not take the section of what it comes to"
    (place.folder / "tilewright.lock").unlink()


def predicted(place):
    for flag in ("one-shot", "one-shot:2"):
        more = () if flag == "one-shot" else ("--log", place.folder / "few.db")
        place.compile("predicted", "--precision", "bf16", "--tune", flag, *more)
        place.verify("predicted", NETWORK)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    tilewright = parser.parse_args().tilewright.resolve()
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        stored = Place(tilewright, work / "stored", token)
        precisions = [precision for precision in ("fp16", "bf16") if precision == "bf16" or re.search("f16c|asimdhp", flags)]
        for precision in precisions:
            log = own_records(stored, precision)
            stored.verify("own", STORED[precision])
            locked(stored, precision, log)
            stored.log.unlink(), log.unlink()
            print(f"weights in {precision}: ok", flush=True)
        if "avx512_bf16" not in flags:
            print("SKIPPED products: this machine has no avx512_bf16")
            return
        place = Place(tilewright, work / "products", network)
        log = own_records(place, "bf16")
        place.verify("own", NETWORK)
        assembly = place.must("compile", place.model, "-t", place.target, "--precision", "bf16", "--log", log, "--emit", "asm")
        assert INSTRUCTION in assembly, "a tuned product does without its instruction"
        locked(place, "bf16", log)
        automatic(place, log)
        limited(place, log)
        locked_and_limited(place, log)
        predicted(place)
        print("products in bf16: ok")


if __name__ == "__main__":
    main()
