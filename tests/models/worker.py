#!/usr/bin/env python3
"""Workers: kernels of another machine are tuned and labelled through a folder, by the worker of boards under qemu and by tilewright itself.

    worker.py --tilewright BUILD/tilewright [--workers BUILD/workers]

Needs: qemu-user.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DIGITS = ROOT / "examples/digits/digits.onnx"
ARCHES = {"aarch64": ("qemu-aarch64", "cortex-a72"), "armv7": ("qemu-arm", "armv7-generic"), "x86_64": (None, "x86-64-v2")}


class Worker:
    """One that serves `spool` until the block ends."""

    def __init__(self, words, spool):
        self.words, self.spool = words, spool

    def __enter__(self):
        self.process = subprocess.Popen([str(w) for w in self.words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        end = time.time() + 60
        while not list(self.spool.glob("worker-*")):
            assert self.process.poll() is None and time.time() < end, self.process.communicate()
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.out, self.err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, self.err


def board(args, folder, arch):
    """Words that start the worker of an architecture, under qemu where it is another one's."""
    program = args.workers / f"tilewright-worker.{arch}"
    emulator = ARCHES[arch][0]
    if emulator is None:
        return [program]
    script = folder / f"self-{arch}"
    script.write_text(f'#!/bin/sh\nexec {emulator} "{program}" "$@"\n')
    script.chmod(0o755)
    return [script, "--self", script]


def run(args, *words):
    result = subprocess.run([str(w) for w in (args.tilewright, *words)], capture_output=True, text=True, timeout=600)
    return result.returncode, result.stdout, result.stderr


def tune(args, folder, arch):
    spool, log, target = folder / f"spool-{arch}", folder / f"{arch}.db", ARCHES[arch][1]
    spool.mkdir()
    with Worker([*board(args, folder, arch), spool], spool) as worker:
        device = next(spool.glob("worker-*")).read_text().split("\n")[0]
        (spool / "0-garbage.job").write_bytes(b"TWMJ is no job")
        code, out, err = run(args, "tune", DIGITS, "-t", target, "--worker", spool, "--trials", "9", "--log", log, "--json")
        assert code == 0, err
        assert (spool / "0-garbage.result").exists(), "a file that is no job has no answer"
    assert f"{int(worker.out.split()[0])} jobs\n" == worker.out
    left = sorted(p.name for p in spool.iterdir())
    assert left == ["0-garbage.result"], left
    records = list(sqlite3.connect(log).execute("SELECT status, device FROM records"))
    assert len(records) >= 9 and {r[0] for r in records} <= {"ok"} and {r[1] for r in records} == {device}, records
    last = json.loads(out.splitlines()[-1])
    code, out, err = run(args, "compile", DIGITS, "-t", target, "--log", log, "-o", folder / f"{arch}.so")
    assert code == 0, err
    print(f"{arch}: {len(records)} records by {worker.out.strip()} of '{device}', stopped: {last['stopped']}")


def two_askers(args, folder):
    spool = folder / "spool-two"
    spool.mkdir()
    with Worker([args.tilewright, "worker", spool], spool) as worker:
        (spool / "worker-0-of-the-past").write_text("a machine that has gone\n7\n1\n")
        words = [args.tilewright, "tune", DIGITS, "--worker", spool, "--trials", "8", "--json", "--log"]
        askers = [subprocess.Popen([str(w) for w in (*words, folder / f"asker-{i}.db")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for i in range(2)]
        for asker in askers:
            _, err = asker.communicate(timeout=600)
            assert asker.returncode == 0, err
    (spool / "worker-0-of-the-past").unlink()
    assert not list(spool.iterdir()), list(spool.iterdir())
    devices = {row[0] for i in range(2) for row in sqlite3.connect(folder / f"asker-{i}.db").execute("SELECT device FROM records")}
    assert len(devices) == 1 and "a machine that has gone" not in devices, devices
    print(f"two askers, one worker: {worker.out.strip()}")


def labels(args, folder):
    spool, networks = folder / "spool-set", folder / "networks"
    spool.mkdir()
    networks.mkdir()
    shutil.copy(DIGITS, networks)
    words = ["dataset", "make", folder / "set.db", "--networks", networks, "--tasks", "2", "--sampled", "0", "--programs", "10", "--lower-for", "cortex-a72"]
    code, _, err = run(args, *words, "--worker", spool)
    assert code == 1 and "--platform" in err, err
    with Worker([*board(args, folder, "aarch64"), spool], spool):
        device = next(spool.glob("worker-*")).read_text().split("\n")[0]
        (spool / "worker-0-of-the-past").write_text("a machine that has gone\n7\n1\n")
        code, out, err = run(args, *words, "--worker", spool, "--platform", "cortex-a72", "--json")
        assert code == 0, err
    outcome = json.loads(out)
    assert outcome["labels"] > 0 and outcome["left"] == 0 and not outcome["failures"], outcome
    stat = json.loads(run(args, "dataset", "stat", folder / "set.db", "--json")[1])
    assert stat["platforms"][0]["platform"]["machine"] == device, (stat["platforms"][0]["platform"], device)
    print(f"labels of cortex-a72: {outcome['labels']} and {outcome['again']} again")


def lost(args, folder):
    """A worker that is killed: what it did not measure is no record, and the search ends by itself."""
    spool, log = folder / "spool-lost", folder / "lost.db"
    spool.mkdir()
    worker = subprocess.Popen([args.tilewright, "worker", spool], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list(spool.glob("worker-*")):
        time.sleep(0.02)
    tuner = subprocess.Popen([str(w) for w in (args.tilewright, "tune", DIGITS, "--worker", spool, "--time", "2m", "--log", log)],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def records(what):
        try:
            return [row[0] for row in sqlite3.connect(f"file:{log}?mode=ro", uri=True).execute(f"SELECT {what} FROM records")]
        except sqlite3.OperationalError:
            return [0]   # the log is not there yet
    while records("count(*)")[0] < 3:
        assert tuner.poll() is None, tuner.communicate()
        time.sleep(0.05)
    began = time.time()
    worker.kill()
    worker.wait()
    out, err = tuner.communicate(timeout=140)
    assert set(records("status")) == {"ok"} and tuner.returncode == 5 and "does not answer" in err, (records("status"), err)
    print(f"a lost worker: the search ends after {time.time() - began:.0f} s with {tuner.returncode}, {(err or out).strip().splitlines()[-1][:90]}")


def refusals(args, folder):
    empty = folder / "empty"
    code, _, err = run(args, "tune", DIGITS, "--worker", empty, "--trials", "1")
    assert code == 5 and "there is no folder" in err, err
    code, _, err = run(args, "tune", DIGITS, "--worker", folder, "--trials", "1", "--prove")
    assert code == 3 and "--prove" in err, err
    code, _, err = run(args, "tune", ROOT / "examples/digits/digits_int8.onnx", "-t", "vdla-16x16", "--worker", folder, "--trials", "1")
    assert code == 3 and "workers measure processors" in err, err
    result = subprocess.run([str(args.workers / "tilewright-worker.x86_64")], capture_output=True, text=True)
    assert result.returncode == 2 and "DIR" in result.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    parser.add_argument("--workers", type=pathlib.Path)
    args = parser.parse_args()
    args.tilewright = args.tilewright.resolve()
    args.workers = (args.workers or args.tilewright.parent / "workers").resolve()
    os.environ.pop("TILEWRIGHT_DEVICE", None)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for arch in ARCHES:
            tune(args, folder, arch)
        two_askers(args, folder)
        labels(args, folder)
        lost(args, folder)
        refusals(args, folder)
    print("ok")


main()
