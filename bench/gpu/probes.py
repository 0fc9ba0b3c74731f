"""Each instruction of the target on inputs whose results are exact, and on random ones. What the device makes of them is kept (OUT/probes/NAME.npz): copied to
tests/gpu/golden it is what the emulator must reproduce (tests/gpu/probes.py)."""
import sys

import numpy as np

from gpu.session import ROOT

sys.path.insert(0, str(ROOT / "tests/gpu"))
import probe_models   # noqa: E402


def run(session, _end):
    folder = session.out / "probes"
    folder.mkdir(exist_ok=True)
    found = {}
    for probe in probe_models.PROBES:
        model = probe_models.write(probe, folder)
        library, report = session.compile(model, f"probe_{probe.name}", *probe_models.flags(probe))
        if report.get("on_processor"):
            raise RuntimeError(f"{probe.name} is not on the device: {report['on_processor'][0]}")
        inputs, got = probe_models.outputs(session.tilewright, probe, library, folder)
        np.savez(folder / f"{probe.name}.npz", **inputs, y=got)
        found[probe.name] = {"error": probe_models.error_of(probe, inputs, got), "allowed": probe.tolerance}
    wrong = [name for name, probe in found.items() if not probe["error"] <= probe["allowed"]]
    return {"probes": found} | ({"failed": f"unlike the definition: {', '.join(wrong)}"} if wrong else {})
