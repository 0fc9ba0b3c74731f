"""Models of ai.onnx.ml, of which the ONNX package has eight cases only: small ones with made-up parameters, and onnxruntime's outputs for them.
Where onnxruntime leaves the standard's own reference (scores of a linear classifier with one row for two classes) there is no case."""
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

ROWS, FEATURES = 9, 4


def floats(generator, *shape):
    return [float(value) for value in generator.standard_normal(int(np.prod(shape))).astype(np.float32)]


def model(op, inputs, outputs, **attributes):
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(op, names, [name for name, _ in outputs], domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph([node], op, [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape) for name, value in zip(names, inputs)],
                              [helper.make_tensor_value_info(name, dtype, None) for name, dtype in outputs])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 4 if op == "LabelEncoder" else 3)])


def tree(generator, depth, classes, tree_id, nodes, weights):
    """Adds a random tree to the lists; node ids in the order of making."""
    order = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    number = 0

    def grow(level):
        nonlocal number
        own, number = number, number + 1
        at = len(nodes["nodes_nodeids"])
        leaf = level == depth or (level > 1 and generator.random() < 0.2)
        entry = {"treeids": tree_id, "nodeids": own, "featureids": 0 if leaf else int(generator.integers(FEATURES)), "values": 0.0 if leaf else float(np.float32(generator.standard_normal())),
                 "modes": "LEAF" if leaf else order[generator.integers(6)], "truenodeids": 0, "falsenodeids": 0, "missing_value_tracks_true": int(generator.integers(2))}
        for key, value in entry.items():
            nodes["nodes_" + key].append(value)
        if leaf:
            for target in generator.permutation(classes)[:generator.integers(1, classes + 1)]:
                weights.append((tree_id, own, int(target), float(np.float32(generator.standard_normal()))))
        else:
            nodes["nodes_truenodeids"][at] = grow(level + 1)
            nodes["nodes_falsenodeids"][at] = grow(level + 1)
        return own

    grow(0)


def forest(generator, prefix, trees, classes):
    keys = ["treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true"]
    nodes, weights = {"nodes_" + key: [] for key in keys}, []
    for t in range(trees):
        tree(generator, 4, classes, t, nodes, weights)
    generator.shuffle(weights)
    columns = list(zip(*weights))
    return nodes | {f"{prefix}_{key}": list(column) for key, column in zip(["treeids", "nodeids", "ids", "weights"], columns)}


def features():
    """Operators on features."""
    generator = np.random.default_rng(1)
    x = generator.standard_normal((ROWS, FEATURES)).astype(np.float32)
    whole = generator.integers(-3, 4, (ROWS, FEATURES)).astype(np.int64)
    holes = x.copy()
    holes[::2, 1] = np.nan
    real = [("y", TensorProto.FLOAT)]
    for name, value in (("float", x), ("double", x.astype(np.float64)), ("int64", whole), ("int32", whole.astype(np.int32))):
        yield f"scaler_{name}", [value], model("Scaler", [value], real, offset=floats(generator, FEATURES), scale=floats(generator, FEATURES))
    yield "scaler_one", [x], model("Scaler", [x], real, offset=[0.5], scale=[2.0])
    for norm in ("MAX", "L1", "L2"):
        yield f"normalizer_{norm.lower()}", [x], model("Normalizer", [x], real, norm=norm)
    yield "binarizer", [x], model("Binarizer", [x], real, threshold=0.25)
    yield "imputer_nan", [holes], model("Imputer", [holes], real, imputed_value_floats=floats(generator, FEATURES), replaced_value_float=float("nan"))
    yield "imputer_int", [whole], model("Imputer", [whole], [("y", TensorProto.INT64)], imputed_value_int64s=[7], replaced_value_int64=0)
    parts = [x, x[:, :1], whole.astype(np.float32)]
    yield "feature_vectorizer", parts, model("FeatureVectorizer", parts, real, inputdimensions=[4, 1, 4])
    yield "one_hot_encoder", [whole], model("OneHotEncoder", [whole], real, cats_int64s=[-3, 2, 0, 1], zeros=1)
    index = np.array([[3, 0]], np.int64)
    yield "array_feature_extractor", [x, index], model("ArrayFeatureExtractor", [x, index], real)
    yield "label_encoder_int", [whole], model("LabelEncoder", [whole], real, keys_int64s=[-3, 0, 2], values_floats=[0.5, 1.5, 2.5], default_float=-1.0)
    yield "label_encoder_nan", [holes], model("LabelEncoder", [holes], [("y", TensorProto.INT64)], keys_floats=[float("nan"), float(x[1, 0])], values_int64s=[7, 8], default_int64=9)


