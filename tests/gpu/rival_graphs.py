#!/usr/bin/env python3
"""The rivals of bench/gpu compute what onnxruntime does: small networks of the known families as functions of JAX and modules of PyTorch, on the processor.

    rival_graphs.py

Runs in .venv-train. Needs: numpy, onnx, onnxruntime, torch, jax.
"""
import pathlib
import subprocess
import sys
import tempfile
import types

import numpy as np
import onnxruntime
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from gpu.jax_graph import function_of  # noqa: E402
from gpu.rivals import distance, inputs_of  # noqa: E402
from gpu.torch_graph import TorchGraph  # noqa: E402

NETWORKS = ["small_bert", "small_dcgan", "small_dqn", "small_lstm", "small_mobilenet", "small_resnet"]   # the families of bench/gpu's known ones
TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
ALLOWED, ALLOWED_HALF, INDICES = 1e-5, 5e-3, 20


def torch_function(path):
    module = TorchGraph(path).eval()
    return lambda *inputs: [output.detach().numpy() for output in module(*map(torch.from_numpy, inputs))]


def main():
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "bench/networks", folder, "--small", *NETWORKS], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        for name in NETWORKS:
            path = pathlib.Path(folder) / f"{name}.onnx"
            session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
            given = inputs_of(types.SimpleNamespace(inputs=[types.SimpleNamespace(name=i.name, dims=i.shape, dtype=TYPES[i.type]) for i in session.get_inputs()]))
            inputs = [value if value.dtype == np.float32 else np.minimum(value, INDICES) for value in given.values()]
            want = session.run(None, dict(zip(given, inputs)))
            halves = [value.astype(np.float16) if value.dtype == np.float32 else value for value in inputs]
            for kind, function, values, allowed in (("PyTorch", torch_function(path), inputs, ALLOWED), ("XLA", function_of(path, False), inputs, ALLOWED),
                                                    ("XLA, f16", function_of(path, True), halves, ALLOWED_HALF)):
                apart = distance(want, function(*values))
                failures += not apart <= allowed
                print(f"{'ok  ' if apart <= allowed else 'FAIL'} {name:16} {kind:9} {apart:.1e} of the range apart, allowed {allowed:.0e}")
    print(f"{failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
