#!/usr/bin/env python3
"""Chooses the suites of tests/suites.cmake that scripts/test.sh runs, and runs them.

    suites.py plan [--minutes M]              chooses for the next run, and notes it in tests/last_runs: commit that file
    suites.py needs|targets [--full|--quick]  what setup.sh must install for them; what must be built
    suites.py run [--full|--quick]            runs them
    suites.py list                            all suites: seconds, last run, what they watch
    suites.py list|run|.. --touched BASE      those that watch what changed since that commit

A plan has what the changes since the plan before it touched, the suites that ran longest ago first, then all others in
that order, as far as the minutes go. Suites that no plan of the last OVERDUE had come before all others. A run has the
last plan's suites, and what was touched after it, as far as EXTRA minutes go.
"""
import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAST_RUNS = ROOT / "tests/last_runs"
BUILD = ROOT / "build/release"
CORES = 2            # that the minutes are of
BASE = 13 * 60       # seconds of set-up and of the build of the compiler, on all cores
LIBRARIES = 1000     # seconds of one core for the libraries with sanitizers, which all such suites share
OVERDUE, EXTRA = 8, 15


@dataclasses.dataclass
class Suite:
    name: str
    seconds: float
    labels: list
    last: str = ""   # the plan that had it

    def values(self, kind):
        return [label.split("=", 1)[1] for label in self.labels if label.startswith(kind + "=")]

    def touched(self, files):
        return any(file == folder or file.startswith(folder + "/") for folder in self.values("watch") for file in files)

    def lacks(self):
        """It does not bring its environment, and that is not here."""
        return "installed" in self.labels and not all((ROOT / f".venv-{group}").is_dir() for group in self.values("needs"))


def git(*arguments):
    found = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.split("\n")[:-1] if found.returncode == 0 else []


def read_last_runs():
    lines = LAST_RUNS.read_text().splitlines() if LAST_RUNS.exists() else []
    return {name: time for time, name in (line.split() for line in lines)}


def read_suites():
    shown = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    last = read_last_runs()
    suites = []
    for test in json.loads(shown.stdout)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        suites.append(Suite(test["name"], properties.get("COST", 0), properties.get("LABELS", []), last.get(test["name"], "")))
    missing = sorted({folder for suite in suites for folder in suite.values("watch") if not (ROOT / folder).exists()})
    if missing:
        sys.exit(f"tests/suites.cmake watches what is not there: {', '.join(missing)}")
    return suites


def changed_files(base=""):
    """Since a commit, or the last plan; in the tree too."""
    commit = [base] if base else git("log", "-1", "--format=%H", "--", str(LAST_RUNS.relative_to(ROOT)))
    return git("diff", "--name-only", commit[0]) + git("ls-files", "--others", "--exclude-standard") if commit else []


def chosen_within(candidates, seconds, chosen):
    """Adds candidates in their order that fit into so many seconds of a core."""
    used, sanitized = 0, any("sanitized" in suite.labels for suite in chosen)
    for suite in candidates:
        cost = suite.seconds - (LIBRARIES if sanitized and "sanitized" in suite.labels else 0)
        if suite in chosen or used + cost > seconds:
            continue
        chosen.append(suite)
        used += cost
        sanitized |= "sanitized" in suite.labels
    return used


def whole(name):
    """The suite that a part belongs to."""
    return re.sub(r"_\d+$", "", name)


def rotating(suites):
    """Those that a plan chooses from, the ones that ran longest ago first: of a suite in parts the oldest part."""
    known, found = set(), []
    for suite in sorted(suites, key=lambda suite: suite.last):
        if "full" in suite.labels or suite.lacks() or whole(suite.name) in known:
            continue
        known.add(whole(suite.name))
        found.append(suite)
    return found


