#!/usr/bin/env python3
"""Functions of a model (FunctionProto): attributes with and without defaults, of every type, given, left out and handed on through several levels,
in the bodies of If and Loop; names that meet; outputs that a body does not make. Against models written out by hand and run by onnxruntime or
onnx's reference evaluator, because `verify` reads functions as the compiler does.

    functions.py --tilewright BUILD/tilewright
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import AttributeProto, TensorProto, helper as h, numpy_helper
from onnx.reference import ReferenceEvaluator

F, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
HERE = h.make_opsetid("here", 1)
OPSETS = [h.make_opsetid("", 18)]
CASES = {}
X = np.array([-1, -2, 3], np.float32)


def case(name, functions, nodes, plain, feeds=None, constants=(), opsets=OPSETS):
    """plain: nodes without functions that mean the same, or the right value of y."""
    CASES[name] = functions, nodes, plain, feeds or {"x": X}, list(constants), opsets


def node(kind, inputs, outputs, domain="", **attributes):
    """An attribute given as Ref("a", kind) refers to the function's."""
    refs = {k: attributes.pop(k) for k, v in list(attributes.items()) if isinstance(v, Ref)}
    made = h.make_node(kind, inputs, outputs, domain=domain, **attributes)
    for name, ref in refs.items():
        made.attribute.append(AttributeProto(name=name, ref_attr_name=ref.name, type=ref.type))
    return made


class Ref:
    def __init__(self, name, kind):
        self.name, self.type = name, getattr(AttributeProto, kind)


def call(function, inputs, outputs, **attributes):
    return node(function, inputs, outputs, "here", **attributes)


def function(name, inputs, outputs, nodes, attributes=(), opsets=OPSETS, overload="", **defaults):
    made = h.make_function("here", name, inputs, outputs, nodes, [*opsets, HERE], attributes=list(attributes),
                           attribute_protos=[h.make_attribute(k, v) for k, v in defaults.items()])
    made.overload = overload
    return made


