"""A page for docs/journal of what the stages found."""
import json


def stage(session, name):
    path = session.out / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def number(value, form="{:.3f}"):
    return form.format(value) if value is not None else "n/a"


def rows(title, columns, body):
    return [f"## {title}", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns), *("| " + " | ".join(row) + " |" for row in body), ""]


def parts(session):
    machine, correct = stage(session, "machine"), stage(session, "correctness")
    if machine and "gpu" in machine:
        yield [f"Date: {machine['date']}. Machine: {machine['gpu']}; target `{machine['target'].rsplit('/')[-1]}`, PyTorch {machine['torch']}. Script: `bench/gpu.sh`.", ""]
    probed = stage(session, "probes")
    if probed and "probes" in probed:
        yield rows("Instructions against their definition", ["probe", "error", "allowed"], ([name, number(p["error"], "{:.1e}"), number(p["allowed"], "{:.0e}")] for name, p in probed["probes"].items()))
    if correct and "networks" in correct:
        yield rows("Networks against f64", ["network", "error of the range", "on the processor"],
                   ([name, number(one["error"], "{:.1e}") if one.get("ok") else "WRONG " + (one.get("why") or number(one["error"], "{:.1e}")), str(len(one.get("on_processor", [])))]
                    for name, one in correct["networks"].items()))
    beside = stage(session, "rivals")
    if beside and "networks" in beside:
        kinds = ("tilewright", "eager", "max-autotune", "xla")
        yield rows("Beside PyTorch and XLA, ms", ["network", *kinds], ([name, *(number(one["median_ms"].get(kind)) for kind in kinds)] for name, one in beside["networks"].items()))
    products = stage(session, "matmuls")
    if products and "products" in products:
        yield rows("Products, ms", ["shape", "tilewright", "cuBLASLt", "TFLOP/s"], ([name, number(p["tilewright_ms"], "{:.4f}"), number(p["cublas_ms"], "{:.4f}"), number(p["tflops"], "{:.1f}")]
                                                                                   for name, p in products["products"].items()))
    tuned = stage(session, "tuning")
    if tuned and "ms" in tuned:
        yield [f"Tuning {tuned['network']}: {tuned['ms']['before']:.3f} ms before, {tuned['ms']['after']:.3f} ms after.", ""]


def write(session):
    path = session.out / "table.md"
    path.write_text("\n".join(["# A GPU, all stages", "", *(line for part in parts(session) for line in part)]))
    print(path)
