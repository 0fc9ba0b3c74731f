"""All networks, in f32 and f16, against the same models in f64; and what of them stays on the processor."""
import time

TOLERANCE = {"": 1e-4, "_f16": 5e-3}   # of an output's range


def run(session, end):
    found, missing = {}, []
    for name, model in session.networks().items():
        if time.monotonic() > end:
            missing.append(name)
            continue
        form = "_f16" if name.endswith("_f16") else ""
        status, report = session.call("compile", model, "-t", session.target, "-o", session.out / f"{name}.so", check=False)
        if status:
            found[name] = {"error": None, "why": report["error"][0]["message"]}
            continue
        status, verified = session.call("verify", session.out / f"{name}.so", model, "--tolerance", TOLERANCE[form], check=False)
        errors = [output["difference"].get("max_rel") for output in verified.get("outputs", [])]
        found[name] = {"error": None if None in errors or not errors else max(errors), "ok": status == 0, "on_processor": report.get("on_processor", []),
                       "kernels": report["kernels"], "compile_seconds": report["seconds"]}
        if not errors:
            found[name]["why"] = verified["error"][0]["message"]
    wrong = [name for name, one in found.items() if not one.get("ok")]
    return {"tolerance": {"f32": TOLERANCE[""], "f16": TOLERANCE["_f16"]}, "networks": found, "no time for": missing} | \
        ({"failed": f"wrong: {', '.join(wrong)}"} if wrong else {})
