#!/usr/bin/env python3
"""Keeps the pages true: every `tilewright SUBCOMMAND --flag` that README.md and docs/ name must exist, every link must lead
to a file, every path of the repository in backticks must exist, no line of prose has over 100 columns, and README's commands on the digits example are run as written. So are the guide's: of each page of docs/guide, all
blocks marked `sh`, in their order and in one folder; a block marked with a language and a file's name is that file. A line that
begins with `!` must fail, by an exit status of 1 to 4. Blocks marked `sh not-run` are only shown.

    check_docs.py --tilewright BUILD/tilewright
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GUIDE = sorted((ROOT / "docs/guide").glob("*.md"))
COLUMNS = 100
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "build"))}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "examples/README.md"]


def help_texts(tilewright):
    top = subprocess.run([tilewright, "--help"], check=True, capture_output=True, text=True).stdout
    names = re.findall(r"^  (\w+)  +\S", top.split("Subcommands:")[1], re.M)
    return {name: subprocess.run([tilewright, name, "--help"], check=True, capture_output=True, text=True).stdout for name in names}


def check_flags(page, helps):
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for name, rest in re.findall(r"(?<!-)tilewright ([a-z]+)((?: [^`|&;]*)?)", line):
            if name not in helps:
                if not re.search(r"tilewright \w+ *[-A-Z./$]", line):
                    continue   # prose
                yield f"{page.name}:{number}: no sub-command '{name}'"
                continue
            for flag in re.findall(r"(?<!\S)(--[a-z][a-z-]*)", rest):
                if flag not in helps[name]:
                    yield f"{page.name}:{number}: tilewright {name} has no {flag}"


def check_links(page):
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for target in re.findall(r"\]\(([^)#:]+)\)", line):
            if not (page.parent / target).exists():
                yield f"{page.name}:{number}: no file {target}"


def prose(page):
    """Lines of a page with their numbers, but for blocks of code and tables."""
    inside = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside and not line.startswith(("|", "    ")):
            yield number, line


def check_columns(page):
    for number, line in prose(page):
        if len(line) > COLUMNS:
            yield f"{page.relative_to(ROOT)}:{number}: {len(line)} columns, the limit is {COLUMNS}"


def check_paths(page):
    """What looks like a path of the repository, in backticks: a folder at the top, then names. `*` stands for any name, `<name>` for
    one that the reader chooses. The journal is history: it may name what is gone."""
    if page.is_relative_to(ROOT / "docs/journal"):
        return
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for path in re.findall(r"`([\w.-]+/[\w./*<>-]*)`", line):
            if path.split("/")[0] not in FOLDERS or "<" in path or path.startswith("build/"):
                continue
            if not any(True for _ in ROOT.glob(path.rstrip("/"))):
                yield f"{page.relative_to(ROOT)}:{number}: no {path}"


def run_readme(tilewright):
    """The lines that use the digits example, in a folder that sees the tree under its own names."""
    commands = [line.strip() for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("    build/release/tilewright ")]
    if not commands:
        yield "README.md: no commands to run"
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(ROOT / "examples", pathlib.Path(folder) / "examples")
        (pathlib.Path(folder) / "build/release").mkdir(parents=True)
        os.symlink(tilewright, pathlib.Path(folder) / "build/release/tilewright")
        for command in commands:
            done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
            print(f"ran: {command}")
            if done.returncode:
                yield f"README.md: `{command}` ends with {done.returncode}: {done.stderr}"


def run_guide(page, tilewright):
    """The page's blocks, in a folder that sees the examples and the C header, with the compiler and this Python on the path."""
    name = page.relative_to(ROOT)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for seen in ("examples", "runtime"):
            os.symlink(ROOT / seen, folder / seen)
        paths = [str(tilewright.parent), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]
        environment = {**os.environ, "PATH": os.pathsep.join(paths), "XDG_DATA_HOME": scratch}
        for mark, body in re.findall(r"^```(.+)\n((?:.*\n)*?)^```$", page.read_text(), re.M):
            language, _, file = mark.partition(" ")
            if language != "sh":
                if file:
                    (folder / file).write_text(body)
                continue
            for command in body.splitlines() if file != "not-run" else []:
                expected = range(1, 5) if command.startswith("! ") else (0,)
                done = subprocess.run(["bash", "-c", command.removeprefix("! ")], cwd=folder, env=environment, capture_output=True, text=True)
                print(f"ran: {command}")
                if done.returncode not in expected:
                    yield f"{name}: `{command}` ends with {done.returncode}: {done.stderr[-2000:]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    tilewright = parser.parse_args().tilewright.resolve()
    helps = help_texts(tilewright)
    problems = [p for page in PAGES for p in [*check_flags(page, helps), *check_links(page), *check_paths(page), *check_columns(page)]] + list(run_readme(tilewright))
    problems += [p for page in GUIDE for p in run_guide(page, tilewright)]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"docs: {len(PAGES)} pages, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
