"""One exported model: how it is made, and the inputs to run it on."""
import dataclasses
import random
import typing
import warnings

import numpy as np

EXPORTS = {}


@dataclasses.dataclass
class Export:
    name: str
    kind: str      # the exporter, or the package that the model is of
    make: typing.Callable
    tolerance: float
    flags: tuple   # of compile, where sizes are free

    def write(self, path):
        """Writes the ONNX file. Gives the inputs of some runs; sizes are bound to the first one's."""
        import torch
        torch.manual_seed(5)
        torch.backends.mha.set_fastpath_enabled(False)   # no ONNX operator stands for it
        np.random.seed(5)
        random.seed(5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.make(path)


def export(kind, tolerance=2e-4, flags=()):
    """tolerance: of an output's range."""
    def register(function):
        EXPORTS[function.__name__] = Export(function.__name__, kind, function, tolerance, tuple(flags))
        return function
    return register


def by_torch(path, module, make, free, sizes, outputs=1, dynamo=False, opset=17):
    """make(**sizes): the inputs by name. free: input -> {axis: name}. sizes: those of the export first."""
    import torch
    module.eval()
    runs = [make(**given) for given in sizes]
    names = list(runs[0])
    made = [f"y{i}" for i in range(outputs)]
    common = {"input_names": names, "output_names": made, "opset_version": max(opset, 18) if dynamo else opset}
    with torch.no_grad():
        if dynamo:
            shapes = tuple({axis: torch.export.Dim.DYNAMIC for axis in free.get(name, {})} for name in names)
            torch.onnx.export(module, tuple(runs[0].values()), str(path), dynamo=True, dynamic_shapes=shapes, external_data=False, verbose=False, **common)
        else:
            torch.onnx.export(module, tuple(runs[0].values()), str(path), dynamo=False, dynamic_axes=free, **common)
    return [{name: value.numpy() for name, value in run.items()} for run in runs]
