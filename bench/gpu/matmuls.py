"""Products of matrices beside cuBLASLt (by PyTorch): large ones, those of BERT and ResNet-50 at batch 1, ragged ones. By the device's own time: of Tilewright
what its profile counts, of PyTorch events around a replay."""
import statistics
import time

import onnx
from onnx import TensorProto, helper

# rows, columns, depth
SHAPES = [(8192, 8192, 8192), (4096, 4096, 4096), (2048, 2048, 2048), (4096, 14336, 4096), (8192, 1024, 4096), (1024, 1024, 8192), (512, 4096, 1024), (16384, 512, 512),
          (128, 768, 768), (128, 3072, 768), (128, 768, 3072), (384, 768, 768), (384, 3072, 768), (3136, 64, 256), (784, 128, 512), (49, 2048, 512),
          (1000, 1000, 1000), (77, 768, 768), (333, 555, 777), (1, 4096, 4096), (16, 4096, 4096), (8, 1000, 2048), (2047, 129, 65), (4095, 4097, 63)]
DRY = [(64, 64, 64), (33, 40, 24)]
TYPES = {"f16": TensorProto.FLOAT16, "f32": TensorProto.FLOAT}


def write(path, dtype, rows, columns, depth):
    values = [helper.make_tensor_value_info(name, dtype, shape) for name, shape in (("a", [rows, depth]), ("b", [depth, columns]), ("y", [rows, columns]))]
    graph = helper.make_graph([helper.make_node("MatMul", ["a", "b"], ["y"])], "product", values[:2], values[2:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def ours(session, library):
    """Milliseconds of the kernels of a run."""
    profile = session.call("profile", library, "--seconds", "0.02" if session.dry else "0.2")
    return sum(call["ms"] for call in profile["calls"])


def cublas(kind, rows, columns, depth):
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    dtype = torch.float16 if kind == "f16" else torch.float32
    a, b = (torch.randn(shape, device="cuda", dtype=dtype) for shape in ((rows, depth), (depth, columns)))
    for _ in range(3):
        torch.matmul(a, b)
    times = []
    for _ in range(20):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        torch.matmul(a, b)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def run(session, end):
    found, missing = {}, []
    for rows, columns, depth in DRY if session.dry else SHAPES:
        for kind, dtype in TYPES.items():
            name = f"{rows}x{columns}x{depth} {kind}"
            if time.monotonic() > end:
                missing.append(name)
                continue
            path = session.out / "product.onnx"
            write(path, dtype, rows, columns, depth)
            library, _ = session.compile(path, "product")
            milliseconds = ours(session, library)
            found[name] = {"tilewright_ms": milliseconds, "cublas_ms": cublas(kind, rows, columns, depth), "tflops": 2e-9 * rows * columns * depth / milliseconds if milliseconds else None}
    return {"products": found, "no time for": missing}
