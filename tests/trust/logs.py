#!/usr/bin/env python3
"""Logs and jobs of strangers: a kernel in a log that leaves its buffers is measured by nobody, a schedule that does not fit is passed over with a line, and
the process that runs candidates opens no file, starts no program and has no network, whatever code a job brings.

    logs.py [--tilewright BUILD/tilewright]
"""
import argparse
import hashlib
import json
import pathlib
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DIGITS = ROOT / "examples/digits/digits.onnx"

# Code of a job, in the place of a candidate's: what it can do is what it writes.
PROBE = r"""
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static void tell(const char* what, long status) { dprintf(2, "%s: %s\n", what, status < 0 ? strerror(errno) : "Success"); }
void candidate(void) {
  char* const words[] = {"true", 0};
  tell("read", open("/etc/hostname", O_RDONLY));
  tell("write", open("WRITTEN", O_CREAT | O_WRONLY, 0600));
  tell("network", socket(AF_INET, SOCK_STREAM, 0));
  tell("signal", kill(getppid(), 0));
  tell("program", execve("/bin/true", words, 0));
}
"""
REFUSED = ["read: Permission denied", "write: Permission denied", "network: Operation not permitted", "signal: Operation not permitted", "program: Operation not permitted"]


class Place:
    def __init__(self, tilewright, folder):
        self.tilewright, self.folder, self.problems, self.count = tilewright, folder, [], 0

    def run(self, *words):
        done = subprocess.run([self.tilewright, *map(str, words)], capture_output=True, text=True, cwd=self.folder)
        return done.returncode, done.stdout + done.stderr

    def check(self, name, holds, said):
        self.count += 1
        if not holds:
            self.problems.append(f"{name}: {said.strip()[-500:]}")


def entries(place):
    """The lines of a log of digits."""
    code, said = place.run("tune", DIGITS, "--log", "good.db", "--trials", 4, "--no-prove")
    assert code == 0, said
    code, said = place.run("log", "export", "good.jsonl", "--log", "good.db")
    assert code == 0, said
    return [json.loads(line) for line in (place.folder / "good.jsonl").read_text().splitlines()]


