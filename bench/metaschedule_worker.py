#!/usr/bin/env python3
"""TVM's side of metaschedule.py, by the interpreter that has apache-tvm: a step a process.

    metaschedule_worker.py tune MODEL.onnx --records DIR     MetaSchedule, until it is ended from outside
    metaschedule_worker.py build MODEL.onnx --records DIR --out DIR    with the records as they stand; none: untuned
    metaschedule_worker.py time --out DIR --inputs DIR --expected DIR --seconds S    says {"ms": [...], "error": ...}

Weights are parameters that TVM may lay out anew before the first run (cpu_weight_prepack), as its documentation recommends for processors. The
times are TVM's own (time_evaluator), every run by itself, without Python around it.
"""
import argparse
import json
import os
import pathlib
import sys

import numpy as np

import rival_truth

ENDLESS = 10**6   # trials
PATIENCE = 120    # seconds
WARMUP = 3        # runs, as many as tilewright bench takes


def target(threads):
    import tvm
    from tvm.target import codegen
    return tvm.target.Target({"kind": "llvm", "mcpu": codegen.llvm_get_system_cpu(), "num-cores": threads})


def load(path):
    """The ONNX model, its module, and its weights."""
    import onnx
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx
    model = onnx.load(str(path))
    module, weights = relax.frontend.detach_params(from_onnx(model, keep_params_in_input=True))
    return model, module, weights["main"]


def tune(args):
    """As the pipeline static_shape_tuning does, with more time for builders and runner, which it has no setting for."""
    import tvm
    from tvm import relax
    from tvm.s_tir import meta_schedule
    args.records.mkdir(parents=True, exist_ok=True)
    passes = [relax.transform.DecomposeOpsForInference(), relax.transform.CanonicalizeBindings(), relax.get_pipeline("zero"),
              relax.transform.AttachAttrLayoutFreeBuffers()]
    chip = target(args.threads)
    with chip:
        module = tvm.transform.Sequential(passes)(load(args.model)[1])
    builder = meta_schedule.builder.LocalBuilder(timeout_sec=PATIENCE)
    runner = meta_schedule.runner.LocalRunner(timeout_sec=PATIENCE)
    meta_schedule.relax_integration.tune_relax(module, {}, chip, str(args.records), ENDLESS, builder=builder, runner=runner, seed=1)


def build(args):
    import tvm
    from tvm import relax
    model, module, weights = load(args.model)
    chip = target(args.threads)
    args.records.mkdir(parents=True, exist_ok=True)
    module = relax.get_pipeline("static_shape_tuning", target=chip, total_trials=0, work_dir=str(args.records), cpu_weight_prepack=True)(module)
    program = tvm.compile(module, target=chip)
    machine = relax.VirtualMachine(program, tvm.cpu())
    if any(name.name_hint == "main_transform_params" for name in module.functions):
        weights = machine["main_transform_params"](weights)
    args.out.mkdir(parents=True, exist_ok=True)
    np.savez(args.out / "weights.npz", **{f"{i:05d}": value.numpy() for i, value in enumerate(weights)})
    given = {tensor.name for tensor in model.graph.initializer}
    names = {"inputs": [i.name for i in model.graph.input if i.name not in given], "outputs": [o.name for o in model.graph.output]}
    (args.out / "names.json").write_text(json.dumps(names))
    program.export_library(str(args.out / "lib.so"))


def arrays(folder, names):
    return [np.load(folder / f"{name.replace('/', '_')}.npy") for name in names]


def time(args):
    import tvm
    from tvm import relax
    machine = relax.VirtualMachine(tvm.runtime.load_module(str(args.out / "lib.so")), tvm.cpu())
    weights = rival_truth.load_arrays(args.out / "weights.npz")
    names = json.loads((args.out / "names.json").read_text())
    values = arrays(args.inputs, names["inputs"])
    arguments = [tvm.runtime.tensor(value) for value in [*values, *(weights[name] for name in sorted(weights))]]
    outputs = machine["main"](*arguments)
    outputs = [value.numpy() for value in ([outputs] if hasattr(outputs, "numpy") else outputs)]
    truth = rival_truth.Truth.of_floats(arrays(args.expected, names["outputs"]))
    machine.save_function("main", "timed", *arguments)

    def seconds(runs):
        return machine.time_evaluator("timed", tvm.cpu(), number=1, repeat=runs)().results

    least = min(seconds(WARMUP))
    times = seconds(max(3, int(args.seconds / least)))
    print(json.dumps({"ms": [s * 1e3 for s in times], "error": truth.error(outputs)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(required=True)
    for step in (tune, build):
        sub = steps.add_parser(step.__name__)
        sub.set_defaults(step=step)
        sub.add_argument("model", type=pathlib.Path)
        sub.add_argument("--records", type=pathlib.Path, required=True)
        if step is build:
            sub.add_argument("--out", type=pathlib.Path, required=True)
    sub = steps.add_parser("time")
    sub.set_defaults(step=time)
    for folder in ("--out", "--inputs", "--expected"):
        sub.add_argument(folder, type=pathlib.Path, required=True)
    sub.add_argument("--seconds", type=float, required=True)
    for sub in steps.choices.values():
        sub.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    os.environ |= {"TVM_NUM_THREADS": str(args.threads), "TVM_BIND_THREADS": "0"}   # read when TVM first runs something
    args.step(args)
    sys.stdout.flush()
    os._exit(0)   # its pools of workers may wait for ever


if __name__ == "__main__":
    main()
