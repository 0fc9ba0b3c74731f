#!/usr/bin/env python3
"""Checks the structure: who includes whom, what only one room may know, sizes, widths and first
words of comments, names of loops, of types and of chips.

    check_layout.py                   exit status 1 on a breach
    check_layout.py --graph FILE      draws the folders by who includes whom: .svg, .dot, else text

What may break a rule stands with its reason in layout/allowed.py.
"""
import argparse
import collections
import pathlib
import re
import sys

from layout import allowed
from layout.cpp_text import functions, literals, named_loops, types
from layout.include_graph import IncludeGraph

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = {  # room -> rooms it may include (itself always)
    "support": [],
    # the evaluator of extern operators calls the very functions
    "ir": ["support", "runtime/ops/ops.h"],
    "frontend": ["ir", "support"],
    "kernels": ["ir", "support"],
    "passes": ["kernels", "ir", "support"],
    "program": ["passes", "kernels", "ir", "support"],
    "autotune": ["driver/compile", "program", "passes", "kernels", "ir", "support",
                 "frontend/frontend.h", "backends/backend.h", "runtime/tilewright.h"],
    "backends": ["ir", "support", "runtime"],
    "packager": ["ir", "support", "runtime"],
    "runtime": [],
    "driver": ["autotune", "program", "passes", "kernels", "frontend", "backends", "packager",
               "runtime", "ir", "support"],
    "cli": ["driver", "autotune", "program", "passes", "kernels", "frontend", "backends",
            "packager", "runtime", "ir", "support"],
}
ONLY = {  # a pattern over #include or code -> rooms or folders that may match it
    r'#include [<"](onnx|google/protobuf)/': ["frontend"],
    r'#include [<"]yaml-cpp/': ["frontend"],
    r'#include [<"]lld/': ["packager"],
    r'#include [<"]zlib': ["packager", "driver"],
    r'#include [<"]CLI/': ["cli"],
    r'#include [<"]sqlite3': ["autotune"],
    r'#include [<"]xgboost/': ["autotune/models"],
    r"\bgetenv\b": ["cli", "runtime", "packager"],   # the runtime: where a device is
    r'#include [<"](verilated|Vvdla)': ["backends/vdla/rtl"],
    # What a device can do is data in its description: nothing else asks what kind it is.
    r'"(cuda|opencl|vdla)"|\bdriver\b(\(\))?\s*[!=]=': ["backends", "runtime"],
    r'#include [<"]llvm/(IR|CodeGen|Passes|Target|MC|Linker|Bitcode|Transforms|Analysis)/':
        ["backends"],
}
BELOW_AUTOTUNE = ["program", "passes", "kernels", "frontend", "backends", "packager", "runtime", "ir", "support"]
FOLDERS = {  # a folder -> what it may include of its own room and others
    "backends/vdla": ["backends/vdla", "backends/backend.h", "ir", "support", "runtime"],
    "driver/compile": ["driver/compile", *BELOW_AUTOTUNE],
    "driver/run": ["driver/run", "driver/compile", *BELOW_AUTOTUNE],
    "driver/compare": ["driver/compare", "driver/run", "driver/compile", "autotune", *BELOW_AUTOTUNE],
}
# What a chip does is data in its description: here its name decides nothing. LLVM's names of
# processors, those of levels and of architectures left out.
NO_CHIPS = {"ir", "kernels", "passes", "program", "autotune", "backends"}
CHIPS = re.compile(
    r"znver|bdver|btver|skx|skylake|cascadelake|cooperlake|icelake|tigerlake|rocketlake|alderlake|"
    r"raptorlake|meteorlake|arrowlake|lunarlake|pantherlake|haswell|broadwell|ivybridge|sandybridge|"
    r"nehalem|westmere|rapids|silvermont|goldmont|tremont|gracemont|sierraforest|\bknl\b|"
    r"cortex-|neoverse|apple-[am]\d|ampere1|thunderx|kryo|exynos|a64fx|carmel|sifive-|rocket-")
