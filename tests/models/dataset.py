#!/usr/bin/env python3
"""tilewright dataset: makers that are killed lose nothing that was finished, two at once do not measure a program twice, what is exported is read again, and devices have labels too.

    dataset.py --tilewright BUILD/tilewright [--kills 12]

Needs: numpy.
"""
import argparse
import json
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "autotune" / "dataset"))
import tileset  # noqa: E402


def labels_of(path):
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)
    rows = set(database.execute("SELECT platform, program, pass, median, time FROM labels"))
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()
    return rows


def command(args, path, networks, *more):
    return [args.tilewright, "dataset", "make", path, "--networks", networks, "--tasks", "4", "--sampled", "3", "--programs", "24", "--test-programs", "24",
            "--platform", args.target, "--json", *more]


def start(words):
    return subprocess.Popen([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result_of(process):
    out, err = process.communicate(timeout=900)
    assert process.returncode == 0, err
    return json.loads(out)


def kill(args, folder, networks):
    path, seen, chance = folder / "killed.db", set(), random.Random(1)
    for number in range(args.kills):
        process = start(command(args, path, networks))
        try:
            process.wait(chance.uniform(0.4, 3))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        if path.exists() and path.stat().st_size:
            now = labels_of(path)
            assert seen <= now, f"kill {number}: {len(seen - now)} labels are gone"
            seen = now
    # A claim of a maker that was killed ends by itself: here nobody else is at work
    database = sqlite3.connect(path)
    database.execute("DELETE FROM claims")
    database.commit()
    database.close()
    outcome = result_of(start(command(args, path, networks)))
    now = labels_of(path)
    assert seen <= now and outcome["left"] == 0 and not outcome["failures"], outcome
    print(f"{args.kills} kills: {len(seen)} labels of killed makers stayed, {len(now)} in all")
    return path, outcome


def together(args, folder, networks):
    path = folder / "two.db"
    result_of(start(command(args, path, networks, "--time", "0.001s")))   # the tasks are there
    makers = [start(command(args, path, networks)) for _ in range(2)]
    outcomes = [result_of(maker) for maker in makers]
    made = sum(o["labels"] + o["again"] for o in outcomes)
    stored = len(labels_of(path)) - made
    assert 0 <= stored <= 64, f"two makers measured {made} programs for {stored + made} labels"
    print(f"two makers: {[o['labels'] + o['again'] for o in outcomes]} labels, none twice")
    return path


def read_again(args, path, folder):
    out, copy = folder / "out", folder / "copy.db"
    run = lambda *words: json.loads(subprocess.run([str(w) for w in (args.tilewright, "dataset", *words, "--json")], check=True, capture_output=True).stdout)  # noqa: E731
    stat = run("stat", path)
    holds = run("export", path, out)["holds"]
    data = tileset.load(out)
    assert len(data.tasks) == stat["tasks"] == holds["tasks"]
    assert sum(len(p.ids) for p in data.programs) == stat["programs"] == holds["programs"]
    times = sum(int((data.labels(0, task.number).status == 0).sum()) for task in data.tasks)
    everything = stat["platforms"][0]["all"]
    assert times == everything["labels"] - sum(everything["failures"].values())
    assert {task.network for task in data.tasks} == {"digits", "sampled"}
    for task in data.tasks:
        assert task.kernel in data.kernels and len(set(data.programs[task.number].schedules)) == len(data.programs[task.number].ids)
    run("import", copy, out)
    same = run("stat", copy)["platforms"][0]["all"]   # but for times, which are written with six digits
    assert all(abs(same[k] / v - 1) < 1e-2 if isinstance(v, float) and v else same[k] == v for k, v in everything.items()), (same, everything)
    check = run("check", path, "--share", "20")["platforms"][0]
    assert check["programs"] > 0 and check["failed"] == 0, check
    program = int(data.programs[0].ids[0])
    assert run("show", path, program)["schedule"] == data.programs[0].schedules[0]
    print(f"exported and read: {holds}; measured again: correlation {check['correlation']:.3f}, deviation {100 * check['deviation']:.1f} %")


def extended(args, path):
    """Programs that the ranker's search asks for, of complete tasks of training; called again there is nothing left to do."""
    query = lambda text: sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60).execute(text).fetchall()  # noqa: E731
    before = labels_of(path)
    extend = lambda: result_of(start([args.tilewright, "dataset", "extend", path, "--platform", args.target, "--by", "8", "--json"]))  # noqa: E731
    outcome = extend()
    added = query("SELECT programs.task, count(*) FROM programs JOIN tasks ON tasks.id = task WHERE source = 5 GROUP BY task")
    wrong = query("SELECT count(*) FROM programs JOIN tasks ON tasks.id = task WHERE source = 5 AND split > 1")
    assert added and wrong == [(0,)] and all(count <= 8 for _, count in added), (added, wrong)
    assert outcome["labels"] == sum(count for _, count in added) and before < labels_of(path) and not outcome["failures"], outcome
    assert extend()["labels"] == 0
    print(f"extended: {outcome['labels']} programs of {len(added)} tasks")


def of_devices(args, folder):
    """Cycles of the VDLA are counted, and the same each time; OpenCL's device is timed. Both take tasks that were lowered for them, and no others."""
    networks = folder / "quantized"
    networks.mkdir()
    shutil.copy(ROOT / "examples/digits/digits_int8.onnx", networks)
    make = lambda name, lowered, *platforms: (folder / name, result_of(start(  # noqa: E731
        [args.tilewright, "dataset", "make", folder / name, "--networks", networks, "--tasks", "2", "--sampled", "0", "--programs", "12", "--test-programs", "12",
         "--lower-for", lowered, *(word for platform in platforms for word in ("--platform", platform)), "--json"])))
    cycles = []
    for name in ("cycles.db", "again.db"):
        path, outcome = make(name, "vdla-16x16", "vdla-16x16", args.target)
        assert outcome["labels"] > 12 and outcome["again"] == 0 and outcome["left"] == 0 and not outcome["failures"], outcome
        cycles.append({(program, median) for _, program, _, median, _ in labels_of(path)})
    assert cycles[0] == cycles[1]
    _, outcome = make("opencl.db", "opencl-generic", "opencl-generic")
    assert outcome["labels"] > 12 and outcome["left"] == 0 and not outcome["failures"], outcome
    print(f"devices: {len(cycles[0])} programs of the VDLA, {outcome['labels']} of OpenCL")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    parser.add_argument("--target", default="host")
    parser.add_argument("--kills", type=int, default=12)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        networks = folder / "networks"
        networks.mkdir()
        shutil.copy(ROOT / "examples/digits/digits.onnx", networks)
        began = time.time()
        path, _ = kill(args, folder, networks)
        together(args, folder, networks)
        read_again(args, path, folder)
        extended(args, path)
        of_devices(args, folder)
        print(f"ok in {time.time() - began:.0f} s")


main()