def graph(nodes, outputs, inputs=(), constants=()):
    given = [h.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
    return h.make_graph(nodes, "inner", given, [onnx.ValueInfoProto(name=o) for o in outputs], list(constants))


def add_cases():
    leaky = function("leaky", ["v"], ["w"], [node("LeakyRelu", ["v"], ["w"], alpha=Ref("a", "FLOAT"))], a=0.25)
    case("float", [leaky], [call("leaky", ["x"], ["t"]), call("leaky", ["t"], ["y"], a=0.5)],
         [node("LeakyRelu", ["x"], ["t"], alpha=0.25), node("LeakyRelu", ["t"], ["y"], alpha=0.5)])
    concat = function("pair", ["v"], ["w"], [node("Concat", ["v", "v"], ["w"], axis=Ref("at", "INT"))], at=1)
    rows = {"x": X.reshape(1, 3)}
    case("int", [concat], [call("pair", ["x"], ["t"]), call("pair", ["t"], ["y"], at=0)],
         [node("Concat", ["x", "x"], ["t"], axis=1), node("Concat", ["t", "t"], ["y"], axis=0)], rows)
    pad = function("padded", ["v", "p"], ["w"], [node("Pad", ["v", "p"], ["w"], mode=Ref("how", "STRING"))], how="edge")
    by = [numpy_helper.from_array(np.array([1, 2]), "p")]
    case("string", [pad], [call("padded", ["x", "p"], ["t"]), call("padded", ["t", "p"], ["y"], how="reflect")],
         [node("Pad", ["x", "p"], ["t"], mode="edge"), node("Pad", ["t", "p"], ["y"], mode="reflect")], constants=by)
    one, two = (numpy_helper.from_array(np.arange(n, n + 3, dtype=np.float32), "c") for n in (1, 5))
    shift = function("shift", ["v"], ["w"], [node("Constant", [], ["c"], value=Ref("by", "TENSOR")), node("Add", ["v", "c"], ["w"])], by=one)
    case("tensor", [shift], [call("shift", ["x"], ["t"]), call("shift", ["t"], ["y"], by=two)], np.array([1 + 5 - 1, 2 + 6 - 2, 3 + 7 + 3], np.float32))
    large = numpy_helper.from_array(np.arange(3000, dtype=np.float32), "c")   # which the loader cuts out of the file
    many = function("shift", ["v"], ["w"], [node("Constant", [], ["c"], value=Ref("by", "TENSOR")), node("ReduceSum", ["c"], ["s"], keepdims=0), node("Add", ["v", "s"], ["w"])], by=large)
    case("large_tensor", [many], [call("shift", ["x"], ["t"]), call("shift", ["t"], ["y"], by=one)], X + np.float32(3000 * 2999 / 2) + np.float32(6))
    turned = function("turned", ["v"], ["w"], [node("Transpose", ["v"], ["w"], perm=Ref("order", "INTS"))], order=[1, 0])
    case("ints", [turned], [call("turned", ["x"], ["t"]), call("turned", ["t"], ["y"], order=[0, 1])], X.reshape(3, 1), rows)
    listed = function("listed", ["v"], ["w"], [node("Constant", [], ["c"], value_floats=Ref("numbers", "FLOATS")), node("Mul", ["v", "c"], ["w"])], numbers=[1.0, 2.0, 3.0])
    case("floats", [listed], [call("listed", ["x"], ["t"]), call("listed", ["t"], ["y"], numbers=[0.5, 0.25, 2.0])], X * np.array([0.5, 0.5, 6], np.float32))
    rnn = function("cell", ["v", "w0", "r0"], ["z"], [node("RNN", ["v", "w0", "r0"], ["", "z"], hidden_size=2, activations=Ref("f", "STRINGS"))], f=["Relu"])
    weights = [numpy_helper.from_array(np.full(shape, 0.5, np.float32), name) for name, shape in (("a", (1, 2, 1)), ("b", (1, 2, 2)))]
    case("strings", [rnn], [call("cell", ["x", "a", "b"], ["s"]), call("cell", ["x", "a", "b"], ["t"], f=["Tanh"]), node("Add", ["s", "t"], ["y"])],
         [node("RNN", ["x", "a", "b"], ["", "s"], hidden_size=2, activations=["Relu"]), node("RNN", ["x", "a", "b"], ["", "t"], hidden_size=2, activations=["Tanh"]),
          node("Add", ["s", "t"], ["y"])], {"x": X.reshape(3, 1, 1)}, weights)
    # References that nobody gives a value: the operator's own default, and that of a function within
    bare = function("bare", ["v"], ["w"], [node("LeakyRelu", ["v"], ["w"], alpha=Ref("a", "FLOAT"))], ["a"])
    case("absent", [bare], [call("bare", ["x"], ["t"]), call("bare", ["t"], ["y"], a=0.5)], [node("LeakyRelu", ["x"], ["t"]), node("LeakyRelu", ["t"], ["y"], alpha=0.5)])
    passing = function("passing", ["v"], ["w"], [call("leaky", ["v"], ["w"], a=Ref("b", "FLOAT"))], ["b"])
    case("handed_on_absent", [leaky, passing], [call("passing", ["x"], ["t"]), call("passing", ["t"], ["y"], b=0.5)],
         [node("LeakyRelu", ["x"], ["t"], alpha=0.25), node("LeakyRelu", ["t"], ["y"], alpha=0.5)])
    deep = [leaky, function("mid", ["v"], ["w"], [call("leaky", ["v"], ["m"]), call("leaky", ["m"], ["w"], a=Ref("b", "FLOAT"))], b=0.75),
            function("top", ["v"], ["w"], [call("mid", ["v"], ["m"]), call("mid", ["m"], ["w"], b=Ref("c", "FLOAT"))], c=0.125)]
    alphas = [0.25, 0.75, 0.25, 0.125, 0.25, 0.75, 0.25, 2.0]
    case("three_levels", deep, [call("top", ["x"], ["t"]), call("top", ["t"], ["y"], c=2.0)],
         [node("LeakyRelu", ["x" if i == 0 else f"v{i}"], ["y" if i == 7 else f"v{i + 1}"], alpha=a) for i, a in enumerate(alphas)])
    # In bodies
    chosen = function("chosen", ["c", "v"], ["w"], [node("If", ["c"], ["w"], then_branch=graph([node("LeakyRelu", ["v"], ["p"], alpha=Ref("a", "FLOAT"))], ["p"]),
                                                         else_branch=graph([call("leaky", ["v"], ["q"], a=Ref("a", "FLOAT"))], ["q"]))], a=0.5)
    for truth in (True, False):
        feeds = {"c": np.array(truth), "x": X}
        case(f"if_{truth}", [leaky, chosen], [call("chosen", ["c", "x"], ["t"]), call("chosen", ["c", "t"], ["y"], a=0.25)],
             [node("LeakyRelu", ["x"], ["t"], alpha=0.5), node("LeakyRelu", ["t"], ["y"], alpha=0.25)], feeds)
    body = graph([node("LeakyRelu", ["s"], ["r"], alpha=Ref("a", "FLOAT"))], ["go", "r"], [("i", I64, []), ("go", BOOL, []), ("s", F, [3])])
    looped = function("looped", ["n", "v"], ["w"], [node("Loop", ["n", "", "v"], ["w"], body=body)], a=0.5)
    case("loop", [looped], [call("looped", ["n", "x"], ["t"]), call("looped", ["n", "t"], ["y"], a=0.25)],
         np.array([-1 / 8 / 64, -2 / 8 / 64, 3], np.float32), {"n": np.array(3), "x": X})
    # A body whose output is its input, a constant, or listed twice
    same = graph([node("Neg", ["s"], ["r"])], ["go", "r", "u"], [("i", I64, []), ("go", BOOL, []), ("s", F, [3]), ("u", F, [3])])
    kept = function("kept", ["n", "v"], ["w", "z"], [node("Loop", ["n", "", "v", "v"], ["w", "z"], body=same)])
    case("loop_passes_on", [kept], [call("kept", ["n", "x"], ["t", "s"]), node("Sub", ["t", "s"], ["y"])], X * -2, {"n": np.array(3), "x": X})
    through = function("through", ["v"], ["v", "w"], [node("Neg", ["v"], ["w"])])
    case("input_as_output", [through], [call("through", ["x"], ["a", "b"]), node("Sub", ["a", "b"], ["y"])], X * 2)
    branch = function("branch", ["c", "v"], ["w"], [node("If", ["c"], ["w"], then_branch=graph([], ["k"], constants=[numpy_helper.from_array(X * 5, "k")]),
                                                        else_branch=graph([node("Neg", ["v"], ["q"])], ["q"]))])
    case("branch_of_a_constant", [branch], [call("branch", ["c", "x"], ["y"])], X * 5, {"c": np.array(True), "x": X})
    # Graphs as attributes, whose names are the caller's
    default = graph([node("Constant", [], ["d0"], value_floats=[10.0, 10.0, 10.0])], ["d0"])
    either = function("either", ["c", "t"], ["w"], [node("Neg", ["t"], ["k"]), node("If", ["c"], ["m"], then_branch=Ref("body", "GRAPH"), else_branch=graph([node("Identity", ["k"], ["q"])], ["q"])),
                                                   node("Add", ["m", "k"], ["w"])], body=default)
    handed = graph([node("Mul", ["t", "k"], ["g"])], ["g"])
    case("graph", [either], [call("either", ["c", "x"], ["y"])], 10 - X, {"c": np.array(True), "x": X})
    case("graph_of_the_caller", [either], [node("Abs", ["x"], ["t"]), node("Add", ["x", "x"], ["k"]), call("either", ["c", "x"], ["y"], body=handed)],
         np.abs(X) * 2 * X - X, {"c": np.array(True), "x": X})
    # Names that meet those of the caller, and two functions of one name
    case("names", [leaky], [node("Neg", ["x"], ["v"]), call("leaky", ["x"], ["w"]), node("Add", ["v", "w"], ["y"])], np.where(X < 0, X / 4, X) - X)
    first, second = (function("over", ["v"], ["w"], [node("LeakyRelu", ["v"], ["w"], alpha=Ref("a", "FLOAT"))], overload=o, a=a) for o, a in (("one", 0.5), ("two", 0.125)))
    calls = [call("over", ["x"], ["t"]), call("over", ["t"], ["y"])]
    calls[0].overload, calls[1].overload = "one", "two"
    case("overloads", [first, second], calls, X * np.where(X < 0, 0.0625, 1).astype(np.float32))
    # A function of another opset than the model, as a library of functions has
    old = function("old", ["v"], ["w"], [node("LeakyRelu", ["v"], ["w"], alpha=Ref("a", "FLOAT"))], opsets=[h.make_opsetid("", 16)], a=0.25)
    case("older_opset", [old], [call("old", ["x"], ["y"])], np.where(X < 0, X / 4, X))


def model_of(nodes, feeds, constants, opsets, functions=()):
    given = [h.make_tensor_value_info(name, h.np_dtype_to_tensor_dtype(v.dtype), v.shape) for name, v in feeds.items()]
    made = h.make_graph(nodes, "functions", given, [h.make_tensor_value_info("y", F, None)], constants)
    return h.make_model(made, opset_imports=[*opsets, HERE], functions=functions, ir_version=10)


def right_value(plain, feeds, constants, opsets):
    if isinstance(plain, np.ndarray):
        return plain.astype(np.float32)
    model = model_of(plain, feeds, constants, opsets)
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)[0]
    except Exception:   # onnxruntime's own kinds of error share no other base
        return ReferenceEvaluator(model).run(None, feeds)[0]


