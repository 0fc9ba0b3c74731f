#!/usr/bin/env python3
"""Operators of strings where a pointer has 4 bytes, in an emulator, and where it has 8: a C program gives a library texts and prints what it answers, which is
held against onnxruntime.

    strings.py --tilewright BUILD/tilewright
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, save_model

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/models"))
MACHINES = {"x86-64-v2": None, "armv7-generic": "armv7", "aarch64-generic": "aarch64"}
TEXTS = ["the Cat sat", "a dog, a cat", "", "l'été à la mer", "cat"]
WORDS = ["a", "cat", "dog"]
node = helper.make_node


def models():
    """name -> nodes from x, outputs with their element types, initializers."""
    text, number = TensorProto.STRING, TensorProto.INT64
    yield "tokens", [node("Tokenizer", ["x"], ["y"], domain="com.microsoft", mark=1, pad_value="#", separators=[" ", ","], mincharnum=1)], {"y": text}, {}
    yield "split", [node("StringSplit", ["x"], ["y", "n"])], {"y": text, "n": number}, {}
    yield "joined", [node("StringConcat", ["x", "tail"], ["j"]), node("Gather", ["j", "order"], ["y"])], {"y": text}, {"tail": np.array(["!", "?", "", "..", "-"], object), "order": np.array([4, 0, 2])}
    yield "lower", [node("StringNormalizer", ["x"], ["y"], case_change_action="LOWER", is_case_sensitive=1, locale="C")], {"y": text}, {}
    yield "labels", [node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_strings=WORDS, values_int64s=[3, 5, 7], default_int64=-1)], {"y": number}, {}
    yield "matched", [node("RegexFullMatch", ["x"], ["m"], pattern=".*[cC]at.*"), node("Where", ["m", "x", "none"], ["y"])], {"y": text}, {"none": np.array(["none"], object)}


def model(nodes, outputs, constants, count):
    weights = [helper.make_tensor(name, TensorProto.STRING, value.shape, [text.encode() for text in value]) if value.dtype == object else numpy_helper.from_array(value, name)
               for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.STRING, [count])],
                              [helper.make_value_info(name, helper.make_tensor_type_proto(kind, None)) for name, kind in outputs.items()], weights)
    domains = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=9)


def check_refusal(tilewright, work):
    """Runners of other machines take numbers alone."""
    path = work / "lower.onnx"
    save_model(model(*next(parts for name, *parts in models() if name == "lower"), len(TEXTS)), path)
    done = subprocess.run([tilewright, "compile", path, "-t", "armv7-generic", "--verify", "-o", work / "refused.so"], capture_output=True, text=True)
    if done.returncode == 3 and "'x' is of strings" in done.stderr and not (work / "refused.so").exists():
        return 0
    print(f"--verify for another machine: exit {done.returncode}, {done.stderr}", file=sys.stderr)
    return 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    args = parser.parse_args()
    wrong = runs = 0
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        commands = {}
        for target, machine in MACHINES.items():
            driver = work / f"driver_{target}"
            if machine is None:
                subprocess.run(["cc", ROOT / "tests/boards/strings_driver.c", "-o", driver, "-I", ROOT, "-ldl"], check=True)
                commands[target] = [driver]
                continue
            emulator, triple = {"armv7": ("qemu-arm", "arm-linux-gnueabihf"), "aarch64": ("qemu-aarch64", "aarch64-linux-gnu")}[machine]
            if not shutil.which(emulator) or subprocess.run([ROOT / "tests/cross_cc.sh", machine, ROOT / "tests/boards/strings_driver.c", driver, "-I", ROOT], env=os.environ).returncode:
                print(f"{target}: no emulator or C library here")
                continue
            commands[target] = [emulator, "-cpu", "max", "-L", f"/usr/{triple}", driver]
        for name, nodes, outputs, constants in models():
            for count in (len(TEXTS), "n"):
                path = work / f"{name}.onnx"
                save_model(model(nodes, outputs, constants, count), path)
                session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
                wanted = [str(element) for value in session.run(None, {"x": np.array(TEXTS, object)}) for element in value.reshape(-1)]
                for target, command in commands.items():
                    runs += 1
                    done = subprocess.run([args.tilewright, "compile", path, "-t", target, "-o", work / "m.so"], capture_output=True, text=True)
                    if done.returncode == 0:
                        done = subprocess.run([*command, work / "m.so", *TEXTS], capture_output=True, text=True)
                    if done.returncode or done.stdout.split("\n")[:-1] != wanted:
                        wrong += 1
                        print(f"{name}[{count}] on {target}: exit {done.returncode} {done.stderr}{done.stdout.splitlines()}, expected {wanted}")
        wrong += check_refusal(args.tilewright, work)
    print(f"{runs} runs, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