def models():
    """Linear models, support vector machines, trees."""
    generator = np.random.default_rng(2)
    x = generator.standard_normal((ROWS, FEATURES)).astype(np.float32)
    x[3, 2] = np.nan
    plain = np.nan_to_num(x)
    both = [("label", TensorProto.INT64), ("scores", TensorProto.FLOAT)]
    for transform in ("NONE", "SOFTMAX", "LOGISTIC"):
        lower = transform.lower()
        yield f"linear_classifier_{lower}", [plain], model("LinearClassifier", [plain], both, coefficients=floats(generator, 3, FEATURES), intercepts=floats(generator, 3),
                                                           classlabels_ints=[5, 3, 9], post_transform=transform)
        yield f"linear_regressor_{lower}", [plain], model("LinearRegressor", [plain], both[1:], coefficients=floats(generator, 2, FEATURES), intercepts=floats(generator, 2), targets=2,
                                                          post_transform=transform)
        yield f"tree_ensemble_classifier_{lower}", [x], model("TreeEnsembleClassifier", [x], both, classlabels_int64s=[4, 1, 2], post_transform=transform, **forest(generator, "class", 5, 3))
    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        yield f"tree_ensemble_regressor_{aggregate.lower()}", [x], model("TreeEnsembleRegressor", [x], both[1:], n_targets=2, aggregate_function=aggregate,
                                                                         base_values=floats(generator, 2), **forest(generator, "target", 6, 2))
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        shared = {"kernel_type": kernel, "kernel_params": [0.25, 0.5, 3.0]}
        yield f"svm_regressor_{kernel.lower()}", [plain], model("SVMRegressor", [plain], both[1:], n_supports=6, support_vectors=floats(generator, 6, FEATURES), rho=[0.3],
                                                                coefficients=floats(generator, 6), **shared)
        yield f"svm_classifier_{kernel.lower()}", [plain], model("SVMClassifier", [plain], both, classlabels_ints=[2, 0, 7], vectors_per_class=[2, 3, 1],
                                                                 support_vectors=floats(generator, 6, FEATURES), coefficients=floats(generator, 2, 6), rho=floats(generator, 3), **shared)
        per = [2, 3, 1] if kernel in ("LINEAR", "RBF") else [4, 2]
        pairs = len(per) * (len(per) - 1) // 2
        yield f"svm_classifier_{kernel.lower()}_probabilities", [plain], model("SVMClassifier", [plain], both, classlabels_ints=[2, 0, 7][:len(per)], vectors_per_class=per,
                                                                               support_vectors=floats(generator, 6, FEATURES), coefficients=floats(generator, len(per) - 1, 6),
                                                                               rho=floats(generator, pairs), prob_a=[-1.5, -0.75, -2.0][:pairs], prob_b=[0.1, -0.2, 0.3][:pairs], **shared)
    yield "svm_regressor_one_class", [plain], model("SVMRegressor", [plain], both[1:], n_supports=6, support_vectors=floats(generator, 6, FEATURES), rho=[0.3], one_class=1,
                                                    coefficients=floats(generator, 6), kernel_type="RBF", kernel_params=[0.25, 0.5, 3.0])


def ml_cases():
    """(name, model, inputs, outputs)"""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    for name, inputs, proto in (*features(), *models()):
        session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
        outputs = session.run(None, {value.name: array for value, array in zip(session.get_inputs(), inputs)})
        for value, array in zip(proto.graph.output, outputs):   # the standard wants a shape, at least a rank
            value.CopyFrom(helper.make_tensor_value_info(value.name, helper.np_dtype_to_tensor_dtype(array.dtype), [None] * array.ndim))
        onnx.checker.check_model(proto)
        yield f"test_{name}", proto, inputs, outputs
