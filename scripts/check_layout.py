#!/usr/bin/env python3
"""Checks the structure: which room may include which, what only one room may know, and file sizes. Exit status 1 on a breach."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = {  # room -> rooms it may include (itself always)
    "support": [],
    "ir": ["support", "runtime/ops/ops.h"],   # the evaluator of extern operators calls the very functions
    "frontend": ["ir", "support"],
    "kernels": ["ir", "support"],
    "passes": ["kernels", "ir", "support"],
    "program": ["passes", "kernels", "ir", "support"],
    "autotune": ["program", "passes", "kernels", "ir", "support", "backends/backend.h", "runtime/tilewright.h"],
    "backends": ["ir", "support", "runtime"],
    "packager": ["ir", "support", "runtime"],
    "runtime": [],
    "driver": ["autotune", "program", "passes", "kernels", "frontend", "backends", "packager", "runtime", "ir", "support"],
    "cli": ["driver", "autotune", "program", "passes", "kernels", "frontend", "backends", "packager", "runtime", "ir", "support"],
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
    r'#include [<"]llvm/(IR|CodeGen|Passes|Target|MC|Linker|Bitcode|Transforms|Analysis)/': ["backends"],
}
BELOW_AUTOTUNE = ["program", "passes", "kernels", "frontend", "backends", "packager", "runtime", "ir", "support"]
FOLDERS = {  # a folder -> what it may include of its own room and others
    "backends/vdla": ["backends/vdla", "backends/backend.h", "ir", "support", "runtime"],
    "driver/compile": ["driver/compile", *BELOW_AUTOTUNE],
    "driver/run": ["driver/run", "driver/compile", *BELOW_AUTOTUNE],
    "driver/compare": ["driver/compare", "driver/run", "driver/compile", "autotune", *BELOW_AUTOTUNE],
}
LIMIT = 800
SOURCES = {".cpp", ".h", ".c", ".sv", ".py", ".sh", ".cmake"}


def main() -> int:
    breaches = []
    lines_per_room = {}
    for room, allowed in ROOMS.items():
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix not in {".cpp", ".h", ".c"}:
                continue
            text = path.read_text()
            name = path.relative_to(ROOT)
            lines_per_room[room] = lines_per_room.get(room, 0) + text.count("\n")
            for number, line in enumerate(text.splitlines(), 1):
                for pattern, rooms in ONLY.items():
                    if not any(str(name).startswith(place + "/") for place in rooms) and re.search(pattern, line):
                        breaches.append(f"{name}:{number}: only {', '.join(rooms)} may have: {line.strip()}")
                include = re.match(r'\s*#include "([^"]+)"', line)
                if not include or "/" not in include.group(1):
                    continue
                target = include.group(1)
                if target.split("/")[0] not in ROOMS:
                    continue
                places = next((places for folder, places in FOLDERS.items() if str(name).startswith(folder + "/")), [room, *allowed])
                if not any(target == a or target.startswith(a + "/") for a in places):
                    breaches.append(f"{name}:{number}: {name.parent} may not include {target}")
    for folder in [*ROOMS, "tests", "scripts", "bench", "examples"]:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                count = path.read_text().count("\n")
                if count > LIMIT:
                    breaches.append(f"{path.relative_to(ROOT)}: {count} lines, the limit is {LIMIT}")
    for room, count in lines_per_room.items():
        print(f"{room:10} {count:6} lines")
    for breach in breaches:
        print(breach, file=sys.stderr)
    print(f"layout: {'ok' if not breaches else str(len(breaches)) + ' breaches'}")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
