#!/usr/bin/env python3
"""README's commands, each block of them in a Debian of its own with nothing but git (by mmdebstrap, as root).

    readme.py [--only WORD ...] [--ccache DIR] [--until WORD]
        --only     the blocks with such a word in them
        --until    of each block the commands before the first with this word
        --ccache   objects that were compiled before are taken from there, and new ones kept
"""
import argparse
import os
import pathlib
import sys
import tempfile
import time

from packages import ROOT, CleanRoot, run

PLACE = str(ROOT)[1:]   # of the checkout: objects in a cache know the path that they were compiled at


def blocks():
    """The commands of README's section on the begin, a list a block."""
    section = (ROOT / "README.md").read_text().split("\n## Begin\n")[1].split("\n## ")[0]
    found, before = [], ""
    for line in section.splitlines():
        if line.startswith("    "):
            if not before.startswith("    "):
                found.append([])
            found[-1].append(line.strip())
        before = line
    return found


def before(word, block):
    """The block's commands up to the first with the word."""
    return block[:next((i for i, command in enumerate(block) if word and word in command), len(block))]


# Commands that must work after a block besides, by a word of it.
AFTERWARDS = {
    "demo.sh": ["python3 scripts/package/package.py --build build/release --output /tmp/packages --wheel"],
    # The tests are built where nothing but the default group is installed, and those that need more are left out.
    "--target product": ["cmake --build build/release", "ctest --test-dir build/release -R 'support|packager' --output-on-failure"],
}


def check(block, arguments, folder):
    cache = {"root/.cache/ccache": arguments.ccache.resolve()} if arguments.ccache else {}
    root = CleanRoot(folder, "git", cache)
    run("git", "clone", "--quiet", ROOT, folder / PLACE)
    certificates = {}   # of a network whose proxy signs anew
    if "PIP_CERT" in os.environ:
        certificates = {"PIP_CERT": root.put(pathlib.Path(os.environ["PIP_CERT"]))}
    commands = before(arguments.until, block)
    if commands == block:
        commands = commands + [more for word, list_ in AFTERWARDS.items() if word in " ".join(block) for more in list_]
    for command in commands:
        start = time.monotonic()
        root("sh", "-ec", f"cd /{PLACE} && {command}", **certificates)
        print(f"{command}: {(time.monotonic() - start) / 60:.1f} min", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--until")
    parser.add_argument("--ccache", type=pathlib.Path)
    arguments = parser.parse_args()
    found = blocks()
    text = "\n".join(command for block in found for command in block)
    if "scripts/demo.sh" not in text or "scripts/test.sh" not in text:
        sys.exit("README names no command that runs the main job, or none that passes the tests")
    for block in found:
        if not arguments.only or any(word in command for word in arguments.only for command in block):
            with tempfile.TemporaryDirectory() as name:
                check(block, arguments, pathlib.Path(name) / "root")


if __name__ == "__main__":
    main()
