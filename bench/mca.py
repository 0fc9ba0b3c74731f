#!/usr/bin/env python3
"""Estimates the multiply-add loops of AArch64 kernels with llvm-mca, where no such machine is at hand, and checks that they do not spill.

    mca.py --tilewright BUILD/tilewright [--target cortex-a76 --target neoverse-n1] [--algorithm direct] MODEL.onnx ...

Per kernel, its innermost loop with the most fmla: how many, other instructions, LLVM's cycles for one iteration, and percent of the limit:
the cycles of the same fmla alone, independent of each other, by the same model. LLVM's models are borrowed in places (cortex-a76 has the
A57's, one fmla a cycle where the processor does two), so percentages say more than cycles. Exit code 1 if a loop with at least 4 fmla loads
or stores vectors on the stack. Needs llvm-mca-22 (package llvm-22, which llvm-22-dev brings).
"""
import argparse
import re
import subprocess
import sys

ITERATIONS = 200
FEWEST = 4   # fmla of a loop worth looking at
INSTRUCTION = re.compile(r"^\t([a-z][\w.]*)\s*(.*)$")


def assembly(tilewright, model, target, algorithm):
    command = [tilewright, "compile", model, "-t", target, "--emit", "asm"] + (["--algorithm", algorithm] if algorithm else [])
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def kernels(text):
    """(name, lines) of every kernel."""
    for part in re.split(r"^; ---- ", text, flags=re.M):
        name = re.search(r"kernel @(\w+)\(", part)
        if name:
            yield name.group(1), part.splitlines()


def inner_loops(lines):
    """(source loop, instructions) of every loop without another one in it; the header first, then its other blocks from there on."""
    loops, header = {}, None
    for line in lines:
        block = re.match(r"(?:\.L(BB\w+):|// %bb\.\d+:)(?:.*%loop\.(\S+))?", line)
        if block:
            label, source, header = block.group(1), block.group(2), None
        elif "=>" in line and "Inner Loop Header" in line:
            header = loops.setdefault(label, [source, [], []])
            header[0] = source
            at = 1
        elif found := re.search(r"in Loop: Header=(BB\w+)", line):
            header = loops.setdefault(found.group(1), [None, [], []])
            at = 1 if header[1] else 2
        elif (found := INSTRUCTION.match(line.split("//")[0])) and header:
            header[at].append((found.group(1), found.group(2).strip()))
    for source, body, before in loops.values():
        if source and body:
            yield source, body + before


def is_spill(op, operands):
    return op.startswith(("ld", "st")) and "[sp" in operands and re.search(r"\b[qvds]\d", operands)


def cycles(instructions, cpu):
    text = "".join(f"\t{op} {operands}\n" for op, operands in instructions if op[0] != "b" and not op.startswith(("cb", "tb")))
    run = ["llvm-mca-22", "-mtriple=aarch64", f"-mcpu={cpu}", f"-iterations={ITERATIONS}", "-instruction-info=0", "-resource-pressure=0"]
    out = subprocess.run(run, input=text, check=True, capture_output=True, text=True).stdout
    return int(re.search(r"Total Cycles:\s*(\d+)", out).group(1)) / ITERATIONS


def limit(count, cpu):
    """Cycles of so many fmla with nothing between them; 24 in a row hide the latency."""
    return cycles([("fmla", f"v{i}.4s, v30.4s, v31.4s") for i in range(24)], cpu) / 24 * count


def report(model, text, cpu):
    spills, shown = 0, set()
    print(f"{model}, {cpu}")
    print(f"{'fmla':>5} {'other':>5} {'spills':>6} {'cycles':>7} {'% of limit':>10}  kernel, loop")
    for name, lines in kernels(text):
        sums = set(re.findall(r"for (\w+) in \w+ .*reduce", "\n".join(lines)))
        loops = [(loop, body, sum(op == "fmla" for op, _ in body)) for loop, body in inner_loops(lines)]
        loops = [l for l in loops if l[2] >= FEWEST and re.sub(r"\.?\d*$", "", l[0]) in {re.sub(r"\d*$", "", name) for name in sums}]
        if not loops:
            continue
        spilled = sum(bool(is_spill(*i)) for _, body, _ in loops for i in body)
        spills += spilled
        loop, body, count = max(loops, key=lambda l: l[2])
        taken = cycles(body, cpu)
        line = f"{count:5d} {len(body) - count:5d} {spilled:6d} {taken:7.1f} {100 * limit(count, cpu) / taken:10.1f}  {re.sub(r'_[0-9]+$', '', name)}"
        if (line, loop) not in shown:
            print(f"{line} ({name}), {loop}")
        shown.add((line, loop))
    return spills


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+")
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("--target", action="append", help="default: cortex-a76 and neoverse-n1")
    parser.add_argument("--algorithm")
    args = parser.parse_args()
    spills = 0
    for model in args.models:
        for cpu in args.target or ["cortex-a76", "neoverse-n1"]:
            spills += report(model, assembly(args.tilewright, model, cpu, args.algorithm), cpu)
    if spills:
        sys.exit(f"{spills} vector loads and stores of the stack in multiply-add loops")


if __name__ == "__main__":
    main()
