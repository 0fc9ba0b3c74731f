#!/usr/bin/env python3
"""Estimates the multiply-add loops of ARM kernels with llvm-mca, where no such machine is at hand, and checks that they do not spill.

    mca.py --tilewright BUILD/tilewright [--target cortex-a76 --target neoverse-n1] [--algorithm direct] MODEL.onnx ...
    mca.py --tilewright BUILD/tilewright --short [--target ...]

Per kernel, its innermost loop with the most multiply-adds: which and how many, other instructions, LLVM's cycles for one iteration, and
percent of the limit: the cycles of the same multiply-adds alone, independent of each other, by the same model. LLVM's models are borrowed in
places (cortex-a76 has the A57's, one fmla a cycle where the processor does two), so percentages say more than cycles. Exit code 1 if a loop
with at least 4 multiply-adds loads or stores vectors on the stack. --short takes layers of its own, in bf16, f16 and bytes, on the targets
that have instructions for them. Needs llvm-mca-22 (package llvm-22, which llvm-22-dev brings); --short needs the package onnx.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ITERATIONS = 200
FEWEST = 4   # multiply-adds of a loop worth looking at
INDEPENDENT = 12   # in a row, which hide the latency
INSTRUCTION = re.compile(r"^\t([a-z][\w.]*)\s*(.*)$")
# Multiply-adds, and operands of the {i}th of some that do not wait for each other
PRODUCTS = {"fmla": "v{i}.4s, v30.4s, v31.4s", "mla": "v{i}.4s, v30.4s, v31.4s", "vfma.f32": "q{i}, q14, q15", "vmla.f32": "q{i}, q14, q15",
            "vmla.i32": "q{i}, q14, q15", "vmlal.s16": "q{i}, d30, d31", "bfdot": "v{i}.4s, v30.8h, v31.8h", "bfmmla": "v{i}.4s, v30.8h, v31.8h",
            "fmlal": "v{i}.4s, v30.4h, v31.4h", "fmlal2": "v{i}.4s, v30.4h, v31.4h"}
PRODUCTS |= {name: "v{i}.4s, v30.16b, v31.16b" for name in ("sdot", "udot", "usdot", "smmla", "ummla", "usmmla")}
# LLVM has no model of the 32-bit cores that the descriptions are of
MODELS = {"armv7-generic": ("armv7", "cortex-a57"), "cortex-a7": ("armv7", "cortex-a57"), "aarch64-generic": ("aarch64", "cortex-a53")}


def assembly(tilewright, model, target, options):
    command = [tilewright, "compile", model, "-t", target, "--emit", "asm", *options]
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
        block = re.match(r"(?:\.L(BB\w+):|(?://|@) %bb\.\d+:)(?:.*%loop\.(\S+))?", line)
        if block:
            label, source, header = block.group(1), block.group(2), None
        elif "=>" in line and "Inner Loop Header" in line:
            header = loops.setdefault(label, [source, [], []])
            header[0] = source
            at = 1
        elif found := re.search(r"in Loop: Header=(BB\w+)", line):
            header = loops.setdefault(found.group(1), [None, [], []])
            at = 1 if header[1] else 2
        elif (found := INSTRUCTION.match(re.split("//|@", line)[0])) and header:
            header[at].append((found.group(1), found.group(2).strip()))
    for source, body, before in loops.values():
        if source and body:
            yield source, body + before


def is_spill(op, operands):
    return op.startswith(("ld", "st", "vld", "vst")) and "[sp" in operands and re.search(r"\b[qvds]\d", operands)


def is_branch(op):
    return op in ("b", "bl", "bx") or op.startswith(("b.", "cb", "tb")) or re.fullmatch(r"b(eq|ne|lt|le|gt|ge|lo|hi|hs|ls|mi|pl)", op)


def cycles(instructions, target):
    """Of an iteration; none: LLVM has no model of that processor."""
    triple, cpu = MODELS.get(target, ("aarch64", target))
    text = "".join(f"\t{op} {operands}\n" for op, operands in instructions if not is_branch(op))
    run = ["llvm-mca-22", f"-mtriple={triple}", f"-mcpu={cpu}", f"-mattr={ATTRIBUTES[triple]}", f"-iterations={ITERATIONS}", "-instruction-info=0", "-resource-pressure=0"]
    done = subprocess.run(run, input=text, capture_output=True, text=True)
    if done.returncode:
        if "scheduling" in done.stderr:
            return None
        sys.exit(f"llvm-mca: {done.stderr}")
    return int(re.search(r"Total Cycles:\s*(\d+)", done.stdout).group(1)) / ITERATIONS


ATTRIBUTES = {"aarch64": "+bf16,+i8mm,+dotprod,+fp16fml", "armv7": "+neon,+vfp4"}


def share_of_limit(body, target):
    """Cycles of an iteration, and the share of its multiply-adds alone."""
    taken = cycles(body, target)
    if taken is None:
        return None
    count = {op: sum(other == op for other, _ in body) for op in PRODUCTS}
    least = sum(n * cycles([(op, PRODUCTS[op].format(i=i)) for i in range(INDEPENDENT)], target) / INDEPENDENT for op, n in count.items() if n)
    return taken, least / taken


def report(model, text, cpu):
    spills, shown = 0, set()
    print(f"{model}, {cpu}")
    print(f"{'products':>18} {'other':>5} {'spills':>6} {'cycles':>7} {'% of limit':>10}  kernel, loop")
    for name, lines in kernels(text):
        sums = set(re.findall(r"for (\w+) in \w+ .*reduce", "\n".join(lines)))
        loops = [(loop, body, sum(op in PRODUCTS for op, _ in body)) for loop, body in inner_loops(lines)]
        loops = [l for l in loops if l[2] >= FEWEST and re.sub(r"\.?\d*$", "", l[0]) in {re.sub(r"\d*$", "", name) for name in sums}]
        if not loops:
            continue
        spilled = sum(bool(is_spill(*i)) for _, body, _ in loops for i in body)
        spills += spilled
        loop, body, count = max(loops, key=lambda l: l[2])
        share = share_of_limit(body, cpu)
        which = "+".join(sorted({op for op, _ in body} & PRODUCTS.keys()))
        estimate = f"{share[0]:7.1f} {100 * share[1]:10.1f}" if share else f"{'no model':>18}"
        line = f"{f'{count} {which}':>18} {len(body) - count:5d} {spilled:6d} {estimate}  {re.sub(r'_[0-9]+$', '', name)}"
        if (line, loop) not in shown:
            print(f"{line} ({name}), {loop}")
        shown.add((line, loop))
    return spills


def short_layers(folder):
    """(model, options, what it needs) of a product and two convolutions in short types."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def save(name, nodes, kind, x, y, y_kind, constants):
        graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", kind, x)], [helper.make_tensor_value_info("y", y_kind, y)],
                                  [numpy_helper.from_array(value, key) for key, value in constants.items()])
        path = folder / f"{name}.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        return path

    def floats(name, kind, dtype):
        weights = lambda *shape: np.ones(shape, dtype)
        yield save(f"product_{name}", [helper.make_node("MatMul", ["x", "w"], ["y"])], kind, [96, 256], [96, 192], kind, {"w": weights(256, 192)})
        nodes = [helper.make_node("Conv", ["x", "w0"], ["a"]), helper.make_node("Conv", ["a", "w1"], ["b"], pads=[1] * 4), helper.make_node("Conv", ["b", "w2"], ["y"])]
        yield save(f"convolutions_{name}", nodes, kind, [1, 4, 28, 28], [1, 96, 28, 28], kind,
                   {"w0": weights(64, 4, 1, 1), "w1": weights(64, 64, 3, 3), "w2": weights(96, 64, 1, 1)})

    def integers():
        weights = lambda *shape: np.ones(shape, np.int8)
        yield save("product_int8", [helper.make_node("MatMulInteger", ["x", "w", "zero"], ["y"])], TensorProto.UINT8, [96, 256], [96, 192], TensorProto.INT32,
                   {"w": weights(256, 192), "zero": np.array(128, np.uint8)})
        def node(x, w, y):
            return helper.make_node("QLinearConv", [x, "s", "zero", w, "s", "none", "s", "zero"], [y], pads=[1] * 4 if w == "w1" else [0] * 4)
        yield save("convolutions_int8", [node("x", "w0", "a"), node("a", "w1", "b"), node("b", "w2", "y")], TensorProto.UINT8, [1, 4, 28, 28], [1, 96, 28, 28], TensorProto.UINT8,
                   {"w0": weights(64, 4, 1, 1), "w1": weights(64, 64, 3, 3), "w2": weights(96, 64, 1, 1), "s": np.array(0.5, np.float32),
                    "zero": np.array(128, np.uint8), "none": np.array(0, np.int8)})

    return ([(model, ["--precision", "bf16"], "bf16") for model in floats("bf16", TensorProto.FLOAT, np.float32)] +
            [(model, [], "fp16fml") for model in floats("f16", TensorProto.FLOAT16, np.float16)] + [(model, [], "neon") for model in integers()])


