"""The suite's models with free sizes."""
import copy

import onnx

ALL = range(-9, 9)   # axes; negative ones count from the end
FIRST, SECOND, LAST = [0], [1], [-1]
HEADS = {3: [-1], 4: [1, -1]}   # by rank

# Axes of inputs whose extents belong to the operator as its attributes do, and which models that free others keep: weights, channels, heads,
# features, coordinates, and lists with an entry an axis or an output.
OF_THE_OPERATOR = {
    "AffineGrid": {0: ALL, 1: ALL},
    "Attention": {**{i: HEADS for i in (0, 1, 2, 4, 5)}, 3: {3: [], 4: SECOND}},
    "BatchNormalization": {0: SECOND, 1: ALL, 2: ALL, 3: ALL, 4: ALL},
    "CausalConvWithState": {0: SECOND, 1: ALL, 2: ALL, 3: ALL},
    "CenterCropPad": {1: ALL},
    "Col2Im": {1: ALL, 2: ALL},
    "ConstantOfShape": {0: ALL},
    "DFT": {0: ALL},   # the length of a transform decides its steps
    "DepthToSpace": {0: SECOND},
    "Expand": {1: ALL},
    "GatherND": {1: LAST},
    "GridSample": {0: SECOND, 1: LAST},
    "GroupNormalization": {0: SECOND, 1: ALL, 2: ALL},
    "LinearAttention": {**{i: HEADS for i in range(6)}, 3: [1, 2, 3]},
    "MaxUnpool": {2: ALL},
    "Pad": {1: ALL, 3: ALL},
    "RandomUniform": {0: ALL},
    "Reshape": {1: ALL},
    "Resize": {1: ALL, 2: ALL, 3: ALL},
    "RotaryEmbedding": {0: HEADS, 1: LAST, 2: LAST},
    "Slice": {1: ALL, 2: ALL, 3: ALL, 4: ALL},
    "SpaceToDepth": {0: [2, 3]},   # of which whole blocks are taken
    "Split": {1: ALL},
    "SplitToSequence": {0: ALL, 1: ALL},   # how many tensors there are
    "Squeeze": {1: ALL},
    "Tile": {1: ALL},
    "TopK": {1: ALL},
    "Unsqueeze": {1: ALL},
    "Upsample": {1: ALL},
    "DeformConv": {0: SECOND, 1: ALL, 2: SECOND, 3: ALL, 4: SECOND},
    **{name: {0: SECOND, 1: ALL, 2: ALL} for name in ("Conv", "ConvInteger", "ConvTranspose")},
    "QLinearConv": {0: SECOND, 3: ALL, 8: ALL},
    **{name: {0: LAST, 1: ALL, 2: ALL, 3: ALL, 5: LAST, 6: LAST, 7: ALL} for name in ("RNN", "GRU", "LSTM")},
    **{"Reduce" + name: {1: ALL} for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")},
    "FeatureVectorizer": {i: LAST for i in range(3)},
    **{name: {0: LAST} for name in ("Imputer", "LinearClassifier", "LinearRegressor", "Normalizer", "Scaler", "SVMClassifier",
                                    "SVMRegressor", "TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor")},
}


def all_graphs(graph):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g] * attribute.HasField("g") + list(attribute.graphs):
                yield from all_graphs(inner)


def kept(graphs, name, rank):
    """The axes of an input that stay as they are."""
    axes = set()
    for node in (node for graph in graphs for node in graph.node):
        for index, used in enumerate(node.input):
            rule = OF_THE_OPERATOR.get(node.op_type, {}).get(index, []) if used == name else []
            axes |= {axis % rank for axis in (rule.get(rank, []) if isinstance(rule, dict) else rule) if -rank <= axis < rank}
    return axes


def symbolic(model, like, type_of):
    """Dims of the inputs are symbols, equal ones the same, as in a model that relates them; those of 0 and 1, which say what broadcasts, stay, and
    those of OF_THE_OPERATOR. Nothing else in the model says a shape. `like`: the model that is asked what inputs are for (an operator whose
    function body `model` is). `type_of`: the tensor type of an input's type. None where no input has such a dim."""
    model = copy.deepcopy(model)
    initializers = {tensor.name for tensor in model.graph.initializer}
    graphs = [graph for asked in (model, like) for graph in all_graphs(asked.graph)]
    changed = False
    for value in model.graph.input:
        dims = type_of(value.type).shape.dim
        stay = kept(graphs, value.name, len(dims)) if value.name not in initializers else range(len(dims))
        for axis, dim in enumerate(dims):
            if axis not in stay and not dim.dim_param and dim.dim_value > 1:
                dim.dim_param, changed = f"n{dim.dim_value}", True
    for value in model.graph.output:
        if value.type.WhichOneof("value") == "tensor_type":
            for dim in value.type.tensor_type.shape.dim:
                dim.ClearField("value")
    del model.graph.value_info[:]
    return model if changed else None
