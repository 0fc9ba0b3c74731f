#!/usr/bin/env python3
"""Keeps the pages true. Of README.md, CONTRIBUTING.md, docs/ and the READMEs of examples/ and tests/onnx/ it checks:

* every `tilewright SUBCOMMAND --flag`, every link, and every path of the repository in backticks exists;
* no line of prose has over 100 columns;
* every page of the journal is dated and listed;
* every sub-command, key of a target and schedule primitive that the compiler knows stands on its page;
* the blocks of code do what the page says. All blocks of a page run in their order and in one folder, which sees the
  examples and the C header:

  ```sh                   each line is a command. One that begins with `!` must fail, by an exit status of 1 to 7
  ```sh not-run: REASON   is only shown
  ```sh if COMMAND: WHAT  runs where COMMAND succeeds; WHAT is what is missing elsewhere
  ```LANGUAGE FILE        is the text of FILE. A later command of the page must name it
  ```kernel [NAME]        a kernel in text form and its schedule, as `tilewright opt` takes them. It must compute the same
                          before and after
  ```becomes              what the kernel above becomes, in any layout
  ```refused TEXT         a kernel and a schedule that is refused with TEXT in the message
  ```graph                a graph in text form, which must be valid

  In the guide no block may be anything else, so that nothing escapes. README's indented commands on the example run too.

It ends with what ran and what did not, and why.

    check_docs.py --tilewright BUILD/tilewright
    check_docs.py           what can be seen without a compiler: links, paths, columns, the journal
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COLUMNS = 100
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "build"))}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")),
         ROOT / "examples/README.md", ROOT / "tests/onnx/README.md"]


def help_texts(tilewright):
    top = subprocess.run([tilewright, "--help"], check=True, capture_output=True, text=True).stdout
    names = re.findall(r"^  (\w+)  +\S", top, re.M)
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


def outside_blocks(page):
    """Lines outside of marked blocks, indented ones included."""
    inside = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            yield number, line


def check_links(page):
    for number, line in outside_blocks(page):
        for target, anchor in re.findall(r"\]\(([^)#:]*)(#[^)]*)?\)", line):
            file = page.parent / target if target else page
            if not file.exists():
                yield f"{page.name}:{number}: no file {target}"
            elif anchor and anchor[1:] not in anchors(file):
                yield f"{page.name}:{number}: {file.name} has no heading {anchor}"


def anchors(page):
    """The headings' names in links: lower case, without punctuation, with hyphens for spaces."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", title)).lower().replace(" ", "-") for title in titles}


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
    """What looks like a path of the repository, in backticks: a folder at the top, then names, perhaps arguments behind it. `*`
    stands for any name, `<name>` for one that the reader chooses. The journal is history: it may name what is gone."""
    if page.is_relative_to(ROOT / "docs/journal"):
        return
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for path in re.findall(r"`([\w.-]+/[\w./*<>-]*)[^`]*`", line):
            if path.split("/")[0] not in FOLDERS or "<" in path or path.startswith("build/"):
                continue
            if not any(True for _ in ROOT.glob(path.rstrip("/"))):
                yield f"{page.relative_to(ROOT)}:{number}: no {path}"


def check_complete(tilewright, helps):
    """What the compiler knows by name stands on its page: sub-commands, keys of targets, schedule primitives."""
    def known(note, name, text, *command):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / name).write_text(text)
            said = subprocess.run([tilewright, *command, name], cwd=folder, capture_output=True, text=True).stderr
        return re.search(note + r": (.*)", said)[1].split(", ")
    steps = known("known steps", "k.txt", "kernel @k(y: out f32[1]) { y: y[0] = 0 }\nschedule { unknown }\n", "opt")
    keys = known("accepted keys", "t.yaml", "unknown: 1\n", "target")
    device = known("accepted keys", "t.yaml", "triple: x86_64-linux-gnu\ndevices: [{unknown: 1}]\n", "target")
    reference = ROOT / "docs/reference"
    titles = {title for page in reference.glob("schedule-*.md") for title in anchors(page)}
    yield from (f"no page has a heading for the primitive {step}" for step in steps if step not in titles)
    targets = (reference / "targets.md").read_text()
    yield from (f"targets.md: no key {key}" for key in [*keys, *device] if f"`{key}`" not in targets and f"`{key}." not in targets)
    commands = (reference / "cli.md").read_text()
    yield from (f"cli.md: no sub-command {name}" for name in helps if not re.search(rf"`{name}[ `]", commands))


def check_journal():
    """A page of the journal has its date in its name, says when and on which machine, and stands in the list."""
    folder = ROOT / "docs/journal"
    listed = (folder / "README.md").read_text()
    for page in sorted(set(folder.glob("*.md")) - {folder / "README.md"}):
        if not re.match(r"\d{4}-\d\d-\d\d-[a-z0-9-]+\.md$", page.name):
            yield f"{page.name}: the name of a page is DATE-TOPIC.md"
        if f"({page.name})" not in listed:
            yield f"{page.name}: not in docs/journal/README.md"
        if not re.search(r"^Date: .* Machine: ", page.read_text(), re.M):
            yield f"{page.name}: no line 'Date: ... Machine: ...'"