# Folders whose files say what is computed, and know no target, not even by what they include.
NO_TARGET = ["kernels/ops", "kernels/algorithms"]
COLUMNS = 100
# A comment that opens so stands for a noun that is elsewhere.
OPENING = re.compile(r"//\s*(of|what|those|the same|that|whether|its|which)\b", re.IGNORECASE)
FILE_LINES = 800
FUNCTION_LINES = 60
FOLDER_FILES = 25   # a header and its source are one
CODE = {".cpp", ".h", ".c"}
SOURCES = CODE | {".sv", ".py", ".sh", ".cmake"}
# Where a loop or a stage is named: the families' folders, and those that know none.
NAMING = {"ir", "support", "frontend", "runtime"}
NO_FAMILY = {"kernels", "kernels/common", "kernels/schedule"}


class Check:
    def __init__(self):
        self.breaches = []
        self.needed = collections.defaultdict(set)  # entries of allowed.py, by table

    def breach(self, text: str):
        self.breaches.append(text)

    def allows(self, table: str, key) -> bool:
        if key not in getattr(allowed, table):
            return False
        self.needed[table].add(key)
        return True

    def unneeded(self):
        for table in ("CIRCLES", "FUNCTIONS", "FOLDERS", "NAMES"):
            for key in getattr(allowed, table).keys() - self.needed[table]:
                self.breach(f"scripts/layout/allowed.py: nothing needs {key} in {table}")


def files_of(folder: str, endings: set[str]) -> list[pathlib.Path]:
    return [p for p in sorted((ROOT / folder).rglob("*")) if p.suffix in endings and p.is_file()]


def check_lines(check: Check, room: str, name: str, text: str):
    """Includes of other rooms, and what only one room may know."""
    places = next((places for folder, places in FOLDERS.items() if name.startswith(folder + "/")),
                  [room, *ROOMS[room]])
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > COLUMNS and line.lstrip().startswith("//"):  # clang-format does not wrap
            check.breach(f"{name}:{number}: a comment of {len(line)} columns, the limit is "
                         f"{COLUMNS}")
        for pattern, rooms in ONLY.items():
            if (not any(name.startswith(place + "/") for place in rooms)
                    and re.search(pattern, line)):
                check.breach(f"{name}:{number}: only {', '.join(rooms)} may have: {line.strip()}")
        include = re.match(r'\s*#include "([^"]+)"', line)
        target = include.group(1) if include else ""
        if "/" not in target or target.split("/")[0] not in ROOMS:
            continue
        if not any(target == a or target.startswith(a + "/") for a in places):
            folder = pathlib.PurePath(name).parent
            check.breach(f"{name}:{number}: {folder} may not include {target}")


