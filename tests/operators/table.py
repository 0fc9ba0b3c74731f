"""The operators that there are, and the page about what of them was compared."""
import collections
import pathlib
import re
import sys

import onnx
from waivers import KNOWN, NOT_DRAWN, WAIVERS

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/onnx"))
import operators as listed  # noqa: E402

PAGE = ROOT / "docs/reference/operator-table.md"
HEAD = """# Operators against other sources

`tests/operators/operator_table.py --full --write` writes this page. The reference evaluator is the
compiler's own and reads models through the same importer, so it is held against what is not:
ONNX's cases of single operators (`stored`), ONNX's Python reference, onnxruntime without
optimizations, and, where these have gaps, a definition in numpy. Attributes, shapes, element types,
versions, optional inputs and special values of the other cases are random, from a seed.

* `cases`: random ones, and in brackets those that are refused, by name and with exit status 3;
* the sources: how many cases each was compared in;
* `evaluator`, `compiled`: the largest error, in steps of the last place of the element, or with `*`
  of the output's largest element (at least 1), for operators that sum. What is no float is equal.
  [Waivers](#waivers) are not counted, nor is what is known.

**{operators} operators, {cases} cases, {compared} comparisons, {wrong} wrong, {known} known.** In
{unjudged} of the cases no source is without a waiver.

"""


def catalogue():
    """(domain, operator) -> [(version, first opset, last opset)] of ONNX's operators, and of those of com.microsoft that an importer reads."""
    found, history = {}, onnx.defs.get_all_schemas_with_history()
    for (domain, name), versions, _ in listed.schemas():
        low, high = listed.OPSETS[domain]
        gone = next((s.since_version for s in history if (s.domain, s.name) == (domain, name) and s.deprecated and s.since_version > versions[-1]), high + 1)
        ends = [v - 1 for v in versions[1:]] + [gone - 1]
        found[domain, name] = [(v, max(v, low), end) for v, end in zip(versions, ends)]
    found.update({key: [] for key in listed.imported() if key[0] == "com.microsoft"})
    return found


def named(key):
    return ".".join(filter(None, key))


def rounded(value):
    """One digit: what sums in another order changes is not told."""
    return "0" if value == 0 else f"{value:.1g}" if value < 10 else f"{float(f'{value:.1g}'):.0f}"


def largest(records, engine, summing):
    errors = [e for r in records for (by, _), e in r.errors.items() if by == engine]
    return rounded(max(errors)) + "*" * summing if errors else "–"


def row(key, records, summing):
    sources = collections.Counter(s for r in records for s in {source for _, source in r.errors})
    counts = [sources[s] or "–" for s in ("ONNX's cases", "reference", "onnxruntime", "numpy")]
    drawn = [r for r in records if "ONNX's cases" not in r.sources]
    refused = sum(bool(r.refused) for r in drawn)
    cells = [named(key), f"{len(drawn)}" + f" ({refused})" * bool(refused), *counts, largest(records, "evaluator", summing), largest(records, "compiled", summing)]
    return "| " + " | ".join(map(str, cells)) + " |"


def waivers_of(records, of):
    """A line a reason that was needed, of these waivers."""
    reasons, by_reason = {w.reason for w in of}, collections.defaultdict(lambda: [set(), set(), 0])
    for r in records:
        for source, reason in r.waived.items():
            if reason in reasons:
                entry = by_reason[reason]
                entry[0].add(r.op), entry[1].add(source)
                entry[2] += 1
    lines = ["| operators | source | cases | why |", "|---|---|---|---|"]
    for reason, (ops, sources, count) in sorted(by_reason.items(), key=lambda item: sorted(item[1][0])):
        lines.append(f"| {', '.join(sorted(ops))} | {', '.join(sorted(sources))} | {count} | {reason} |")
    return lines


def refusals_of(records):
    lines = collections.Counter((named((r.domain, r.op)), re.sub(r"^.*?\(x1\): ", "", r.refused)) for r in records if r.refused)
    return ["| operator | cases | what is said |", "|---|---|---|"] + [f"| {op} | {count} | {said} |" for (op, said), count in sorted(lines.items())]


def write(records, families, summing):
    by_key = collections.defaultdict(list)
    for r in records:
        by_key[r.domain, r.op].append(r)
    rows = [row(key, by_key[key], summing(key)) for key in catalogue() if key in families]
    reasons = {w.reason for w in KNOWN}
    head = HEAD.format(operators=len(rows), cases=len(records), compared=sum(len(r.errors) for r in records), wrong=sum(bool(r.wrong) for r in records),
                       known=sum(bool(reasons & set(r.waived.values())) for r in records), unjudged=sum(r.unjudged() for r in records))
    titles = ["| operator | cases | stored | reference | onnxruntime | numpy | evaluator | compiled |", "|---|---|---|---|---|---|---|---|"]
    without = ["| operator | why |", "|---|---|"] + [f"| {named(key)} | {NOT_DRAWN[key[1]]} |" for key in catalogue() if key not in families]
    known = [["## Known", "", "Faults of the compiler that are not mended yet.", ""] + waivers_of(records, KNOWN)] if KNOWN else []
    parts = [titles + rows, *known, ["## Waivers", "", "Where a source is not followed, and why.", ""] + waivers_of(records, WAIVERS), ["## Refused", ""] + refusals_of(records), ["## Without cases", ""] + without]
    PAGE.write_text(head + "\n\n".join("\n".join(p) for p in parts) + "\n")


def check(families):
    """The page names each operator, each has cases or a reason for none, and no waiver is on it that is not in the list."""
    text = PAGE.read_text() if PAGE.exists() else ""
    told = {line.split(" | ")[0].strip("| ") for line in text.splitlines() if line.startswith("| ")}
    wrong = [f"{named(key)}: no row in {PAGE.relative_to(ROOT)}" for key in catalogue() if named(key) not in told]
    wrong += [f"{named(key)}: no family draws its cases" for key in catalogue() if key not in families and key[1] not in NOT_DRAWN]
    reasons = {w.reason for w in WAIVERS + KNOWN}
    waived = text.partition("\n\n## ")[2].partition("## Refused")[0]
    wrong += [f"the page has a reason that is no more: {line}" for line in waived.splitlines() if re.match(r"\| .* \| \d+ \| ", line) and line[2:-2].split(" | ")[3] not in reasons]
    if ", 0 wrong, " not in text:
        wrong.append("the page does not say that nothing is wrong")
    print("\n".join(wrong) or "the page is up to date")
    return 1 if wrong else 0