class Blocks:
    """Runs the blocks of one page and counts them."""

    def __init__(self, page, tilewright, folder):
        self.page, self.tilewright, self.folder = page, tilewright, folder
        self.name = str(page.relative_to(ROOT))
        self.ran, self.left_out, self.problems = collections.Counter(), [], []
        for seen in ("examples", "runtime", "configs", "tests"):
            os.symlink(ROOT / seen, folder / seen)
        paths = [str(tilewright.parent), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]
        self.environment = {**os.environ, "PATH": os.pathsep.join(paths), "XDG_DATA_HOME": str(folder),
                            "tilewright_DIR": str(ROOT / "cmake")}   # as if it were installed
        self.opened = None   # the last kernel's result
        self.unused = {}     # files that no command has named yet

    def problem(self, number, text):
        self.problems.append(f"{self.name}:{number}: {text}")

    def shell(self, command):
        return subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, capture_output=True, text=True)

    def run(self):
        text = self.page.read_text()
        for found in re.finditer(r"^```(.*)\n((?:.*\n)*?)^```$", text, re.M):
            number = text[:found.start()].count("\n") + 1
            self.block(number, found[1], found[2])
        if self.name.startswith("docs/guide/"):
            for number, line in outside_blocks(self.page):
                if re.match(r"( {4}|\t)\S", line):
                    self.problem(number, "an indented block of code would not run: use ```sh")
        for file, number in self.unused.items():
            self.problem(number, f"no command uses {file}")

    def block(self, number, mark, body):
        kind, _, rest = mark.partition(" ")
        if kind == "sh":
            self.commands(number, rest, body)
        elif kind in ("kernel", "becomes", "refused", "graph"):
            self.text_form(number, kind, rest, body)
        elif rest:
            (self.folder / rest).write_text(body)
            self.unused[rest] = number
            self.ran[f"{kind} files"] += 1
        elif self.name.startswith("docs/guide/"):
            self.problem(number, f"a block marked '{mark}' is neither run nor written to a file")

    def commands(self, number, rest, body):
        lines = [line for line in body.splitlines() if line and not line.startswith("#")]
        condition, _, reason = rest.partition(": ")
        if condition == "not-run" or (condition.startswith("if ") and self.shell(condition[3:]).returncode):
            self.left_out += [(f"{self.name}:{number}", line, reason) for line in lines]
            if not reason:
                self.problem(number, "say why: ```sh not-run: REASON")
            return
        if rest and not condition.startswith("if "):
            self.problem(number, f"unknown mark 'sh {rest}'")
        for line in lines:
            for file in [file for file in self.unused if file in line or pathlib.Path(file).stem in line.split()]:
                del self.unused[file]
            done = self.shell(line.removeprefix("! "))
            self.ran["commands"] += 1
            if done.returncode not in (range(1, 8) if line.startswith("! ") else (0,)):
                self.problem(number, f"`{line}` ends with {done.returncode}: {done.stderr[-2000:]}")

    def opt(self, text, *flags):
        file = self.folder / "block.txt"
        file.write_text(text)
        return subprocess.run([self.tilewright, "opt", file.name, *flags], cwd=self.folder, capture_output=True, text=True)

    def text_form(self, number, kind, rest, body):
        self.unused = {file: at for file, at in self.unused.items() if file not in rest}
        if kind == "becomes":
            done = self.opt(body)
            if done.returncode:
                self.problem(number, f"does not parse: {done.stderr}")
            elif done.stdout != self.opened:
                self.problem(number, f"the kernel becomes\n{self.opened}")
        elif kind == "refused":
            done = self.opt(body)
            if done.returncode != 1 or rest not in done.stderr:
                self.problem(number, f"expected '{rest}', got {done.returncode}: {done.stderr}")
        else:
            done = self.opt(body, *(["--verify"] if kind == "graph" else ["--interp", "1", *rest.split()]))
            if done.returncode:
                self.problem(number, f"{kind}: ends with {done.returncode}: {done.stderr}")
            self.opened = self.opt(body, *rest.split()).stdout
        self.ran["text forms"] += 1


def run_readme(tilewright):
    """The lines that use the digits example, in a folder that sees the tree under its own names."""
    lines = [line.strip() for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("    build/release/tilewright ")]
    if not lines:
        yield "README.md: no commands to run"
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(ROOT / "examples", pathlib.Path(folder) / "examples")
        (pathlib.Path(folder) / "build/release").mkdir(parents=True)
        os.symlink(tilewright, pathlib.Path(folder) / "build/release/tilewright")
        for line in lines:
            done = subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                yield f"README.md: `{line}` ends with {done.returncode}: {done.stderr}"


def run_blocks(tilewright):
    """The blocks of all pages; gives the problems, and prints what ran a part of the docs."""
    ran, left_out, problems = collections.defaultdict(collections.Counter), [], []
    for page in PAGES:
        if "\n```" not in page.read_text():
            continue
        with tempfile.TemporaryDirectory() as folder:
            blocks = Blocks(page, tilewright, pathlib.Path(folder))
            blocks.run()
        ran[str(page.parent.relative_to(ROOT))] += blocks.ran
        left_out += blocks.left_out
        problems += blocks.problems
    for part, counts in ran.items():
        if counts:
            print(f"{part}: ran " + ", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    for place, command, reason in left_out:
        print(f"not run: {place}: {command} ({reason})")
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path)
    tilewright = parser.parse_args().tilewright
    problems = [p for page in PAGES for p in [*check_links(page), *check_paths(page), *check_columns(page)]] + [*check_journal()]
    if tilewright:
        tilewright = tilewright.resolve()
        helps = help_texts(tilewright)
        problems += [p for page in PAGES for p in check_flags(page, helps)]
        problems += [*check_complete(tilewright, helps), *run_readme(tilewright), *run_blocks(tilewright)]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"docs: {len(PAGES)} pages, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
