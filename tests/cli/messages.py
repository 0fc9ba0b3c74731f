#!/usr/bin/env python3
"""What the commands say, on models made here: names of dimensions, numbers of free sizes, names of libraries, and wrong input of every kind.

    messages.py --tilewright BUILD/tilewright
"""
import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CASES = []


def case(function):
    CASES.append(function)
    return function


def tensor(name, *dims, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, dims)


def constant(name, *dims, value=1.0):
    return numpy_helper.from_array(np.full(dims, value, np.float32), name)


def model(path, nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


class Folder:
    """Models of these tests, and commands run beside them."""

    def __init__(self, program, path):
        self.program, self.path = program, path

    def file(self, name):
        return self.path / name

    def write(self, name, text):
        self.file(name).write_text(text)
        return name

    def run(self, command):
        done = subprocess.run([str(self.program), *shlex.split(command)], cwd=self.path, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def good(self, command, *holds):
        code, out, err = self.run(command)
        assert code == 0, f"{command}: {code}\n{out}{err}"
        for text in holds:
            assert text in out, f"{command}: no '{text}' in\n{out}"
        return out

    def refused(self, command, status, *holds, lacks=()):
        code, out, err = self.run(command)
        assert code == status, f"{command}: status {code}, not {status}\n{out}{err}"
        for text in holds:
            assert text in out + err, f"{command}: no '{text}' in\n{out}{err}"
        for text in lacks:
            assert text not in out + err, f"{command}: '{text}' in\n{out}{err}"

    def made(self, *names):
        return [name for name in names if self.file(name).exists()]

    def convolution(self):
        return model(self.file("conv.onnx"), [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["y"])],
                     [tensor("x", "a.b.0", 3, 32, None)], [tensor("y", None, None, None, None)], [constant("w", 8, 3, 3, 3)]).name

    def named(self):
        return model(self.file("named.onnx"), [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])],
                     [tensor("x", 1, 3, 32, "W")], [tensor("y", 1, 8, 32, "W")], [constant("w", 8, 3, 3, 3, value=0.1)]).name

    def plain(self):
        return model(self.file("plain.onnx"), [helper.make_node("Relu", ["x"], ["y"])], [tensor("x", 4)], [tensor("y", 4)]).name


@case
def names_of_dimensions_are_the_models(f):
    name = f.convolution()
    f.good(f"inspect {name}", "f32[a.b.0, 3, 32, x[3]]", "symbol  a.b.0", "symbol  x[3]")
    f.good(f"compile {name} -o c.so")
    f.good("inspect c.so", "f32[a.b.0, 3, 32, x[3]]", "symbol  a.b.0")
    assert "the size 'a.b.0'" in f.file("c.h").read_text() and "int64_t x_3;" in f.file("c.h").read_text()
    outputs = {f.good(f"run c.so --random 1 --dim {batch}=2 --dim {width}=40") for batch in ("a.b.0", "a_b_0", "x[0]") for width in ("x[3]", "x_3")}
    assert len(outputs) == 1 and "f32[2, 8, 32, 40]" in outputs.pop()
    for width in ("x[3]", "x_3"):
        f.good(f"compile {name} -o d.so --dim {width}=40 --dim x[0]=2")
        f.good("run d.so --random 1", "f32[2, 8, 32, 40]")
        f.good(f"verify c.so {name} --dim {width}=40 --dim a.b.0=1")
        f.good(f"profile {name} --dim {width}=40 --dim x[0]=1 --runs 2")
        f.good(f"space {name} --dim {width}=40")
        f.good(f"inspect {name} --dim {width}=40", "f32[a.b.0, 3, 32, 40]")
    f.refused("run c.so --random 1", 1, "the dimension 'a.b.0' is free: give --dim a.b.0=N", "'x[3]=N'")
    for command in ("run c.so --random 1", f"compile {name} -o d.so", f"space {name}", f"inspect {name}", f"lock {name}", "inspect c.so"):
        f.refused(f"{command} --dim width=1", 1, "no free dimension 'width'", "free dimensions: a.b.0 (x[0]), x[3]")
        f.refused(f"{command} --dim x[1]=3", 1, "'x[1]' is 3: it is not free")
        f.refused(f"{command} --dim x[4]=3", 1, "input 'x' has x[0] to x[3]")
        f.refused(f"{command} --dim x[0]=3 --dim a.b.0=2", 1, "'a.b.0' twice" if command.endswith(("c.so", "--random 1")) else "'a.b.0' is given twice")


