"""Networks of the size that microcontrollers run, with seeded weights."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def keyword_network(channels=64, blocks=4):
    """A depthwise-separable network for keywords, of the shape of MLPerf Tiny's DS-CNN: 49 frames of 10 numbers, 12 words."""
    random = np.random.default_rng(7)
    nodes, weights = [], []

    def constant(name, *shape):
        fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else shape[0]
        values = random.normal(0, np.sqrt(2 / fan_in) if len(shape) > 1 else 0.1, shape).astype(np.float32)
        weights.append(numpy_helper.from_array(values, name))
        return name

    def convolution(value, name, out, taken, kernel, **attributes):
        nodes.append(helper.make_node("Conv", [value, constant(f"{name}_w", out, taken, *kernel), constant(f"{name}_b", out)],
                                      [f"{name}_sum"], name=name, kernel_shape=kernel, **attributes))
        nodes.append(helper.make_node("Relu", [f"{name}_sum"], [f"{name}_out"]))
        return f"{name}_out"

    value = convolution("frames", "first", channels, 1, [10, 4], strides=[2, 2], pads=[5, 1, 5, 1])
    for block in range(blocks):
        value = convolution(value, f"depth{block}", channels, 1, [3, 3], pads=[1, 1, 1, 1], group=channels)
        value = convolution(value, f"point{block}", channels, channels, [1, 1])
    nodes.append(helper.make_node("GlobalAveragePool", [value], ["mean"]))
    nodes.append(helper.make_node("Flatten", ["mean"], ["flat"]))
    nodes.append(helper.make_node("Gemm", ["flat", constant("words_w", 12, channels), constant("words_b", 12)], ["sums"], transB=1))
    nodes.append(helper.make_node("Softmax", ["sums"], ["words"], axis=1))
    graph = helper.make_graph(nodes, "keywords", [helper.make_tensor_value_info("frames", TensorProto.FLOAT, [1, 1, 49, 10])],
                              [helper.make_tensor_value_info("words", TensorProto.FLOAT, [1, 12])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def counted_by_data():
    """A model whose output's size the data decide."""
    graph = helper.make_graph([helper.make_node("NonZero", ["x"], ["y"])], "nonzero",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
                              [helper.make_tensor_value_info("y", TensorProto.INT64, [1, "n"])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def thirteenth():
    """The thirteenth element of five rows, which are to be three or more long."""
    nodes = [helper.make_node("Reshape", ["x", "all"], ["flat"]), helper.make_node("Gather", ["flat", "place"], ["y"])]
    constants = [numpy_helper.from_array(np.array([-1]), "all"), numpy_helper.from_array(np.array([12]), "place")]
    graph = helper.make_graph(nodes, "thirteenth", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, "n"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def save(model, path):
    onnx.checker.check_model(model)
    onnx.save(model, path)