def check_comments(check: Check, name: str, text: str):
    """The first words of comments: of those on lines of their own, the first line of a block."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        own = line.lstrip().startswith("//")
        behind = re.search(r"[;{},)]\s+(//.*)", line)
        first = line.lstrip() if own and not inside else behind.group(1) if behind else ""
        if opening := OPENING.match(first):
            check.breach(f"{name}:{number}: a comment opens with '{opening.group(1)}': say it with "
                         "a subject and a verb, or name its noun")
        inside = own


def check_functions(check: Check, name: str, text: str):
    for first, last, head in functions(text):
        count = last - first + 1
        function = re.search(r"([\w~]+)\s*\(", re.sub(r"function<.*?>+\s", "", head))
        key = (name, function.group(1) if function else head)
        if count > FUNCTION_LINES and not (check.allows("FUNCTIONS", key)
                                           and count <= allowed.FUNCTIONS[key][0]):
            check.breach(f"{name}:{first}: {key[1]} has {count} lines, the limit is "
                         f"{FUNCTION_LINES}")


def check_names(check: Check, room: str, name: str, text: str):
    if room in NAMING or room == "kernels" and str(pathlib.PurePath(name).parent) not in NO_FAMILY:
        return
    for number, line in named_loops(text):
        if not any(file == name and part in line and check.allows("NAMES", (file, part))
                   for file, part in allowed.NAMES):
            check.breach(f"{name}:{number}: a loop, stage or buffer is named outside the folder of "
                         f"its family: {line}")


def check_chips(check: Check, room: str, name: str, text: str):
    if room not in NO_CHIPS:
        return
    for number, literal in literals(text):
        if CHIPS.search(literal):
            check.breach(f"{name}:{number}: a chip is named, and its description says what it does: "
                         f"{literal}")


def check_sizes(check: Check):
    units = collections.defaultdict(set)
    for folder in [*ROOMS, "tests", "scripts", "bench", "examples"]:
        for path in files_of(folder, SOURCES):
            count = path.read_text().count("\n")
            if count > FILE_LINES:
                check.breach(f"{path.relative_to(ROOT)}: {count} lines, the limit is {FILE_LINES}")
            units[str(path.parent.relative_to(ROOT))].add(path.stem)
    for folder, stems in sorted(units.items()):
        if len(stems) > FOLDER_FILES and not check.allows("FOLDERS", folder):
            check.breach(f"{folder}: {len(stems)} files, a header and its source counted as one; "
                         f"the limit is {FOLDER_FILES}")


def check_types(check: Check, places: dict[str, list[str]]):
    """Rooms share the namespace tw: a type's name is one type's in all of them."""
    for name, where in sorted(places.items()):
        if len(where) > 1:
            check.breach(f"{where[0]}: a type {name} is also in {', '.join(where[1:])}")


def check_circles(check: Check, graph: IncludeGraph):
    for circle in graph.circles():
        if check.allows("CIRCLES", tuple(circle)):
            continue
        check.breach(f"a circle of folders: {' '.join(circle)}")
        for a, b, lines in graph.inside(circle):
            check.breach(f"  {a} -> {b}: {'; '.join(lines[:3])}"
                         + (f" and {len(lines) - 3} more" if len(lines) > 3 else ""))


def check_targets(check: Check, graph: IncludeGraph):
    for name in sorted(graph.includes):
        if str(pathlib.PurePath(name).parent) not in NO_TARGET:
            continue
        if way := graph.way(name, "ir/target.h"):
            check.breach(f"{name}: knows the target, by {' '.join(way[1:])}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", metavar="FILE", help="draw who includes whom, and check nothing")
    arguments = parser.parse_args()
    files = {room: files_of(room, CODE) for room in ROOMS}
    headers = [path for room in ROOMS for path in files_of(room, CODE | {".def"})]
    graph = IncludeGraph(ROOT, headers)
    if arguments.graph:
        ending = pathlib.PurePath(arguments.graph).suffix
        drawn = {".svg": graph.svg, ".dot": graph.dot}.get(ending, graph.text)()
        pathlib.Path(arguments.graph).write_text(drawn)
        return 0

    check = Check()
    places = collections.defaultdict(list)  # of types, by their names
    for room, paths in files.items():
        lines = 0
        for path in paths:
            text, name = path.read_text(), str(path.relative_to(ROOT))
            lines += text.count("\n")
            check_lines(check, room, name, text)
            check_comments(check, name, text)
            check_functions(check, name, text)
            check_names(check, room, name, text)
            if path.suffix != ".c":
                for line, made in types(text):
                    places[made].append(f"{name}:{line}")
            check_chips(check, room, name, text)
        print(f"{room:10} {lines:6} lines")
    check_sizes(check)
    check_types(check, places)
    check_circles(check, graph)
    check_targets(check, graph)
    check.unneeded()
    for breach in check.breaches:
        print(breach, file=sys.stderr)
    count = len(check.breaches)
    print(f"layout: {'ok' if not count else str(count) + ' breaches'}")
    return 1 if check.breaches else 0


if __name__ == "__main__":
    sys.exit(main())