@case
def sizes_with_calls_of_their_own_have_the_models_names(f):
    f.good(f"compile {f.convolution()} -o s.so --dim x[3]=1..64 --specialize a.b.0=1,x[3]=32")
    f.good("inspect s.so", "fast    a.b.0=1 x[3]=32", "symbol  x[3] of 1 to 64")
    f.good("verify s.so conv.onnx --dim a.b.0=1 --dim x[3]=32")
    f.good("verify s.so conv.onnx --dim a.b.0=2 --dim x[3]=33")
    f.refused("run s.so --random 1 --dim a.b.0=1 --dim x[3]=65", 1, "x[3]")
    f.refused("compile conv.onnx -o e.so --dim x[3]=32 --specialize x_3=32", 1, "no free dimension 'x_3'", "free dimensions: a.b.0 (x[0])")
    f.refused("compile conv.onnx -o e.so --specialize a.b.0=1,x[0]=2", 1, "--specialize gives 'a.b.0' twice")
    f.good("compile conv.onnx -o e.so --dim x_3=0..64")   # may be empty, which its symbol says and its name does not
    f.good("inspect e.so", "f32[a.b.0, 3, 32, x[3]]", "symbol  x[3] of 0 to 64")
    f.good("profile e.so --dim x[3]=5 --dim x[0]=1 --runs 1")


@case
def identifiers_that_several_dimensions_have_are_asked_about(f):
    model(f.file("alike.onnx"), [helper.make_node("Relu", ["x"], ["y"])], [tensor("x", "a.b", "a-b", "a_b")], [tensor("y", None, None, None)])
    f.good("inspect alike.onnx --dim a_b=5", "f32[a.b, a-b, 5]")
    f.good("inspect alike.onnx --dim a.b=5", "f32[5, a-b, a_b]")
    model(f.file("two.onnx"), [helper.make_node("Relu", ["x"], ["y"])], [tensor("x", "a.b", "a-b")], [tensor("y", None, None)])
    f.refused("inspect two.onnx --dim a_b=5", 1, "'a_b' may be any of several dimensions", "a.b (x[0]), a-b (x[1])")


@case
def a_lock_is_found_whatever_its_dimensions_are_called(f):
    name = f.convolution()
    f.good(f"lock {name} --dim x_3=32 --dim x[0]=1")
    f.good(f"compile {name} --frozen -o l.so --dim x[3]=32 --dim a.b.0=1")
    f.file("tilewright.lock").unlink()


@case
def numbers_of_free_sizes_are_functions_with_an_example(f):
    name = f.convolution()
    # 8 x 32 x W outputs of 27 products each
    f.good(f"inspect {name}", "MACs = a.b.0 * x[3] * 6912", "MACs 1.55 M at a.b.0=1, x[3]=224")
    told = json.loads(f.good(f"inspect {name} --json"))
    assert told["macs"] == 224 * 6912 and told["sizes"] == {"a.b.0": 1, "x[3]": 224} and told["symbols"] == ["a.b.0", "x[3]"], told
    assert json.loads(f.good(f"inspect {name} --dim x[3]=10 --dim x[0]=2 --json"))["macs"] == 20 * 6912
    # an arena that all sizes decide about: two convolutions, the first one's result in between
    model(f.file("two.onnx"), [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Softmax", ["c"], ["s"]),
                               helper.make_node("Conv", ["s", "v"], ["y"], pads=[1, 1, 1, 1])],
          [tensor("x", "N", 3, 32, "W")], [tensor("y", None, None, None, None)], [constant("w", 8, 3, 3, 3), constant("v", 8, 8, 3, 3)])
    out = f.good("compile two.onnx -o t.so", " at N=1, W=224", "in bytes: ")
    function = next(line.split("in bytes: ")[1] for line in out.splitlines() if "in bytes: " in line)
    told = json.loads(f.good("compile two.onnx -o t.so --json"))
    assert told["sizes"] == {"N": 1, "W": 224} and told["arena"] == function, told
    arena = eval(function, {"min": min, "max": max}, {"N": 1, "W": 224})
    assert told["arena_bytes"] == arena >= 8 * 32 * 224 * 4, (told["arena_bytes"], function)
    assert told["naive_arena_bytes"] >= told["arena_bytes"]
    at = eval(function, {"min": min, "max": max}, {"N": 2, "W": 320})
    f.good("inspect t.so --dim N=2 --dim W=320", f"arena {at / 1e6:.2f} MB at N=2, W=320")
    # the limits of a dimension hold for the example
    assert json.loads(f.good("compile two.onnx -o t.so --dim W=8..64 --json"))["sizes"] == {"N": 1, "W": 64}


