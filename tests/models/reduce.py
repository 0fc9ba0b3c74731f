#!/usr/bin/env python3
"""`tilewright reduce` keeps the failure that it was asked about: a model fails in two ways that end with the same exit status, and dims are bound before it is cut.

    reduce.py --tilewright BUILD/tilewright
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import onnx
from onnx import TensorProto, helper


def two_failures(path):
    """Unsupported twice: first an operator of a domain that nobody knows, then another of it; and a bound width."""
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="before"),
             helper.make_node("FirstOfNobody", ["a"], ["b"], name="wanted", domain="nobody"),
             helper.make_node("Relu", ["x"], ["c"], name="between"),
             helper.make_node("SecondOfNobody", ["c"], ["d"], name="other", domain="nobody"),
             helper.make_node("Relu", ["c"], ["e"], name="behind")]
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, "W"])
    graph = helper.make_graph(nodes, "two", [value("x")], [value("b"), value("d"), value("e")], value_info=[value("a"), value("c")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("nobody", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model, small = pathlib.Path(folder) / "two.onnx", pathlib.Path(folder) / "small.onnx"
        two_failures(model)
        done = subprocess.run([args.tilewright.resolve(), "reduce", model, "-o", small, "--dim", "W=8", "--json"], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"reduce: exit status {done.returncode}: {done.stdout}{done.stderr}")
        report, cut = json.loads(done.stdout), onnx.load(small)
        names = [node.name for node in cut.graph.node]
        width = cut.graph.input[0].type.tensor_type.shape.dim[1].dim_value
        print(f"{names}, width {width}: {report['failure']}")
        if names != ["wanted"] or width != 8 or "FirstOfNobody" not in report["failure"]:
            sys.exit("the failure drifted, or the dimension is not bound")
        done = subprocess.run([args.tilewright.resolve(), "reduce", model, "-o", small, "--dim", "H=8"], capture_output=True, text=True)
        if done.returncode != 1 or "has no dimension 'H'" not in done.stderr:
            sys.exit(f"an unknown dimension: exit status {done.returncode}: {done.stderr}")


if __name__ == "__main__":
    main()