def failure(tilewright, name, work):
    functions, nodes, plain, feeds, constants, opsets = CASES[name]
    onnx.save(model_of(nodes, feeds, constants, opsets, functions), work / "m.onnx")
    np.savez(work / "in.npz", **feeds)
    for command in (["compile", work / "m.onnx", "-t", "host", "-j", "1", "-o", work / "m.so"], ["run", work / "m.so", "--input", work / "in.npz", "--output-dir", work / "out"]):
        told = subprocess.run([tilewright, *command], capture_output=True, text=True)
        if told.returncode:
            lines = told.stderr.strip().splitlines()
            return f"{command[0]} ends with {told.returncode}: {next((line for line in lines if 'error' in line), '')[:250]}"
    got, want = np.load(work / "out" / "y.npy"), right_value(plain, feeds, constants, opsets)
    return "" if got.shape == want.shape and np.allclose(got, want, rtol=1e-6, atol=1e-7) else f"{got.tolist()} for {want.tolist()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    args = parser.parse_args()
    add_cases()
    failed = 0
    for name in CASES:
        with tempfile.TemporaryDirectory() as work:
            if wrong := failure(args.tilewright.resolve(), name, pathlib.Path(work)):
                failed += 1
                print(f"FAILED {name}: {wrong}", flush=True)
    print(f"{len(CASES)} models with functions, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