SHORT_TARGETS = ["armv7-generic", "aarch64-generic", "cortex-a55", "cortex-a76", "neoverse-n1", "neoverse-v1", "neoverse-v2", "cortex-x2", "apple-m1"]


def report_short(tilewright, targets):
    spills = 0
    with tempfile.TemporaryDirectory() as folder:
        for model, options, feature in short_layers(pathlib.Path(folder)):
            for target in targets or SHORT_TARGETS:
                described = subprocess.run([tilewright, "target", target], check=True, capture_output=True, text=True).stdout
                if re.search(rf"^features: .*\b{feature}\b", described, re.M):
                    spills += report(model.stem, assembly(tilewright, model, target, options), target)
    return spills


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("--target", action="append", help="default: cortex-a76 and neoverse-n1")
    parser.add_argument("--algorithm")
    args = parser.parse_args()
    if bool(args.models) == args.short:
        parser.error("give models or --short")
    spills = report_short(args.tilewright, args.target) if args.short else 0
    for model in args.models:
        for cpu in args.target or ["cortex-a76", "neoverse-n1"]:
            spills += report(model, assembly(args.tilewright, model, cpu, ["--algorithm", args.algorithm] if args.algorithm else []), cpu)
    if spills:
        sys.exit(f"{spills} vector loads and stores of the stack in multiply-add loops")


if __name__ == "__main__":
    main()
