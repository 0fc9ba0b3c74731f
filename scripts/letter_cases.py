#!/usr/bin/env python3
"""Writes runtime/letter_cases.h: the letters of Unicode that have another case of one letter whose UTF-8 is as long.

    letter_cases.py [--check]    exit status 1 where the file is another one
"""
import pathlib
import sys
import unicodedata

FILE = pathlib.Path(__file__).resolve().parent.parent / "runtime/letter_cases.h"
SURROGATES = range(0xD800, 0xE000)


def distances(change):
    """Letter -> how far its other case lies from it."""
    found = {}
    for code in range(0x110000):
        other = "" if code in SURROGATES else change(chr(code))
        if len(other) == 1 and ord(other) != code and len(other.encode()) == len(chr(code).encode()):
            found[code] = ord(other) - code
    return found


def spans(change):
    """(first, last, step, distance): every step-th letter from the first to the last one."""
    left = distances(change)
    while left:
        first = min(left)
        by_step = []
        for step in (1, 2):
            last = first
            while left.get(last + step) == left[first]:
                last += step
            by_step.append(((last - first) // step, -step, last))
        _, step, last = max(by_step)
        yield first, last, -step, left[first]
        for code in range(first, last + 1, -step):
            del left[code]


def table(name, change):
    rows = [f"{{0x{first:X}, 0x{last:X}, {step}, {distance}}}" for first, last, step, distance in sorted(spans(change))]
    lines = ["    " + ", ".join(rows[i:i + 3]) for i in range(0, len(rows), 3)]
    return f"static const tw_letters {name}[] = {{\n" + ",\n".join(lines) + "};\n"


def main():
    text = f"""/* Letters of Unicode {unicodedata.unidata_version} and their other case, where that is one letter whose UTF-8 is as long.
 * scripts/letter_cases.py writes this file. */
#ifndef TW_LETTER_CASES_H
#define TW_LETTER_CASES_H
#include <stdint.h>

/* Every step-th letter from the first to the last one; spans may lie in each other. */
typedef struct tw_letters {{
  uint32_t first, last;
  int32_t step, distance;
}} tw_letters;

// clang-format off
{table("tw_lower_cases", str.lower)}
{table("tw_upper_cases", str.upper)}// clang-format on
#endif
"""
    if "--check" in sys.argv[1:]:
        return FILE.read_text() != text
    FILE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
