"""The known networks beside PyTorch, eager and compiled with max-autotune, and beside XLA, through JAX. All have the same weights, run in one process, in
turns, and take their inputs from the processor's memory and bring their outputs back there."""
import os
import random
import statistics
import sys
import time

import numpy as np

from gpu.session import ROOT

sys.path.insert(0, str(ROOT / "runtime"))
WORST = 2e-2   # of an output's range: further apart, they do not compute the same
ROUNDS = 7


def milliseconds(call, seconds):
    """The median of a block of runs, three at least."""
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        begin = time.perf_counter()
        call()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def inputs_of(model):
    generator, made = np.random.default_rng(1), {}
    for info in model.inputs:
        shape = [int(d) for d in info.dims]
        if np.issubdtype(info.dtype, np.floating):
            made[info.name] = generator.standard_normal(shape).astype(info.dtype)
        else:
            low, high = (1, 2) if "mask" in info.name else (0, 2 if "type" in info.name else 100)
            made[info.name] = generator.integers(low, high, shape).astype(info.dtype)
    return made


def distance(want, got):
    worst = 0.0
    for a, b in zip(want, got):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64).reshape(np.shape(a))
        worst = max(worst, float(np.abs(a - b).max()) / (float(np.ptp(a)) or 1.0))
    return worst


def torch_calls(session, path, half, inputs):
    """PyTorch's two: name -> what makes its call."""
    import torch
    from gpu.torch_graph import TorchGraph
    place = "cuda" if torch.cuda.is_available() else "cpu"
    if place == "cpu" and not session.dry:
        raise RuntimeError("it sees no GPU")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False

    def made(prepare):
        graph = TorchGraph(path).eval()
        module = prepare((graph.half() if half else graph).to(place))

        def call():
            with torch.no_grad():
                outputs = module(*(torch.from_numpy(value).to(place) for value in inputs.values()))
            return [output.cpu().numpy() for output in outputs]
        return call
    compiled = {"mode": "max-autotune", "fullgraph": True}
    return {"eager": lambda: made(lambda module: module), "max-autotune": lambda: made(lambda module: torch.compile(module, **compiled))}


def xla_calls(session, path, half, inputs):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")   # it would take the others' memory
    import jax
    from gpu.jax_graph import function_of
    if jax.default_backend() == "cpu" and not session.dry:
        raise RuntimeError("it sees no GPU")

    def made():
        function = function_of(path, half)
        return lambda: function(*inputs.values())
    return {"xla": made}


def contenders(session, name, path, inputs):
    """name -> a call that gives the outputs, as arrays; and why others are missing."""
    half, path = name.endswith("_f16"), path.with_name(path.name.replace("_f16", ""))
    found, missing = {}, {}
    for library, calls_of in (("PyTorch", torch_calls), ("JAX", xla_calls)):
        try:
            makers = calls_of(session, path, half, inputs)
        except (ImportError, RuntimeError) as error:
            missing[library] = str(error)
            continue
        for kind, make in makers.items():
            try:
                call = make()
                for _ in range(3):
                    call()
                found[kind] = call
            except Exception as error:   # noqa: BLE001: a rival that fails is missing from the table
                missing[kind] = f"{type(error).__name__}: {str(error)[:300]}"
    return found, missing


def compare(session, name, path, end):
    from tilewright import Model
    library, _ = session.compile(path, f"rival_{name}")
    model = Model(library)
    inputs = inputs_of(model)
    calls = {"tilewright": lambda: model(**inputs)}
    others, missing = contenders(session, name, path, inputs)
    want = calls["tilewright"]()
    want = want if isinstance(want, tuple) else [want]
    for kind, call in others.items():
        apart = distance(want, call())
        if apart <= WORST:
            calls[kind] = call
        else:
            missing[kind] = f"its outputs are {apart:.1e} of the range apart"
    blocks, order = [], random.Random(1)
    seconds = 0.01 if session.dry else 0.15
    while len(blocks) < (2 if session.dry else ROUNDS) and (time.monotonic() < end or not blocks):
        blocks.append({kind: milliseconds(calls[kind], seconds) for kind in order.sample(sorted(calls), len(calls))})
    return {"median_ms": {kind: statistics.median(block[kind] for block in blocks) for kind in calls}, "blocks": blocks, "missing": missing}


def run(session, end):
    found, missing = {}, []
    for name, path in session.known().items():
        if time.monotonic() > end:
            missing.append(name)
        else:
            found[name] = compare(session, name, path, end)
    return {"networks": found, "no time for": missing}