def imported(place, name, lines):
    """What the import of these lines says, and the log."""
    (place.folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, said = place.run("log", "import", f"{name}.jsonl", "--log", f"{name}.db")
    return code, said, f"{name}.db"


def with_kernel(lines, change):
    """The product's kernel is changed, under the hash that it has then."""
    old = next(line for line in lines if "text" in line and line["text"].startswith("kernel @matmul("))
    text = change(old["text"])
    assert text != old["text"]
    key = hashlib.sha256(text.replace("@matmul", "@", 1).encode()).hexdigest()[:16]
    records = [{**line, "kernel": key} for line in lines if "schedule" in line and line["kernel"] == old["kernel"]]
    tasks = [line for line in lines if "task" in line and "text" in line]
    return [*records, {"kernel": key, "text": text}, *tasks]


KERNELS = {
    "a read behind the end": (lambda t: t.replace("x[0, k]", "x[0, k + 100000000]"), 1, "is not shown to lie in"),
    "a read before the beginning": (lambda t: t.replace("weights[aj, k]", "weights[aj, k - 1]"), 1, "is not shown to lie in"),
    "a store": (lambda t: t.replace("y: y[0, j] =", "y: y[0, j + 1] ="), 1, "is not shown to lie in"),
    "a kernel that stays inside": (lambda t: t.replace("max(0.0", "max(0.5"), 0, "ms now"),
}


def check_replay(place, lines):
    for name, (change, wanted, words) in KERNELS.items():
        code, said, log = imported(place, name.replace(" ", "_"), with_kernel(lines, change))
        assert code == 0, said
        identity = sqlite3.connect(place.folder / log).execute("SELECT id FROM records").fetchone()[0]
        code, said = place.run("log", "replay", identity, "--log", log)
        place.check(name, code == wanted and words in said, f"status {code}: {said}")


def check_schedules(place, lines):
    """Of a record that another compile would take."""
    for name, schedule in (("of another kernel", "schedule {\n  split nobody 4 -> a b\n}\n"), ("no schedule", "x" * 100)):
        forged = [{**line, "schedule": schedule, "seconds": [1e-12]} if "schedule" in line else line for line in lines]
        code, said, log = imported(place, "schedule_" + name.split()[0], forged)
        if code == 0:
            code, said = place.run("compile", DIGITS, "--log", log, "-o", "s.so")
            place.check(f"a schedule {name}, compiled", code == 0 and "schedule" in said, f"status {code}: {said}")
            code, said = place.run("verify", "s.so", DIGITS)
            place.check(f"a schedule {name}, verified", code == 0, f"status {code}: {said}")
            code, said = place.run("tune", DIGITS, "--log", log, "--trials", 2)
            place.check(f"a schedule {name}, tuned on", code == 0, f"status {code}: {said}")
        else:
            place.check(f"a schedule {name}", code in (1, 5) and "error:" in said, f"status {code}: {said}")


def a_job(place, spool):
    """A job as `tune` writes it for a worker that is none."""
    worker = subprocess.Popen([place.tilewright, "worker", spool], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (beats := list(spool.glob("worker-*"))):
        time.sleep(0.05)
    text = beats[0].read_text()
    worker.send_signal(signal.SIGTERM)
    worker.wait()
    tuner = subprocess.Popen([place.tilewright, "tune", DIGITS, "--worker", spool, "--trials", "2", "--log", place.folder / "spool.db"], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    for turn in range(600):
        (spool / "worker-none").write_text(f"{text}\n{turn}")
        for job in spool.glob("[!.]*.job"):
            found = job.read_bytes()
            tuner.kill()
            tuner.wait()
            for file in spool.iterdir():
                file.unlink()
            return found
        time.sleep(0.1)
    raise AssertionError("tune writes no job")


def check_worker(place):
    spool = place.folder / "spool"
    spool.mkdir(mode=0o700)
    job = a_job(place, spool)
    packs = sorted(set(re.findall(rb"pack_[0-9a-f]{16}", job)))   # functions that make constants, before the candidate runs
    (place.folder / "probe.c").write_text(PROBE.replace("WRITTEN", str(place.folder / "written")) +
                                          "".join(f"void {name.decode()}(void) {{}}\n" for name in packs))
    subprocess.run(["cc", "-shared", "-fPIC", "probe.c", "-o", "probe.so"], cwd=place.folder, check=True)
    library = (place.folder / "probe.so").read_bytes()
    begin = job.index(b"\x7fELF")
    length = struct.unpack("<Q", job[begin - 8:begin])[0]
    (spool / "1.part").write_bytes(job[:begin - 8] + struct.pack("<Q", len(library)) + library + job[begin + length:])
    (spool / "1.part").rename(spool / "1.job")
    worker = subprocess.Popen([place.tilewright, "worker", spool, "--idle", "20"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    threading.Timer(30, worker.terminate).start()
    while worker.poll() is None and not (spool / "1.result").exists():
        time.sleep(0.1)
    worker.terminate()
    said = "".join(worker.communicate())
    if "candidates run unconfined" in said:
        print("logs: what a candidate can do is not tried, as this system cannot confine")
        return
    for line in REFUSED:
        place.check(f"a candidate: {line}", line in said, said)
    place.check("a candidate writes no file", not (place.folder / "written").exists(), "it is there")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", default=ROOT / "build/release/tilewright", type=pathlib.Path)
    with tempfile.TemporaryDirectory() as folder:
        place = Place(parser.parse_args().tilewright.resolve(), pathlib.Path(folder))
        lines = entries(place)
        check_replay(place, lines)
        check_schedules(place, lines)
        check_worker(place)
    for problem in place.problems:
        print(problem, file=sys.stderr)
    print(f"logs: {place.count} checks, {len(place.problems)} not as they should be")
    sys.exit(bool(place.problems))


if __name__ == "__main__":
    main()
