#!/usr/bin/env python3
"""Small networks of every known family, and some of branches and loops, whole on a device: in f32 and f16, and some of f32 with products of bf16 and tf32, on the tests' fake libcuda, whose emulator
runs the kernels, and some on OpenCL where there is a driver. Outputs are compared with the same model in f64, and what stays on the processor with the list below.

    networks.py --tilewright BUILD/tilewright [--work DIR] [--only NAME,...]
"""
import argparse
import os
import pathlib
import sys
import tempfile

import control_networks
import gpu_models

TOLERANCE = {"f32": 1e-4, "f16": 5e-3, "bf16": 5e-2, "tf32": 5e-3}   # of an output's range
ROUNDED = 1e-5   # and more, where products of a model in f32 are of a shorter form
NARROWED = {"bf16": ["small_resnet", "small_bert"], "tf32": ["small_unet", "small_bert"]}
ON_OPENCL = ["small_dqn", "small_lstm", "small_bert", "small_head"]   # PoCL takes a second to compile a kernel
# What runs on the processor, in words of its reason. All else is on the device.
ON_PROCESSOR = {(driver, name): words for driver in ("cuda", "opencl") for name, words in control_networks.ON_PROCESSOR.items()}
BATCHES = (2, 5)   # of networks whose batch is free


def check(tilewright, target, model, form, folder, expected, sizes=()):
    """What is wrong; the error. sizes: more arguments of verify."""
    library = folder / "model.so"
    status, report, said = gpu_models.call(tilewright, "compile", model, "-t", target, "-o", library, *(["--precision", form] if form in NARROWED else []))
    if status:
        return [f"compile: {gpu_models.problem_of(report, said)}"], None
    wrong = [reason for reason in report.get("on_processor", []) if not any(words in reason for words in expected)]
    wrong += [f"nothing is left of '{words}' on the processor: take it from the list" for words in expected
              if not any(words in reason for reason in report.get("on_processor", []))]
    status, verified, said = gpu_models.call(tilewright, "verify", library, model, "--random", "1", "--tolerance", str(TOLERANCE[form]), *sizes)
    if "outputs" not in verified:
        return [*wrong, f"verify: {gpu_models.problem_of(verified, said)}"], None
    errors = [output["difference"].get("max_rel") for output in verified["outputs"]]
    if status:
        wrong.append(f"verify: {verified['outputs']} {said.strip()}")
    error = max((e for e in errors if e is not None), default=None)
    if form in NARROWED and error is not None and error < ROUNDED:
        wrong.append(f"nothing was multiplied in {form}")
    return wrong, error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--only", type=lambda text: text.split(","))
    args = parser.parse_args()
    tilewright = args.tilewright.resolve()
    temporary = tempfile.TemporaryDirectory()
    work = args.work or pathlib.Path(temporary.name)
    work.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("POCL_CACHE_DIR", str(work))   # what PoCL compiles goes with the rest
    small = [name for name in args.only or [] if name not in control_networks.NETWORKS]
    models = gpu_models.small_networks(work, small) if small or not args.only else {}
    models |= {(name, form): models[name, "f32"] for form, names in NARROWED.items() for name in names if (name, "f32") in models}
    emulated = gpu_models.emulated_target(tilewright, work)
    targets = {"cuda": emulated} if emulated else {}
    if any(pathlib.Path("/etc/OpenCL/vendors").glob("*.icd")):
        targets["opencl"] = "opencl-generic"
    failed = 0

    def run(driver, name, form, model, expected, sizes=()):
        wrong, error = check(tilewright, targets[driver], model, form, work, expected, sizes)
        print(f"{'FAIL' if wrong else 'ok  '} {driver:6} {name:18} {form} " + (f"error {error:.1e} of the range" if error is not None else "") + " ".join(["", *sizes]), flush=True)
        for line in wrong:
            print(f"       {line}", flush=True)
        return bool(wrong)

    control = control_networks.write(work, args.only)
    for driver in targets:
        for (name, form), model in models.items():
            if driver == "opencl" and (form != "f32" or name not in ON_OPENCL):
                continue
            failed += run(driver, name, form, model, ON_PROCESSOR.get((driver, name), []))
        for name, model in control.items():
            expected = ON_PROCESSOR[driver, name.removesuffix("_free")]
            for sizes in [("--dim", f"batch={n}") for n in BATCHES] if name.endswith("_free") else [()]:
                failed += run(driver, name, "f32", model, expected, sizes)
    for driver in {"cuda", "opencl"} - targets.keys():
        print(f"SKIPPED {driver}: " + ("no tests/fake/libcuda.so.1 beside tilewright, or no ld" if driver == "cuda" else "no driver (scripts/setup.sh opencl)"))
    print(f"networks on devices: {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
