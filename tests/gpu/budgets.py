#!/usr/bin/env python3
"""Every kernel of every network through ptxas for each chip that there is a description of: none may spill, be changed by ptxas on its own (notes C75xx)
or stay on the processor for another reason than networks.py lists, and the largest of a network takes no more registers and shared memory than budgets.json
has. Without --full these are the small networks, some with products of tf32 too; --full takes those that bench/networks writes and ../shared/models holds too, in f32.

    budgets.py --tilewright BUILD/tilewright [--work DIR] [--only NAME,...] [--chips sm80,...] [--full] [--part I/N] [--update]

--update writes what was found into budgets.json. --part: every N-th network.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import gpu_models
from networks import NARROWED, ON_PROCESSOR

BUDGETS = pathlib.Path(__file__).with_name("budgets.json")
SHARED = gpu_models.ROOT.parent / "shared/models"
CHIPS = sorted(path.stem.removeprefix("nvidia-") for path in (gpu_models.ROOT / "configs").glob("nvidia-*.yaml"))


def large_networks(folder):
    """(network, "f32") -> its file, of those that can be made here."""
    subprocess.run([sys.executable, gpu_models.ROOT / "bench/networks", folder], check=True, stdout=subprocess.DEVNULL)
    if SHARED.is_dir():
        subprocess.run([sys.executable, SHARED / "make_models.py", folder], check=True, stdout=subprocess.DEVNULL)
    return {(path.stem, "f32"): path for path in sorted(folder.glob("*.onnx")) if not path.stem.startswith("small_")}


def largest(report):
    on_device = [kernel for kernel in report["kernel_reports"] if kernel["registers"]]
    return {key: max((kernel[key] for kernel in on_device), default=0) for key in ("registers", "shared_bytes")}


def has(chip, form):
    """Whether threads of the chip multiply tf32 together; all have the other forms."""
    return form != "tf32" or "tf32" in (gpu_models.ROOT / f"configs/nvidia-{chip}.yaml").read_text()


def compile_for(tilewright, model, chip, form, folder):
    """(what is wrong, the largest registers and shared bytes)."""
    status, report, said = gpu_models.call(tilewright, "compile", model, "-t", f"nvidia-{chip}", "-o", folder / "budget.so",
                                           *(["--precision", form] if form == "tf32" else []))
    if status:
        return [f"compile: {gpu_models.problem_of(report, said)}"], {}
    expected = ON_PROCESSOR.get(("cuda", model.stem.removesuffix("_f16")), [])
    return [reason for reason in report.get("on_processor", []) if not any(words in reason for words in expected)], largest(report)


def over(found, budget):
    if not budget:
        return ["budgets.json has nothing of it: --update writes it"]
    return [f"{key} {found[key]}, of {limit} in budgets.json" for key, limit in budget.items() if found[key] > limit]


def write(budgets):
    lines = [f' "{chip}": {{\n' + ",\n".join(f'  "{name}": {json.dumps(budgets[chip][name])}' for name in sorted(budgets[chip])) + "\n }" for chip in sorted(budgets)]
    BUDGETS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def has_ptxas(tilewright, folder):
    status, report, said = gpu_models.call(tilewright, "compile", gpu_models.ROOT / "examples/digits/digits.onnx", "-t", "nvidia-sm80", "-o", folder / "d.so")
    return not status and any("ptxas V" in note for note in report.get("device_notes", []))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--chips", type=lambda text: text.split(","), default=CHIPS)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--part", type=lambda text: tuple(map(int, text.split("/"))), default=(0, 1))
    parser.add_argument("--update", action="store_true")
    return parser.parse_args()


def main():
    args = arguments()
    tilewright = args.tilewright.resolve()
    temporary = tempfile.TemporaryDirectory()
    work = args.work or pathlib.Path(temporary.name)
    work.mkdir(parents=True, exist_ok=True)
    if not has_ptxas(tilewright, work):
        print("SKIPPED budgets: no ptxas on this machine (scripts/setup.sh cuda)")
        return 0
    models = gpu_models.small_networks(work)
    if args.full:
        models |= large_networks(work)
    if args.only:
        models = {key: model for key, model in models.items() if key[0] in args.only}
    models |= {(name, "tf32"): models[name, "f32"] for name in NARROWED["tf32"] if (name, "f32") in models}
    models = dict(list(models.items())[args.part[0]::args.part[1]])
    budgets = json.loads(BUDGETS.read_text()) if BUDGETS.exists() else {}
    failed = 0
    for (name, form), model in models.items():
        for chip in (chip for chip in args.chips if has(chip, form)):
            wrong, found = compile_for(tilewright, model, chip, form, work)
            if args.update and not wrong:
                budgets.setdefault(chip, {})[f"{name} {form}"] = found
                write(budgets)
            elif not wrong:
                wrong = over(found, budgets.get(chip, {}).get(f"{name} {form}"))
            failed += bool(wrong)
            print(f"{'FAIL' if wrong else 'ok  '} {chip:6} {name:18} {form} {found.get('registers', '-'):>4} registers {found.get('shared_bytes', '-'):>6} bytes", flush=True)
            for line in wrong:
                print(f"       {line}", flush=True)
    print(f"kernels by ptxas for {', '.join(args.chips)}: {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