def make_plan(minutes):
    all_suites, files = read_suites(), changed_files()
    suites = rotating(all_suites)
    plans = sorted({suite.last for suite in all_suites if suite.last})
    late = plans[-OVERDUE] if len(plans) >= OVERDUE else ""
    chosen = [suite for suite in suites if "always" in suite.labels]
    left = (minutes * 60 - BASE) * CORES - sum(suite.seconds for suite in chosen)
    left -= chosen_within([suite for suite in suites if suite.last < late], left, chosen)
    left -= chosen_within([suite for suite in suites if suite.touched(files)], left, chosen)
    chosen_within(suites, left, chosen)
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M")
    last = {suite.name: suite.last for suite in all_suites if suite.last} | {suite.name: now for suite in chosen}
    LAST_RUNS.write_text("".join(f"{time} {name}\n" for name, time in sorted(last.items())))
    print(f"{len(chosen)} of {len(suites)} suites, {sum(suite.seconds for suite in chosen) / 60:.0f} minutes of a core; "
          f"touched: {sum(suite.touched(files) for suite in suites)}, of them chosen {sum(suite.touched(files) for suite in chosen)}")


def choose(arguments):
    suites = read_suites()
    if arguments.touched:
        files = changed_files(arguments.touched)
        return [suite for suite in suites if suite.touched(files) and "full" not in suite.labels], suites
    if arguments.quick:
        return [suite for suite in suites if "quick" in suite.labels], suites
    if arguments.full:   # in place of its parts one that has them all
        complete = {suite.name.removesuffix("_full") for suite in suites if suite.name.endswith("_full")}
        return [suite for suite in suites if whole(suite.name) not in complete], suites
    current = max((suite.last for suite in suites), default="")
    chosen = [suite for suite in suites if suite.last == current and not suite.lacks()]
    files, known = changed_files(), {whole(suite.name) for suite in chosen}
    chosen_within([suite for suite in rotating(suites) if suite.touched(files) and whole(suite.name) not in known], EXTRA * 60 * CORES, chosen)
    return chosen, suites


def collected(suites, kind):
    return sorted({value for suite in suites for value in suite.values(kind)})


def run(arguments):
    chosen, suites = choose(arguments)
    left_out = sorted((suite for suite in suites if suite not in chosen and "full" not in suite.labels), key=lambda s: s.last)
    pattern = "^(" + "|".join(re.escape(suite.name) for suite in chosen) + ")$"
    print(f"{len(chosen)} of {len(suites)} suites", flush=True)
    seed = max((suite.last for suite in suites), default="")
    environment = os.environ | {"TW_SEED": re.sub(r"\D", "", seed) or "1"}
    result = subprocess.run(["ctest", "--test-dir", BUILD, "--output-on-failure", "-j", str(os.cpu_count()), "--no-label-summary", "-R", pattern], env=environment)
    for time in sorted({suite.last for suite in left_out}):
        names = [suite.name for suite in left_out if suite.last == time]
        print(f"not run, last {time or 'never'}: {' '.join(names)}")
    if not arguments.full:
        print(f"only under --full: {' '.join(suite.name for suite in suites if 'full' in suite.labels)}")
    return result.returncode


def list_suites(arguments):
    for suite in sorted(choose(arguments)[0] if arguments.touched else read_suites(), key=lambda suite: suite.name):
        print(f"{suite.name:28} {suite.seconds:5.0f} s  {suite.last or 'never':16}  {' '.join(suite.values('watch'))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["plan", "needs", "targets", "run", "list"])
    parser.add_argument("--minutes", type=float, default=38)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--touched", metavar="BASE")
    arguments = parser.parse_args()
    if arguments.command == "plan":
        make_plan(arguments.minutes)
    elif arguments.command == "list":
        list_suites(arguments)
    elif arguments.command == "run":
        sys.exit(run(arguments))
    else:
        print(" ".join(collected(choose(arguments)[0], arguments.command.removesuffix("s") if arguments.command == "targets" else "needs")))


if __name__ == "__main__":
    main()
