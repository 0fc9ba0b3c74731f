"""The stages of bench/gpu.sh, which says what they are for."""
import argparse
import datetime
import json
import pathlib
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from gpu import correctness, machine, matmuls, probes, rivals, sanitizer, slowest, table, tuning   # noqa: E402
from gpu.session import Session   # noqa: E402

# name -> (what runs, its share of the time). In the order of a run: what later stages need comes first.
STAGES = {"machine": (machine.run, 0.02), "probes": (probes.run, 0.06), "sanitizer": (sanitizer.run, 0.12), "correctness": (correctness.run, 0.2),
          "rivals": (rivals.run, 0.25), "matmuls": (matmuls.run, 0.1), "slowest": (slowest.run, 0.05), "tuning": (tuning.run, 0.2)}


def arguments():
    parser = argparse.ArgumentParser(prog="bench/gpu.sh")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--tilewright", type=pathlib.Path, default="build/release/tilewright")
    parser.add_argument("--target", help="default: the description of the chip that is there")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(STAGES))
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--dry-run", action="store_true")
    args = parser.parse_args()
    unknown = set(args.only) - STAGES.keys()
    if unknown:
        parser.error(f"no stage {', '.join(sorted(unknown))}: there are {', '.join(STAGES)}")
    return args


def run_stage(session, name, action, seconds):
    """What the stage found, or why it failed: a stage that fails does not keep the others from running."""
    begin = time.monotonic()
    try:
        found = action(session, begin + seconds)
    except Exception as error:   # noqa: BLE001: whatever it is, the rest of the run is worth having
        traceback.print_exc()
        found = {"failed": f"{type(error).__name__}: {error}"}
    found["seconds"] = round(time.monotonic() - begin, 1)
    return found


def main():
    args = arguments()
    session = Session(args)
    end = time.monotonic() + 60 * args.minutes
    failed = []
    for name, (action, share) in STAGES.items():
        path = session.out / f"{name}.json"
        if name not in args.only:
            continue
        if path.exists() and "failed" not in json.loads(path.read_text()):
            print(f"{name}: {path} is there", flush=True)
            continue
        if time.monotonic() > end:
            print(f"{name}: no time is left; the same command goes on here", flush=True)
            failed.append(name)
            continue
        print(f"{name} ({datetime.datetime.now():%H:%M:%S})", flush=True)
        found = run_stage(session, name, action, share * 60 * args.minutes)
        path.with_suffix(".tmp").write_text(json.dumps(found, indent=1) + "\n")
        path.with_suffix(".tmp").rename(path)
        if found.get("failed"):
            failed.append(name)
        print(f"  {found['seconds']} s" + (f", FAILED: {found['failed']}" if found.get("failed") else ""), flush=True)
    table.write(session)
    if failed:
        print("not done: " + ", ".join(failed))
    return 1 if failed else 0


sys.exit(main())