@case
def what_regions_hold_is_counted(f):
    def branch(name, value):
        return helper.make_graph([helper.make_node("MatMul", ["x", name + "k"], [name + "o"])], name, [],
                                 [helper.make_tensor_value_info(name + "o", TensorProto.FLOAT, None)], [constant(name + "k", 64, 16, value=value)])
    model(f.file("if.onnx"), [helper.make_node("If", ["c"], ["y"], then_branch=branch("t", 1.0), else_branch=branch("e", 2.0))],
          [tensor("x", 4, 64), tensor("c", dtype=TensorProto.BOOL)], [tensor("y", 4, 16)])
    told = json.loads(f.good("inspect if.onnx --json"))
    assert told["parameters"] == 2 * 64 * 16 and told["macs"] == 4 * 64 * 16, told


@case
def symbols_of_a_library_follow_its_file(f):
    name = f.plain()
    f.good(f"compile {name} -o face-v1.2.so")
    assert "tw_face_v1_2_query(" in f.file("face-v1.2.h").read_text()
    f.good("inspect face-v1.2.so", "face_v1_2 for host")
    f.good("run face-v1.2.so --random 1")
    f.good(f"compile {name} -o other.so --name mine")
    assert "tw_mine_query(" in f.file("other.h").read_text()
    f.good(f"compile {name}")
    assert "tw_plain_query(" in f.file("plain.h").read_text()


@case
def libraries_that_do_not_run_here(f):
    name = f.plain()
    f.good(f"compile {name} -t cortex-a72 -o arm.so")
    for command in ("run arm.so --random 1", "bench arm.so"):
        f.refused(command, 3, "'arm.so' is for AArch64 (target cortex-a72), and this machine is x86-64", "compile the model for this machine", lacks=["No such file"])
    f.refused(f"verify arm.so {name} --on no-such-emulator", 3, "'no-such-emulator' is not on PATH")
    f.good(f"compile {name} -o here.so")
    f.refused(f"run {f.write('note.txt', 'text')} --random 1", 1, "note.txt: not an ONNX (protobuf) file")
    f.refused(f"run {f.write('empty.so', '')} --random 1", 1, "empty.so: the file is empty")
    f.refused("run none.so --random 1", 5, "cannot read 'none.so'")
    f.refused("run . --random 1", 5, "cannot read '.'")


@case
def advice_is_about_what_is_wrong(f):
    # 3 and 4 do not fit whatever N is
    model(f.file("clash.onnx"), [helper.make_node("Add", ["x", "w"], ["y"])], [tensor("x", "N", 3)], [tensor("y", None, None)], [constant("w", 4)])
    code, out, err = f.run("compile clash.onnx -o clash.so")
    assert code == 1 and "bind" not in err, err
    # pads of a free number: only that dimension counts
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Gather", ["s", "one"], ["n"]), helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=0),
             helper.make_node("ReduceSum", ["v", "n"], ["y"])]
    model(f.file("axes.onnx"), nodes, [tensor("x", "batch", "odd name"), tensor("k", 1, dtype=TensorProto.INT64)], [tensor("y", None, None)],
          [numpy_helper.from_array(np.array([1], np.int64), "one")])
    f.refused("compile axes.onnx -o a.so", 3, "it is odd name", "bind the free dimension: --dim 'odd name=N'", lacks=["batch=N"])


