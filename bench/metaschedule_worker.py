#!/usr/bin/env python3
"""TVM's side of metaschedule.py, by the interpreter that has apache-tvm: a step a process.

    metaschedule_worker.py tune MODEL.onnx --records DIR --seconds S     MetaSchedule
    metaschedule_worker.py build MODEL.onnx --records DIR --out DIR    with the records as they stand; none: untuned
    metaschedule_worker.py time --out DIR --inputs DIR --expected DIR --seconds S    says {"ms": [...], "error": ...}

Weights are parameters that TVM may lay out anew before the first run (cpu_weight_prepack), as its documentation recommends for processors. The
times are TVM's own (time_evaluator), every run by itself, without Python around it.

MetaSchedule knows no time. Its runner is wrapped: after the seconds it measures nothing more. Its scheduler writes the records of a kernel down when it returns
to that kernel, in the first lap after all others, so its builder is wrapped too: what was measured is written down before anything else is built.
"""
import argparse
import json
import os
import pathlib
import sys
import threading
import time as clock

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "rivals"))
import rival_truth  # noqa: E402

START = clock.monotonic()
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


class Limit:
    """The time of a search: it ends at once while nothing is measured, else when the results are written down."""

    def __init__(self, seconds):
        self.end, self.measured = START + seconds, False   # measured: there are results in no record
        threading.Thread(target=self.watch, daemon=True).start()

    def over(self):
        return clock.monotonic() >= self.end

    def watch(self):
        clock.sleep(max(0, self.end - clock.monotonic()))
        self.leave()

    def leave(self):
        if self.over() and not self.measured:
            os._exit(0)


def limited(limit, scheduler):
    """A builder and a runner for meta_schedule that keep to the limit."""
    from tvm.ir.utils import derived_object
    from tvm.s_tir import meta_schedule
    from tvm.s_tir.meta_schedule.runner.local_runner import LocalRunnerFuture

    @derived_object
    class Builder(meta_schedule.builder.PyBuilder):
        def __init__(self):
            super().__init__()
            self.inner = meta_schedule.builder.LocalBuilder(timeout_sec=PATIENCE)

        def build(self, inputs):
            for task in range(len(scheduler.tasks_)):
                scheduler.touch_task(task)   # writes down what its runner has
            limit.measured = False
            limit.leave()
            return self.inner.build(inputs)

    @derived_object
    class Runner(meta_schedule.runner.PyRunner):
        def __init__(self):
            super().__init__()
            self.inner = meta_schedule.runner.LocalRunner(timeout_sec=PATIENCE)

        def run(self, inputs):
            limit.measured = not limit.over()
            limit.leave()
            return [LocalRunnerFuture(error_message="out of time") if limit.over() else self.inner.run([candidate])[0] for candidate in inputs]

    return Builder(), Runner()


def tune(args):
    """As the pipeline static_shape_tuning does, which takes no builder and no runner."""
    import tvm
    from tvm import relax
    from tvm.s_tir import meta_schedule
    args.records.mkdir(parents=True, exist_ok=True)
    limit, scheduler = Limit(args.seconds), meta_schedule.task_scheduler.GradientBased()
    passes = [relax.transform.DecomposeOpsForInference(), relax.transform.CanonicalizeBindings(), relax.get_pipeline("zero"),
              relax.transform.AttachAttrLayoutFreeBuffers()]
    chip = target(args.threads)
    with chip:
        module = tvm.transform.Sequential(passes)(load(args.model)[1])
    builder, runner = limited(limit, scheduler)
    meta_schedule.relax_integration.tune_relax(module, {}, chip, str(args.records), ENDLESS, builder=builder, runner=runner, task_scheduler=scheduler, seed=1)


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
        else:
            sub.add_argument("--seconds", type=float, required=True)
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
