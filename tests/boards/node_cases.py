#!/usr/bin/env python3
"""ONNX's own cases of single operators, compiled for processors that this machine has not, and verified by the runner in their
emulators. What the suite on this machine leaves out (tests/onnx/excluded.txt, not_yet.txt) is left out here, and so are strings
and sequences, which runners do not read.

    node_cases.py CASES --tilewright BUILD/tilewright [--shard I/N] [--only NAME]

CASES: what tests/onnx/export.py has written, as BUILD/tests/onnx/cases.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import onnx

from emulators import EMULATORS

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MACHINES = {target: EMULATORS[target] for target in ("aarch64-generic", "armv7-generic")}
TOLERANCE = 1e-3   # of an output's range, where the suite has it of each element
TOLERANCE_BF16 = 2 ** -6   # as tests/onnx/run_case.cpp
UNSUPPORTED = 3    # exit status
FINE = ("ok", "strings")


def left_out():
    """Globs of cases."""
    globs = []
    for name in ("excluded.txt", "not_yet.txt"):
        for line in (ROOT / "tests/onnx" / name).read_text().splitlines():
            if line and not line.startswith("#"):
                what = line.split(":")[0].split()
                if len(what) == 1 or "static" in what[1].split(","):
                    globs.append(what[0])
    return globs


def cases_of(folder):
    globs = left_out()
    for path in sorted((folder / "node").iterdir()):
        if not any(fnmatch.fnmatch(f"node/{path.name}", glob) for glob in globs) and not list(path.glob("test_data_set_*/*.count")):
            yield path


def tolerance_of(case):
    data = case / "data.json"
    tolerance = json.loads(data.read_text()).get("rtol", 0) if data.exists() else 0
    of_bf16 = any(output.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16
                  for output in onnx.load(case / "model.onnx", load_external_data=False).graph.output)
    return max(TOLERANCE, tolerance, TOLERANCE_BF16 if of_bf16 else 0)


def run_case(tilewright, case, target):
    """What became of it: ok, strings, or what failed."""
    with tempfile.TemporaryDirectory() as folder:
        library = pathlib.Path(folder) / "case.so"
        made = subprocess.run([tilewright, "compile", case / "model.onnx", "-t", target, "--with-runner", "-j", "1", "-o", library],
                              capture_output=True, text=True)
        if made.returncode and "of strings" in made.stderr:   # 32 bits do without
            return "strings"
        if made.returncode:
            return f"compile: {made.stderr.strip()[:400]}"
        for data in sorted(case.glob("test_data_set_*")):
            run = subprocess.run([*MACHINES[target], library.with_suffix(".run"), "verify", "--data", data, "--threads", "1", "--tolerance",
                                  str(tolerance_of(case))], capture_output=True, text=True)
            if run.returncode == UNSUPPORTED and "strings" in run.stderr:
                return "strings"
            if run.returncode:
                return f"{run.returncode}: {(run.stdout + run.stderr).strip()[:400]}"
    return "ok"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--only", help="a glob of names")
    args = parser.parse_args()
    index, count = map(int, args.shard.split("/"))
    cases = [case for i, case in enumerate(cases_of(args.cases)) if i % count == index]
    if args.only:
        cases = [case for case in cases_of(args.cases) if fnmatch.fnmatch(case.name, args.only)]
    failed = 0
    for target, emulator in MACHINES.items():
        if not shutil.which(emulator[0]):
            print(f"skipped: {target}, no {emulator[0]}")
            continue
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(lambda case: run_case(args.tilewright.resolve(), case, target), cases))
        for case, result in zip(cases, results):
            if result not in FINE:
                failed += 1
                print(f"FAIL {target} {case.name}: {result}")
        counts = collections.Counter(result if result in FINE else "failed" for result in results)
        print(f"{target}: of {len(cases)} cases " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())), flush=True)
        failed += counts["ok"] == 0
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