@case
def targets_that_are_wrong(f):
    for triple, cpu, like in (("x86_64", "skylake-avx51", "skylake-avx512"), ("aarch64", "cortex-a7x", "cortex-a7"), ("riscv64", "sifive-u75", "sifive-u7")):
        path = f.write("t.yaml", f"triple: {triple}-linux-gnu\ncpu: {cpu}\n")
        f.refused(f"target {path}", 1, f"t.yaml:2:6: unknown cpu '{cpu}'", like)
    path = f.write("t.yaml", "triple: x86_64-linux-gnu\nfeatures: [aes, avx2]\n")
    f.good(f"target {path}", "avx2")
    path = f.write("t.yaml", "triple: x86_64-linux-gnu\nfeatures: [avx512v]\n")
    f.refused(f"target {path}", 1, "t.yaml:2:12: unknown feature 'avx512v' for x86_64", "avx512vl")
    for text, place in (("triple: [a]\n", "t.yaml:1:9"), ("triple: x86_64-linux-gnu\ncores: {}\n", "t.yaml:2:8"), ("triple: x86_64-linux-gnu\ncaches: 4\n", "t.yaml:2:9"),
                        ("triple: x86_64-linux-gnu\ncors: 4\n", "accepted keys: name, triple")):
        f.refused(f"target {f.write('t.yaml', text)}", 1, place)
    for text in ("", "- 1\n"):
        f.refused(f"target {f.write('t.yaml', text)}", 1, "the target must be a map")
    f.refused("target .", 1, "unknown target '.'")


@case
def words_that_are_wrong(f):
    name = f.plain()
    emits = "so, obj, graph, groups, kernels, schedules, scheduled, llvm, asm"
    f.good("compile --help", emits)
    f.refused(f"compile {name} --emit exe", 1, "--emit 'exe'", emits)
    for text in ("text", ""):
        f.refused(f"compile {f.write('m.onnx', text)}", 1, "m.onnx")
        f.refused(f"inspect {f.write('m.onnx', text)}", 1, "m.onnx")
    for command in ("compile", "inspect", "space", "lock"):
        f.refused(f"{command} none.onnx", 5, "none.onnx")
        f.refused(f"{command} .", 5, "'.'")
    f.good(f"compile {name} -o p.so")
    np.save(f.file("wrong.npy"), np.zeros(5, np.float32))
    f.refused("run p.so --input x=wrong.npy", 1, "wrong.npy", "the shape is [5]", "the model takes f32[4]")
    np.save(f.file("wrong.npy"), np.zeros(4, np.int32))
    f.refused("run p.so --input x=wrong.npy", 1, "holds i32, not f32")
    f.refused("run p.so --input z=wrong.npy", 1, "no input 'z'", "x")
    f.file("x.raw").write_bytes(bytes(16))
    f.good("run p.so --input x=x.raw", "y: f32[")
    f.file("x.raw").write_bytes(bytes(15))
    f.refused("run p.so --input x=x.raw", 1, "'x.raw' has 15 bytes, and input 'x', f32[4], takes 16")
    f.refused("run p.so --input x=none.npy", 5, "none.npy")
    f.refused(f"run p.so --input x={f.write('t.npy', 'text')}", 1, "t.npy")


@case
def both_commands_end_alike(f):
    wrong = model(f.file("kind.onnx"), [helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor("x", 4, 3)], [tensor("y", None, None)], [constant("w", 4, 4)]).name
    statuses = {f.run(f"compile {wrong} -o k.so")[0], f.run(f"inspect {wrong}")[0], f.run(f"inspect {wrong} --json")[0]}
    assert statuses == {1}, statuses


@case
def per_node_suspects_nothing_where_all_is_well(f):
    name = f.plain()
    f.good(f"compile {name} -o p.so")
    out = f.good(f"verify p.so {name} --per-node", "ok   y", "gives the reference's result")
    assert "suspect" not in out, out


def free_reshape(f):
    """What is refused as long as two sizes are free, and behind it a product that fits with none of a few."""
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Gather", ["s", "one"], ["n"]), helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=0),
             helper.make_node("ReduceSum", ["v", "n"], ["r"]), helper.make_node("Gather", ["s", "zero"], ["m"]), helper.make_node("ReduceSum", ["v", "m"], ["q"]),
             helper.make_node("Add", ["r", "q"], ["t"]), helper.make_node("MatMul", ["t", "w"], ["y"])]
    return model(f.file("behind.onnx"), nodes, [tensor("x", "rows", "columns"), tensor("k", 1, dtype=TensorProto.INT64)], [tensor("y", None, None)],
                 [numpy_helper.from_array(np.array([value], np.int64), name) for name, value in (("zero", 0), ("one", 1))] + [constant("w", 7, 2)]).name


