#!/usr/bin/env python3
"""Ends tilewright by SIGINT, SIGTERM and SIGHUP at random moments: no file may be half there, none may stay behind (beside the output, in the
folder for temporary files, in /dev/shm), and no worker may go on. A tuner's first signal asks for an orderly end, `compile --tune` ends at once.

    signals.py --tilewright BUILD/tilewright [--compiles 30] [--tunes 5] [--seed 1]
"""
import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

MODEL = pathlib.Path(__file__).resolve().parents[2] / "examples/digits/digits.onnx"
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def shared_memory():
    folder = pathlib.Path("/dev/shm")
    return {path.name for path in folder.glob("tilewright-??????")} if folder.is_dir() else set()


def processes(mark):
    """Of those that run with this mark in their environment."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes() and (folder / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                found.append(folder.name)
        except OSError:
            pass
    return found


def wait_until(holds, seconds=3):
    for _ in range(int(seconds / 0.05)):
        if holds():
            return True
        time.sleep(0.05)
    return holds()


class Round:
    """One command in a folder of its own that is ended after so many seconds."""

    def __init__(self, args, words, number, seconds, which):
        self.what = f"{' '.join(words)} after {seconds:.3f} s, {which.name}"
        with tempfile.TemporaryDirectory() as folder:
            self.folder = pathlib.Path(folder)
            (self.folder / "tmp").mkdir()
            before = shared_memory()
            mark = f"TW_SIGNAL_ROUND={os.getpid()}-{number}"
            environment = dict(os.environ, TMPDIR=str(self.folder / "tmp"), XDG_DATA_HOME=str(self.folder / "data"))
            environment.update([mark.split("=")])
            process = subprocess.Popen([str(args.tilewright), *words], cwd=self.folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(seconds)
            process.send_signal(which)
            sent = time.monotonic()
            try:
                self.status = process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                sys.exit(f"{self.what}: goes on")
            self.seconds = time.monotonic() - sent
            if not wait_until(lambda: not processes(mark.encode())):
                sys.exit(f"{self.what}: processes {processes(mark.encode())} are still there")
            if left := [str(path.relative_to(self.folder)) for path in (self.folder / "tmp").rglob("*")]:
                sys.exit(f"{self.what}: left {left} in the folder for temporary files")
            if not wait_until(lambda: not shared_memory() - before):
                sys.exit(f"{self.what}: left {shared_memory() - before} in /dev/shm")
            self.check_outputs(args)

    def check_outputs(self, args):
        names = {path.name for path in self.folder.iterdir()} - {"tmp", "data", "log.db", "log.db-wal", "log.db-shm", "log.db-journal"}
        if names - {"m.so", "m.h"}:
            sys.exit(f"{self.what}: left {sorted(names)}")
        if "m.so" in names and subprocess.run([args.tilewright, "inspect", self.folder / "m.so"], capture_output=True).returncode != 0:
            sys.exit(f"{self.what}: m.so is not whole")
        self.finished = "m.so" in names


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    parser.add_argument("--compiles", type=int, default=30)
    parser.add_argument("--tunes", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.tilewright = args.tilewright.resolve()
    signal.signal(signal.SIGINT, signal.default_int_handler)   # a shell's background jobs ignore it, and so would what they start;
    signal.signal(signal.SIGHUP, signal.SIG_DFL)               # nohup's ignore this one
    source = random.Random(args.seed)
    times = []
    for _ in range(3):
        start = time.monotonic()
        subprocess.run([args.tilewright, "compile", MODEL, "-o", "/tmp/tw_signals.so"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times.append(time.monotonic() - start)
    usual = min(times)   # the first one also reads the program from the disk
    for name in ("/tmp/tw_signals.so", "/tmp/tw_signals.h"):
        os.unlink(name)
    number, ended = 0, 0
    for _ in range(args.compiles):
        which = SIGNALS[number % 3]
        done = Round(args, ["compile", str(MODEL), "-o", "m.so"], number, source.uniform(0, 1.1 * usual), which)
        if done.status not in (0, -which):
            sys.exit(f"{done.what}: status {done.status}")
        ended += done.status == -which
        if done.status == 0:
            usual *= 0.9   # the machine is faster now
        number += 1
    if ended < args.compiles // 4:
        sys.exit(f"only {ended} of {args.compiles} compiles were ended")
    print(f"{args.compiles} compiles, {ended} of them ended: nothing is left")
    for _ in range(args.tunes):
        which = SIGNALS[number % 3]
        done = Round(args, ["compile", str(MODEL), "-o", "m.so", "--tune", "20s", "--log", "log.db"], number, source.uniform(0.3, 3), which)
        if done.status != -which or done.seconds > 2:
            sys.exit(f"{done.what}: status {done.status} after {done.seconds:.1f} s")
        number += 1
    # Near the end of the tuning: two libraries are compared, in a folder for temporary files.
    for _ in range(args.tunes):
        which = SIGNALS[number % 3]
        done = Round(args, ["compile", str(MODEL), "-o", "m.so", "--tune", "0.5s", "--log", "log.db"], number, source.uniform(1, 6), which)
        if done.status not in (0, -which):
            sys.exit(f"{done.what}: status {done.status}")
        number += 1
    print(f"{2 * args.tunes} times compile --tune ended: nothing is left")
    for _ in range(args.tunes):
        which = SIGNALS[number % 3]
        done = Round(args, ["tune", str(MODEL), "--log", "log.db"], number, source.uniform(0.5, 3), which)
        if done.status not in (0, -which):
            sys.exit(f"{done.what}: status {done.status}")
        number += 1
    print(f"{args.tunes} times tune ended: nothing is left")


if __name__ == "__main__":
    main()
