#!/usr/bin/env python3
"""Ends `tilewright tune` by kill -9 at random moments: no finished record may be lost and the next run must go on. Then two tuners on one log at
once, one of which is killed; at last a log merged twice must be the same log.

    kill_tuner.py --tilewright BUILD/tilewright [--kills 8] [--seed 1]

A round's JSON line is printed when its records are in the log, so the log must have at least as many new records as the last line says trials,
and all that it had before.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

MODEL = pathlib.Path(__file__).resolve().parents[2] / "examples/digits/digits.onnx"


class Tuner:
    """One run of the tuner, which goes on for ever if nobody ends it."""

    def __init__(self, args, log, seed, *more):
        self.output = tempfile.TemporaryFile("w+")
        command = [args.tilewright, "tune", MODEL, "--log", log, "--space", "generated", "--tuner", "random", "--seed", str(seed), "--batch", "4", "--no-prove", "--json", *more]
        self.process = subprocess.Popen([str(word) for word in command], stdout=self.output, stderr=subprocess.DEVNULL)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def lines(self):
        self.output.seek(0)
        out = []
        for line in self.output.read().splitlines():
            try:
                out.append(json.loads(line))
            except json.JSONDecodeError:   # the last one, cut off
                pass
        return out

    def trials(self):
        return max((line.get("trials", 0) for line in self.lines()), default=0)


def export(args, log):
    if not log.exists():
        return []
    result = subprocess.run([args.tilewright, "log", "export", log.with_suffix(".jsonl"), "--log", log], capture_output=True, text=True)
    if result.returncode != 0 and "no tables" not in result.stderr:
        sys.exit(f"the log cannot be read after a kill: {result.stderr}")
    return log.with_suffix(".jsonl").read_text().splitlines()


def check_kept(before, after, trials, what):
    lost = set(before) - set(after)
    if lost:
        sys.exit(f"{what}: {len(lost)} records of earlier runs are gone")
    if len(after) - len(before) < trials:
        sys.exit(f"{what}: {trials} records were finished, {len(after) - len(before)} are in the log")


def kill_often(args, log, source):
    before = export(args, log)
    grown = 0
    for turn in range(args.kills):
        tuner = Tuner(args, log, turn)
        time.sleep(source.uniform(0.02, args.longest))
        tuner.kill()
        after = export(args, log)
        check_kept(before, after, tuner.trials(), f"kill {turn + 1}")
        grown += len(after) > len(before)
        before = after
    print(f"{args.kills} kills: {len(before)} records, {grown} runs added some, none was lost")
    again = Tuner(args, log, 0, "--trials", "3")
    if again.process.wait() != 0 or again.trials() != 3:
        sys.exit("the run after the kills does not go on")
    known = sum(task["known"] for task in again.lines()[-1]["tasks"])
    print(f"the next run answered {known} points from records and measured 3 new ones")


def two_at_once(args, log, source):
    before = export(args, log)
    first, second = Tuner(args, log, 1001, "--trials", "30"), Tuner(args, log, 1002)
    time.sleep(source.uniform(1, 2))
    second.kill()
    if first.process.wait() != 0:
        sys.exit("one of two tuners failed when the other one was killed")
    after = export(args, log)
    check_kept(before, after, first.trials() + second.trials(), "two tuners")
    print(f"two tuners at once, one of them killed: {first.trials()} and {second.trials()} trials, {len(after) - len(before)} new records")


def merge_twice(args, log):
    other = log.with_name("other.db")
    for _ in range(2):
        subprocess.run([args.tilewright, "log", "merge", log, "--log", other], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([args.tilewright, "log", "merge", other, "--log", log], check=True, stdout=subprocess.DEVNULL)
    if export(args, log) != export(args, other):
        sys.exit("a log that was merged twice is not the same log")
    print("merged twice: the same log")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--longest", type=float, default=2.5, help="seconds until a kill")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    source = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "tilewright.db"
        kill_often(args, log, source)
        two_at_once(args, log, source)
        merge_twice(args, log)


if __name__ == "__main__":
    main()