@case
def inspect_shows_what_it_found_of_what_cannot_be_compiled(f):
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Gather", ["s", "one"], ["n"]), helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=0),
             helper.make_node("ReduceSum", ["v", "n"], ["y"])]
    name = model(f.file("axes.onnx"), nodes, [tensor("x", "batch", "width"), tensor("k", 1, dtype=TensorProto.INT64)], [tensor("y", None, None)],
                 [numpy_helper.from_array(np.array([1], np.int64), "one")]).name
    f.refused(f"inspect {name}", 3, "input   x: f32[batch, width]", "output  y: f32[", "1  TopK", "it cannot be compiled as it is", "ReduceSum (1)", "do: ", "--dim width=N",
              "can be compiled with sizes such as --dim width=1", lacks=["--dim batch=", "breaks the ONNX standard"])
    told = json.loads(f.run(f"inspect {name} --json")[1])
    assert told["inputs"][0] == {"name": "x", "type": "f32[batch, width]"} and list(told["bind"]) == ["width"] and told["gaps"][0]["op"] == "ReduceSum" and not told["gaps_once_bound"], told
    # problems that stand behind others are told at once
    f.refused(f"inspect {free_reshape(f)}", 3, "input   x: f32[rows, columns]", "ReduceSum", "once its sizes are bound", "MatMul", "sizes to bind: --dim")


@case
def a_size_of_inputs_obeys_dim(f):
    name = f.convolution()
    form = "--inputs '{x: {size: [64, 48], dtype: u8, layout: nhwc, scale: 0.0039}}'"
    f.refused(f"inspect {name} {form}", 1, "leave 'size' out, or bind both with --dim")
    f.good(f"inspect {f.named()} {form} --dim W=40", "input   x: u8[1, 64, 48, 3]", "output  y: f32[1, 8, 32, 40]")
    f.good(f"compile named.onnx {form} --dim W=40 -o n.so")
    f.good("verify n.so named.onnx")


@case
def near_names_are_told(f):
    name = f.convolution()
    f.refused(f"compile {name} --treads 3", 2, "'--treads': did you mean '--threads'?")
    f.refused(f"compile {name} --optimise size", 2, "did you mean '--optimize'?")
    f.refused(f"compil {name}", 2, "'compil': did you mean 'compile'?")
    assert json.loads(f.run(f"compile {name} --treads 3 --json")[1])["error"][0]["notes"] == ["'--treads': did you mean '--threads'?"]
    f.refused(f"compile {name} -t cortex-a54", 1, "unknown target 'cortex-a54'", "did you mean 'cortex-a5", "'tilewright targets' lists all", lacks=["vdla", "znver"])
    f.refused(f"compile {name} -t nothing-like-it", 1, "the nearest: ")
    f.refused(f"inspect {model(f.file('b.onnx'), [helper.make_node('Relu', ['x'], ['y'])], [tensor('x', 'batch', 'sequence')], [tensor('y', None, None)]).name} --dim bach=1", 1,
              "no free dimension 'bach'", "did you mean 'batch'?")
    path = f.write("t.yaml", "triple: x86_64-linux-gnu\nrates: {clock: 2.2GHz}\n")
    f.refused(f"target {path}", 1, "t.yaml:2:16", "clock must be a number above 0, without a unit", "did you mean 'clock: 2.2e+09'?")
    f.refused(f"target {f.write('t.yaml', 'triple: x86_64-linux-gnu' + chr(10) + 'cors: 4' + chr(10))}", 1, "did you mean 'cores'?", "accepted keys: name, triple")


