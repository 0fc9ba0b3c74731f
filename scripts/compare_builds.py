#!/usr/bin/env python3
"""Two builds of the compiler, the same models and targets: are the scheduled kernels and the libraries equal, byte for byte?
A change of structure alone leaves all of them equal; a change of code generation shows here which models it reaches.

    compare_builds.py OLD NEW MODEL.onnx... [--targets NAME,...] [--emit scheduled,so] [--resume FILE]

OLD and NEW are tilewright binaries. Prints a line a model and target, and the times of both builds' compiles; exit status 1
when something differs. With --resume, finished lines are kept in FILE and not done again.
"""
import argparse
import hashlib
import json
import pathlib
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGETS = sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def emitted(tilewright, model, target, emit, folder):
    """The hash of what a build makes, or its error's first line; and the processor seconds."""
    output = folder / "model.so"
    command = [tilewright, "compile", model, "-t", target, "-o", output]
    if emit != "so":
        command += ["--emit", emit]
    begin = cpu_seconds()
    done = subprocess.run(command, capture_output=True, check=False)
    seconds = cpu_seconds() - begin
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [""]
        return f"exit {done.returncode}: {lines[0]}", seconds
    with output.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path, nargs="+")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--emit", default="scheduled,so")
    parser.add_argument("--resume", type=pathlib.Path)
    arguments = parser.parse_args()
    known = {}
    if arguments.resume and arguments.resume.exists():
        known = {tuple(row[:3]): row for row in map(json.loads, arguments.resume.read_text().splitlines())}
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for model in arguments.models:
            for target in arguments.targets.split(","):
                for emit in arguments.emit.split(","):
                    key = (model.name, target, emit)
                    row = known.get(key)
                    if row is None:
                        old, old_seconds = emitted(arguments.old, model, target, emit, pathlib.Path(scratch))
                        new, new_seconds = emitted(arguments.new, model, target, emit, pathlib.Path(scratch))
                        row = [*key, old, new, old_seconds, new_seconds]
                        if arguments.resume:
                            with arguments.resume.open("a") as file:
                                file.write(json.dumps(row) + "\n")
                    rows.append(row)
                    _, _, _, old, new, old_seconds, new_seconds = row
                    verdict = "equal" if old == new else f"DIFFERS\n  old: {old}\n  new: {new}"
                    if old == new and old.startswith("exit"):
                        verdict = f"neither compiles, {old}"
                    print(f"{model.stem} {target} {emit}: {verdict} ({old_seconds:.1f} s, {new_seconds:.1f} s)", flush=True)
    different = sum(row[3] != row[4] for row in rows)
    refused = sum(row[3] == row[4] and row[3].startswith("exit") for row in rows)
    ratio = sum(row[6] for row in rows) / max(sum(row[5] for row in rows), 1e-9)
    print(f"{len(rows) - different - refused} equal, {different} different, {refused} that neither compiles; processor time of the new build {ratio:.3f} of the old")
    return different != 0


if __name__ == "__main__":
    sys.exit(main())
