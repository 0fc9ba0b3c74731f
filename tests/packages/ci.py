#!/usr/bin/env python3
"""The examples for CI, without the services that they are for: the steps of the GitHub action in a shell as GitHub starts
it, the instructions of the Dockerfile in a Debian of its own.

    ci.py --build build/release [--clean-root]      --clean-root: the Dockerfile, too (by mmdebstrap, as root)
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import yaml
from packages import ROOT, CleanRoot, package

CI = ROOT / "examples/ci"
DIGITS = ROOT / "examples/digits/digits.onnx"


class Action:
    """A composite action whose steps run in bash, or keep a folder (actions/cache)."""

    def __init__(self, file, folder):
        self.text = yaml.safe_load(file.read_text())
        self.folder = folder
        self.kept = folder / "kept"   # what the cache's service has

    def filled(self, text, values):
        """`${{ inputs.x }}` and the like; what the service alone knows is no part of what a shell gets."""
        return re.sub(r"\$\{\{\s*(.*?)\s*\}\}", lambda found: values[found[1]], text)

    def run(self, inputs, workspace):
        """The exit code of the first step that fails, and what all said."""
        known = self.text["inputs"]
        assert inputs.keys() <= known.keys(), "an input that the action does not have"
        assert all(name in inputs for name, one in known.items() if one.get("required")), "a required input is missing"
        temp = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        values = {f"inputs.{name}": str(inputs.get(name, one.get("default", ""))) for name, one in known.items()}
        values["runner.temp"] = str(temp)
        said, cache = "", None
        for step in self.text["runs"]["steps"]:
            if "uses" in step:
                assert step["uses"].startswith("actions/cache@"), step
                cache = pathlib.Path(self.filled(step["with"]["path"], values))
                if self.kept.exists():
                    shutil.copytree(self.kept, cache)
                continue
            assert step["shell"] == "bash" and "${{" not in step["run"], f"an input is read as a command: {step['run']}"
            own = {name: self.filled(text, values) for name, text in step.get("env", {}).items()}
            done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], cwd=workspace, text=True,
                                  env={**os.environ, "RUNNER_TEMP": str(temp), **own}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            said += done.stdout
            if done.returncode:
                return done.returncode, said
        shutil.copytree(cache, self.kept, dirs_exist_ok=True)
        return 0, said


def check_action(wheel, folder):
    workspace = folder / "workspace"
    workspace.mkdir()
    hostile = "a model; touch $(echo pwned).onnx"
    for name in ("digits.onnx", hostile):
        shutil.copyfile(DIGITS, workspace / name)
    action = Action(CI / "action.yml", folder)
    given = {"wheel": wheel, "model": "digits.onnx", "target": "x86-64-v2"}
    code, said = action.run(given, workspace)
    assert code == 0 and (workspace / "model.so").is_file(), said
    first = (workspace / "model.so").read_bytes()
    code, said = action.run(given, workspace)
    assert code == 0 and "from the cache" in said and (workspace / "model.so").read_bytes() == first, said
    code, said = action.run({**given, "flags": "--frozen --dim batch=1", "output": "frozen.so"}, workspace)
    assert code == 1 and "batch" in said, said   # flags are words of their own
    code, said = action.run({**given, "flags": "--frozen", "output": "frozen.so"}, workspace)
    assert code == 6 and not (workspace / "frozen.so").exists(), said
    code, said = action.run({**given, "model": hostile, "output": "other.so"}, workspace)
    assert code == 0 and (workspace / "other.so").is_file() and not (workspace / "pwned.onnx").exists(), said
    print("the GitHub action: its steps compile, take a build from the cache, and fail with 6 where nothing is pinned", flush=True)


class Container:
    """What a Dockerfile makes, of the instructions that ours has."""

    def __init__(self, file, contexts, folder):
        self.contexts, self.folder, self.root = contexts, folder, None
        self.place, self.entry = "/", []
        instructions = {"FROM": self.base, "COPY": self.copy, "RUN": self.run, "WORKDIR": self.workdir, "ENTRYPOINT": self.entrypoint}
        text = re.sub(r"\\\n", " ", "".join(line for line in file.read_text().splitlines(True) if not line.startswith("#")))
        for line in filter(None, map(str.strip, text.splitlines())):
            name, _, rest = line.partition(" ")
            instructions[name](rest)

    def base(self, image):
        assert image == "debian:bookworm-slim", image
        self.root = CleanRoot(self.folder)

    def copy(self, rest):
        source, pattern, target = re.fullmatch(r"--from=(\w+) (\S+) (\S+)", rest).groups()
        files = list(self.contexts[source].glob(pattern))
        assert files, f"nothing to copy: {rest}"
        for file in files:
            shutil.copy(file, self.folder / target.strip("/"))

    def run(self, command):
        self.root("sh", "-c", f"cd {self.place} && {command}")

    def workdir(self, place):
        (self.folder / place.strip("/")).mkdir(parents=True, exist_ok=True)
        self.place = place

    def entrypoint(self, words):
        self.entry = json.loads(words)

    def start(self, *words):
        """As `docker run IMAGE WORDS`."""
        return self.root("sh", "-c", f'cd {self.place} && exec "$@"', "sh", *self.entry, *words)


def check_dockerfile(packages, folder):
    image = Container(CI / "Dockerfile", {"packages": packages}, folder)
    assert not list((folder / "tmp").glob("*.deb")), "the package is still in the image"
    shutil.copy(DIGITS, folder / image.place.strip("/"))
    assert "LLVM" in image.start("--version")
    image.start("compile", "digits.onnx", "-t", "cortex-a72", "-o", "digits.so")
    assert (folder / image.place.strip("/") / "digits.so").is_file()
    print("the Dockerfile: its instructions make a root that compiles")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--clean-root", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        wheel, = package(arguments.build, folder / "packages", "--wheel")
        check_action(wheel, folder)
        if arguments.clean_root:
            package(arguments.build, folder / "packages", "--deb")
            check_dockerfile(folder / "packages", folder / "image")


if __name__ == "__main__":
    main()
