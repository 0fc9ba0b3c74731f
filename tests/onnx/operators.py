#!/usr/bin/env python3
"""Writes docs/reference/operators.md: every operator of the ONNX standard, the versions that are imported, and what of the backend suite
passes, by the two lists beside this file (which test_onnx keeps true).

    operators.py CASES [--check]      CASES: what export.py wrote; --check: only says whether the page is up to date
"""
import fnmatch
import pathlib
import re
import sys

import onnx

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/reference/operators.md"
MODES = ["static", "symbolic", "constant"]
FILES = {"static": "model.onnx", "symbolic": "symbolic.onnx", "constant": "constant.onnx"}
OPSETS = {"": (7, 28), "ai.onnx.ml": (1, 5)}
HEAD = """# Operators

`tests/onnx/operators.py` writes this page. It has a row for each operator of the ONNX standard:

* `versions`: the versions ("since" numbers) in force at the opsets
  of {domains};
* `by`: what reads it, an importer or the function body that the ONNX standard gives;
* `element types`: those of the inputs in passing test cases;
* the last columns: how many cases of the ONNX backend suite with this operator pass, in three
  forms. `static` is the case as it is. `symbolic` leaves its extents free. `constant` makes its
  inputs constants.

`tests/onnx/excluded.txt` names what is out for good. It counts as not passing.

**{passing} of {total} operators have a passing case; {whole} pass every case they have.**
Cases that pass: {cases}.
"""


def read_excluded():
    lines = []
    for line in (ROOT / "tests/onnx/excluded.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            head = line.split(": ")[0].split(" ")
            lines.append((head[0], head[1].split(",") if len(head) > 1 else MODES))
    return lines


def read_not_yet():
    lines = [line.split(": ")[0].split() for line in (ROOT / "tests/onnx/not_yet.txt").read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {(name, mode) for name, modes in lines for mode in modes.split(",")}


def nodes_of(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from nodes_of(inner)


def type_name(value):
    return onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower() if value.type.WhichOneof("value") == "tensor_type" else \
        value.type.WhichOneof("value").removesuffix("_type")


def survey(cases):
    """(domain, operator) -> {mode: [passing, all]}, element types; and the totals by mode."""
    excluded, not_yet = read_excluded(), read_not_yet()
    counts, types, totals = {}, {}, {mode: [0, 0] for mode in MODES}
    for path in sorted(cases.glob("*/*/model.onnx")):
        case = f"{path.parent.parent.name}/{path.parent.name}"
        model = onnx.load(path)
        operators = {("" if node.domain == "ai.onnx" else node.domain, node.op_type) for node in nodes_of(model.graph)}
        for mode in MODES:
            if not (path.parent / FILES[mode]).exists():
                continue
            passes = (case, mode) not in not_yet and not any(mode in modes and fnmatch.fnmatchcase(case, glob) for glob, modes in excluded)
            for count in [totals[mode], *(counts.setdefault(op, {m: [0, 0] for m in MODES})[mode] for op in operators)]:
                count[0] += passes
                count[1] += 1
            if passes and mode == "static" and len(operators) == 1:
                types.setdefault(*operators, set()).update(type_name(value) for value in model.graph.input)
    return counts, types, totals


def imported():
    """(domain, operator) -> (first, last version) of the import table."""
    text = (ROOT / "frontend/onnx/import_table.cpp").read_text()
    rows = re.findall(r'ImportRow\{"(\w+)", (\d+), (\d+)(.*)\}', text)
    return {("ai.onnx.ml" if "kMl" in rest else "com.microsoft" if "kMicrosoft" in rest else "", name): (int(first), int(last)) for name, first, last, rest in rows}


def schemas():
    """(domain, operator) -> since-versions in force in the opsets, function body or not."""
    found = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain in OPSETS and not schema.deprecated:
            found.setdefault((schema.domain, schema.name), []).append(schema)
    for (domain, name), versions in sorted(found.items()):
        low, high = OPSETS[domain]
        since = sorted(schema.since_version for schema in versions)
        kept = [v for i, v in enumerate(since) if v <= high and (i + 1 == len(since) or since[i + 1] > low)]
        body = any(schema.has_function or schema.has_context_dependent_function for schema in versions)
        yield (domain, name), kept, body


def page(cases):
    counts, types, totals = survey(cases)
    rows = imported()
    lines, passing, whole, total = [], 0, 0, 0
    for op, versions, body in schemas():
        count = counts.get(op, {mode: [0, 0] for mode in MODES})
        first, last = rows.get(op, (0, -1))
        how = "import" if last >= max(versions) else "function body" if body else "older versions" if last >= 0 else "–"
        cells = [f"{good} of {of}" if of else "–" for good, of in (count[mode] for mode in MODES)]
        name = op[1] if not op[0] else f"{op[0]}.{op[1]}"
        lines.append(f"| {name} | {', '.join(map(str, versions))} | {how} | {' '.join(sorted(types.get(op, ())))} | {' | '.join(cells)} |")
        total += 1
        passing += count["static"][0] > 0
        whole += count["static"][0] > 0 and all(good == of for good, of in count.values())
    head = HEAD.format(domains=", ".join(f"{domain or 'ai.onnx'} {low} to {high}" for domain, (low, high) in OPSETS.items()), passing=passing, whole=whole,
                       total=total, cases=", ".join(f"{mode} {good} of {of}" for mode, (good, of) in totals.items()))
    table = [f"| operator | versions | by | element types | {' | '.join(MODES)} |", "|---|---|---|---|" + "---|" * len(MODES)]
    return head + "\n" + "\n".join(table + lines) + "\n"


def main():
    words = [word for word in sys.argv[1:] if word != "--check"]
    if len(words) != 1:
        sys.exit(__doc__)
    text = page(pathlib.Path(words[0]))
    if "--check" not in sys.argv:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.exit(f"{PAGE.relative_to(ROOT)} is not up to date: run tests/onnx/operators.py CASES")


if __name__ == "__main__":
    main()
