#!/usr/bin/env python3
"""compile --depfile: whatever the files of a model are called, Make and Ninja read the rule as these names and run nothing, or
the compile refuses them.

    depfiles.py [--tilewright BUILD/tilewright]
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import onnx
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PLAIN = ["w.bin", "a b", "a#b", "a$b", "$(touch pwned) a", "a:b", "a%b", "a@b", "a,b+c", "-w", "a~", "(1) a", "a(b)c", "{a}", "w!", "é.bin",
         " w", "a  b", "$$", "#", "export", "include"]
HOSTILE = ["w\n\ttouch pwned\nx: ", "w\ttouch pwned", "w\n", "w;touch pwned", "w ;touch pwned", "a=b", "SHELL=touch pwned", "a|b", "a&b", "a*b",
           "a?b", "[ab]", "a\\", "a\\b", "a\\ b", "\\#", "a\rb", "a\x7fb", "a\x01b", "'a'", '"a"', "`touch pwned`", "<a>", "a^b", "~root", "a ",
           "a:", "lib(member)", "a\\\n b"]


def model_with(folder, name):
    (folder / name).write_bytes(bytes(8))
    weight = TensorProto(name="w", dims=[2], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    entry = weight.external_data.add()
    entry.key, entry.value = "location", name
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "m.onnx").write_bytes(model.SerializeToString())


def made(folder, *words):
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="surrogateescape")


def make_reads(folder, target, names):
    """What is wrong with how Make reads the rule: without the file it must miss this very name, and with it nothing."""
    (folder / "Makefile").write_text(".SUFFIXES:\nMAKEFLAGS += -r\nnone:\n\t@echo none\ninclude m.d\n")
    done = made(folder, "make", target)
    if done.returncode:
        return f"make: {done.stderr}"
    for name in names:
        (folder / name).rename(folder / "kept-aside")
        said = made(folder, "make", target).stderr
        (folder / "kept-aside").rename(folder / name)
        if f"No rule to make target '{name}', needed by '{target}'." not in said:
            return f"make misses something else than {name!r}: {said}"
    return None


def ninja_reads(folder, names):
    for log in (".ninja_log", ".ninja_deps"):
        (folder / log).unlink(missing_ok=True)
    (folder / "build.ninja").write_text("rule r\n  command = cp m.d copy.d\n  depfile = copy.d\n  deps = gcc\nbuild m.so m.h: r\n")
    done = made(folder, "ninja", "m.so")
    if done.returncode:
        return f"ninja: {done.stdout}{done.stderr}"
    read = [line[4:] for line in made(folder, "ninja", "-t", "deps", "m.so").stdout.split("\n")[1:] if line]
    return None if set(names) <= set(read) else f"ninja reads {read}"


def problem_of(tilewright, name):
    """None: the rule is right, or the name is refused; else what is wrong. And whether it was refused."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model_with(folder, name)
        done = made(folder, tilewright, "compile", "m.onnx", "-o", "m.so", "--depfile", "m.d")
        if done.returncode:
            left = [f for f in ("m.so", "m.h", "m.d") if (folder / f).exists()]
            words = "--depfile" in done.stderr or "external" in done.stderr
            return (None if words and not left else f"{done.stderr} left {left}"), True
        wrong = make_reads(folder, "m.so", ["m.onnx", name]) or ninja_reads(folder, ["m.onnx", name])
        if (folder / "pwned").exists():
            wrong = f"a command ran: {(folder / 'm.d').read_text()}"
        return wrong, False


def target_problem(tilewright, name):
    """Of a library that is called so."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model_with(folder, "w.bin")
        done = made(folder, tilewright, "compile", "m.onnx", "-o", f"{name}.so", "--depfile", "m.d", "--name", "m")
        if done.returncode:
            return (None if "--depfile" in done.stderr else done.stderr), True
        return make_reads(folder, f"{name}.so", ["m.onnx", "w.bin"]), False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", default=ROOT / "build/release/tilewright", type=pathlib.Path)
    tilewright = parser.parse_args().tilewright.resolve()
    problems, refused = [], 0
    for name in PLAIN + HOSTILE:
        wrong, was_refused = problem_of(tilewright, name)
        refused += was_refused
        if not wrong and was_refused and name in PLAIN:
            wrong = "refused"
        if wrong:
            problems.append(f"{name!r}: {wrong}")
    for name in ("a b", "a#b", "a$b", "a:b", "a%b", "a;b", "a=b", "a\tb", "a\nb", "(1)"):
        wrong, _ = target_problem(tilewright, name)
        if wrong:
            problems.append(f"library {name!r}: {wrong}")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"depfiles: {len(PLAIN + HOSTILE)} names, {refused} of them refused, {len(problems)} not as they should be")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
