#!/usr/bin/env python3
"""The instructions of the CUDA targets in the tests' emulator: against their definition, and against what a GPU made of the same inputs, where that was recorded
(golden/NAME.npz, by the stage "probes" of bench/gpu.sh).

    probes.py --tilewright BUILD/tilewright
"""
import argparse
import pathlib
import sys
import tempfile

import gpu_models
import numpy as np
import probe_models

GOLDEN = pathlib.Path(__file__).with_name("golden")


def unlike_golden(tilewright, probe, library, folder):
    """How the emulator differs from the GPU; None: nothing is recorded, "": it does not."""
    path = GOLDEN / f"{probe.name}.npz"
    if not path.exists():
        return None
    with np.load(path) as recorded:
        inputs, want = {name: recorded[name] for name in ("a", "b")}, recorded["y"].astype(np.float64)
    _, got = probe_models.outputs(tilewright, probe, library, folder, inputs)
    error = float(np.abs(got.astype(np.float64) - want).max()) / float(np.ptp(want))
    return "" if error <= probe.tolerance else f"{error:.1e} of the range from what the GPU made"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    tilewright = parser.parse_args().tilewright.resolve()
    failed = recorded = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        target = gpu_models.emulated_target(tilewright, folder)
        if not target:
            print("SKIPPED probes: no tests/fake/libcuda.so.1 beside tilewright, or no ld")
            return 0
        for probe in probe_models.PROBES:
            library = folder / f"{probe.name}.so"
            status, report, said = gpu_models.call(tilewright, "compile", probe_models.write(probe, folder), "-t", target, "-o", library, *probe_models.flags(probe))
            wrong = [gpu_models.problem_of(report, said)] if status else list(report.get("on_processor", []))
            if not wrong:
                inputs, got = probe_models.outputs(tilewright, probe, library, folder)
                error = probe_models.error_of(probe, inputs, got)
                unlike = unlike_golden(tilewright, probe, library, folder)
                recorded += unlike is not None
                wrong = [f"error {error:.1e}, allowed {probe.tolerance:.0e}"] * (not error <= probe.tolerance) + [unlike] * bool(unlike)
            failed += bool(wrong)
            print(f"{'FAIL' if wrong else 'ok  '} {probe.name} " + "; ".join(wrong))
    print(f"probes: {failed} failed; of {recorded} of {len(probe_models.PROBES)} there are a GPU's results to compare with")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