def chain(f, layers, size=16):
    """Convolutions of a free batch, of seeded weights."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.normal(size=(size, size, 3, 3)).astype(np.float32) / size, f"w{i}") for i in range(layers)]
    nodes = [helper.make_node("Conv", [f"c{i}" if i else "x", f"w{i}"], [f"c{i + 1}"], name=f"layer{i}", pads=[1, 1, 1, 1]) for i in range(layers)]
    return model(f.file("chain.onnx"), nodes, [tensor("x", "N", size, 16, "W")], [tensor(f"c{layers}", "N", size, 16, "W")], weights).name


@case
def quantize_fails_before_it_calibrates(f):
    name = chain(f, 3)
    for command, status, text in ((f"{name} --random 2", 1, "the dimension 'N' is free"), (f"{name} --random 2 --dim N=1 --dim W=16 -o none/q.onnx", 5, "there is no folder 'none'"),
                                  (f"{name} --random 2 --dim M=1", 1, "no free dimension 'M'"), (f"{name} --data none --dim N=1", 5, "none"),
                                  (f"{name} --random 2 --max-error soon", 1, "soon")):
        code, out, err = f.run(f"quantize {command}")
        assert code == status and text in err and "calibrate" not in err and "balance" not in err, f"{command}: {code}\n{err}"
    f.file("data").mkdir()
    np.save(f.file("data") / "a.npy", np.zeros((1, 16, 16, 16), np.float32))
    f.file("data/b.npy").write_bytes(b"no array")
    code, out, err = f.run(f"quantize {name} --data data --dim N=1 --dim W=16")
    assert code == 5 or code == 1 and "b.npy" in err and "calibrate" not in err, err
    assert not f.made("chain_int8.onnx")


@case
def quantize_says_what_it_costs_and_gains(f):
    name = chain(f, 4)
    out = f.good(f"quantize {name} --random 2 --dim N=1 --dim W=16 --layers -o q.onnx", "4 of 4 layers in integers", "times as fast here: ", "on one thread")
    assert sum("layer" in line and "(Conv)" in line for line in out.splitlines()) == 4, out
    # sizes are bound in what is written, its output's too
    written = onnx.load(f.file("q.onnx"))
    for value in (written.graph.input[0], written.graph.output[0]):
        assert [dim.dim_value for dim in value.type.tensor_type.shape.dim] == [1, 16, 16, 16], value
    f.good("inspect q.onnx", "x: f32[1, 16, 16, 16]", "everything in it can be compiled")
    told = json.loads(f.good(f"quantize {name} --random 2 --dim N=1 --dim W=16 -o q.onnx --json"))
    assert told["floats_ms"] > 0 and told["integers_ms"] > 0 and abs(told["speed_up"] * told["integers_ms"] - told["floats_ms"]) < 1e-6, told
    # every layer has its row, those that were not measured alone too
    out = f.good(f"quantize {name} --random 2 --dim N=1 --dim W=16 --max-error {0.95 * told['error']} -o q.onnx", "left in floats")
    assert sum("layer" in line and "(Conv)" in line for line in out.splitlines()) == 4, out


@case
def quantize_warns_of_what_is_of_little_use(f):
    # one value takes all steps of the range, and the outputs are of the others
    limits = [numpy_helper.from_array(np.float32(value), name) for name, value in (("low", -0.01), ("high", 0.01))]
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Clip", ["c", "low", "high"], ["y"])]
    name = model(f.file("wild.onnx"), nodes, [tensor("x", 1, 16, 16, 16)], [tensor("y", 1, 16, 16, 16)], [constant("w", 16, 16, 1, 1), *limits]).name
    x = np.random.default_rng(1).normal(size=(1, 16, 16, 16)).astype(np.float32) * 1e-3
    x[0, 0, 0, 0] = 1000
    f.file("wild").mkdir()
    np.save(f.file("wild") / "x.npy", x)
    code, out, err = f.run(f"quantize {name} --data wild --plain -o w.onnx")
    assert code == 0 and "warning: the error is " in err and all(flag in err for flag in ("--layers", "--max-error", "--plain", "--method")), err
    told = json.loads(f.good(f"quantize {name} --data wild --plain -o w.onnx --json"))
    assert told["error"] > 0.2 and told["warnings"], told


@case
def run_takes_and_writes_pictures_and_keeps_inputs(f):
    name = model(f.file("image.onnx"), [helper.make_node("Identity", ["x"], ["y"])], [tensor("x", 1, 3, "H", "W")], [tensor("y", 1, 3, "H", "W")]).name
    f.good(f"compile {name} -o i.so")
    x = (np.arange(3 * 4 * 6).reshape(1, 3, 4, 6) * 3 / 255).astype(np.float32)
    np.save(f.file("x.npy"), x)
    f.good("run i.so --input x=x.npy --picture y=p.png", "y  -> p.png")
    assert f.file("p.png").read_bytes().startswith(b"\x89PNG")
    # and back again
    f.good("run i.so --input x=p.png --dim H=4 --dim W=6 --inputs '{x: {scale: 0.00392156862745098}}' --output-dir out")
    assert np.abs(np.load(f.file("out/y.npy")) - x).max() < 1e-6
    f.good(f"run {name} --input x=p.png --dim H=8 --dim W=12 --picture y=q.jpg --pixels '{{y: {{scale: 1}}}}'", "q.jpg")
    assert f.file("q.jpg").read_bytes().startswith(b"\xff\xd8")
    f.refused("run i.so --input x=p.png", 1, "height and width that are known (--dim)")
    f.refused("run i.so --input x=x.npy --picture y=p.bmp", 1, "ends with .png or .jpg")
    f.refused("run i.so --input x=x.npy --picture z=p.png", 1, "no output 'z'", "its outputs are y")
    f.refused("run i.so --input x=p.png --dim H=4 --dim W=6 --picture y=p.png", 1, "which is read")
    f.good("run i.so --random 3 --dim H=2 --dim W=2 --save-inputs kept --output-dir out", "x  -> kept/x.npy")
    assert (np.load(f.file("kept/x.npy")) == np.load(f.file("out/y.npy"))).all() and np.load(f.file("kept/x.npy")).shape == (1, 3, 2, 2)


@case
def quantized_rounding_is_of_all_that_choose_kernels(f):
    name = f.plain()
    for command in ("tune", "lock", "space", "compile"):
        f.refused(f"{command} {name} --quantized-rounding up", 1, "--quantized-rounding 'up': one of standard, onnxruntime")
    f.good(f"space {name} --quantized-rounding onnxruntime", "relu")


@case
def what_must_fail_fails_before_tuning(f):
    name = f.plain()
    def early(command, status, *holds):
        began = time.monotonic()
        f.refused(command, status, *holds)
        assert time.monotonic() - began < 60, command
        assert not f.made("p.so", "p.h", "p.log"), command
    early(f"compile {name} -o p.so --tune 10m --log p.log -t cortex-a72", 3, "is for aarch64, and kernels are measured on this machine")
    text = f.write("text.db", "no log")
    early(f"compile {name} -o p.so --tune 10m --log {text}", 5, "text.db")
    early(f"tune {name} --prove --time 10m --log {text}", 5, "text.db")
    # indices that are made up are 0 and 1, and the second row is not there: no run, no proof
    row = model(f.file("row.onnx"), [helper.make_node("Gather", ["w", "i"], ["y"])], [tensor("i", 64, dtype=TensorProto.INT64)], [tensor("y", 64, 4)], [constant("w", 1, 4)]).name
    early(f"compile {row} -o p.so --tune 10m --log l.db", 1, "index")
    early(f"tune {row} --prove --time 10m --log l.db", 1, "index")


@case
def free_sizes_are_tuned_and_proved_at_those_of_the_example(f):
    name = f.convolution()
    code, out, err = f.run(f"compile {name} -o c.so --tune 6s --log l.db")
    assert code == 0 and "compiled and tuned" in out and "at a.b.0=1, x[3]=224" in err, out + err
    assert f.made("c.so", "c.h") == ["c.so", "c.h"]
    f.good(f"verify c.so {name} --dim a.b.0=2 --dim x[3]=40")
    # weights that are apart belong to the library that stays
    f.good(f"compile {name} -o w.so --weights w.bin --tune 6s --log l.db --dim x[3]=40 --dim a.b.0=1")
    f.good(f"verify w.so {name}")
    assert "network: " in f.good(f"tune {name} --trials 3 --prove --log l.db")


@case
def what_became_of_kernels_is_said_in_one_vocabulary(f):
    words = ("default kept after", "better point found", "taken from the log", "not tried")
    name = model(f.file("two.onnx"), [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Softmax", ["c"], ["y"])],
                 [tensor("x", 1, 8, 16, 16)], [tensor("y", 1, 8, 16, 16)], [constant("w", 8, 8, 3, 3)]).name
    f.refused(f"compile {name} -o t.so --log none.db", 5, "none.db")
    out = f.good(f"tune {name} --trials 12 --log l.db", "of the time", "schedule\n", "could still be won")
    assert any(word in out for word in words) and "others cost more" not in out, out
    told = [json.loads(line) for line in f.good(f"tune {name} --trials 2 --log l.db --json").splitlines()][-1]
    shares = told["kernels"]
    assert sum(kind["count"] for kind in shares.values()) == len(told["tasks"]) and abs(sum(kind["share"] for kind in shares.values()) - 1) < 1e-6, shares
    assert {task["became"] for task in told["tasks"]} == {kind for kind, of in shares.items() if of["count"]} and 0 < told["least_seconds"] <= told["network_seconds"], told
    compiled = json.loads(f.good(f"compile {name} -o t.so --log l.db --json"))["kernel_reports"]
    for kernel in compiled:
        assert kernel["became"] in ("from-log", "default-kept", "not-tried"), kernel
        assert (kernel["schedule"] == "tuned") == (kernel["became"] == "from-log"), kernel
    # a lock keeps it
    f.good(f"lock {name} --log l.db")
    frozen = json.loads(f.good(f"compile {name} -o f.so --frozen --json"))["kernel_reports"]
    told_of = lambda reports: [(kernel["became"], kernel.get("trials")) for kernel in reports]
    assert told_of(frozen) == told_of(compiled), (frozen, compiled)
    summary = f.good(f"compile {name} -o t.so --log l.db")
    assert any(word in summary for word in words) and "%" in summary, summary
    # the log names kernels; records of another chip are not taken, and that is said
    f.good("log show --log l.db", "conv 8x16x16 -> 8x16x16 3x3")
    assert {key["name"] for key in json.loads(f.good("log show --log l.db --json"))["keys"]} == {task["name"] for task in told["tasks"]}
    f.good(f"tune {name} -t x86-64-v2 --log l.db --trials 2", "not taken: 'l.db'", "of another chip", "measured on")
    code, out, err = f.run(f"compile {name} -t znver2 --log l.db -o z.so")
    assert code == 0 and "'l.db'" in err and "of another chip" in err, err
    # kernels whose code is the same have not changed
    f.good(f"compile {name} -o a.so")
    f.good("compare t.so a.so", " equal")
    f.good(f"compile {name} -o b.so")
    assert "changed" not in f.good("compare a.so b.so"), "equal libraries"


@case
def what_is_written_is_written_last_and_together(f):
    name = f.plain()
    f.write("b.yaml", "budget: {artifact_bytes: 1}\n")
    f.refused(f"compile {name} -o p.so --budget b.yaml --depfile p.d --with-runner", 7, "nothing is written")
    f.refused(f"compile {name} -o p.so --dim N=3 --depfile p.d", 1, "no free dimension 'N'")
    for flags, text in (("--max-error 1e-3 --accuracy-data none", "'none'"), ("--verify --data none", "none"), ("-t cortex-a72 --verify --on no-such-emulator", "'no-such-emulator' is not on PATH")):
        code, _, err = f.run(f"compile {name} -o p.so {flags}")
        assert code in (3, 5) and text in err and "codegen" not in err, err
    f.file("data").mkdir()
    np.save(f.file("data") / "x.npy", np.zeros(5, np.float32))
    for flags in ("--max-error 1e-3 --accuracy-data data", "--verify --data data"):
        code, _, err = f.run(f"compile {name} -o p.so {flags}")
        assert code == 1 and "the shape is [5]" in err and "codegen" not in err, err
    assert not f.made("p.so", "p.h", "p.d", "p.run")
    # what was there stays as it was, but for one that may be taken for within its budget
    f.good(f"compile {name} -o p.so --depfile p.d --with-runner --weights p.weights")
    assert len(f.made("p.so", "p.h", "p.d", "p.run", "p.weights")) == 5
    before = f.file("p.so").read_bytes()
    f.refused(f"compile {name} -o p.so --max-error 1e-3 --accuracy-data none", 5, "none")
    f.refused(f"compile {name} -o p.so --dim N=3 --depfile p.d", 1, "no free dimension 'N'")
    assert f.file("p.so").read_bytes() == before and len(f.made("p.h", "p.d", "p.run", "p.weights")) == 4
    f.refused(f"compile {name} -o p.so --budget b.yaml", 7, "nothing is written, and there is no p.so")
    assert not f.made("p.so", "p.h")
    assert not [file.name for file in f.path.iterdir() if file.name.startswith(".")]


@case
def the_version_is_for_programs_too(f):
    assert json.loads(f.good("--version --json"))["abi"] == 1
    assert json.loads(f.good("--json --version"))["tilewright"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=lambda text: pathlib.Path(text).resolve(), required=True)
    parser.add_argument("--only")
    args = parser.parse_args()
    failed = 0
    for test in CASES:
        if args.only and args.only not in test.__name__:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(Folder(args.tilewright, pathlib.Path(folder)))
                print("ok  ", test.__name__, flush=True)
            except AssertionError as e:
                failed += 1
                print("OFF ", test.__name__, "\n", e, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
