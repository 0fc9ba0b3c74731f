#!/usr/bin/env python3
"""The predictors that are shipped rank the programs of networks that training has not seen as well as they did: predictor_quality.json has how well, and none
may fall by more than .01. Networks and features are equal on every machine, so the figures are too.

    predictor_quality.py --tilewright BUILD/tilewright [--update]
--update: writes the file.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE = pathlib.Path(__file__).with_suffix(".json")
SETS = {"tileset-1": "x86-64-v4", "tileset-winograd": "x86-64-v4", "tileset-2": "x86-64-v4"}   # a data set, and the target whose labels count
POOL = 64            # programs of a task
MOST_FALL = 0.01


def json_of(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def platform_of(tilewright, path, target):
    """The number of the target's platform with most labels, one thread."""
    platforms = [p for p in json_of(tilewright, "dataset", "stat", path, "--json")["platforms"]
                 if (p["platform"]["target"], p["platform"]["threads"]) == (target, 1)]
    return max(platforms, key=lambda p: p["all"]["labels"])["platform"]["id"]


def measured(tilewright, kinds, folder):
    """{"SPLIT of SET": {kind: {"top1", "top5"}}}"""
    out = {}
    for name, target in SETS.items():
        path = folder / f"{name}.db"
        json_of(tilewright, "dataset", "import", path, ROOT / "datasets" / name, "--json")
        tables = json_of(tilewright, "dataset", "rank", path, "--of", platform_of(tilewright, path, target), "--tuner", ",".join(kinds), "--pool", POOL, "--json")
        for table in tables["tables"]:
            out[f"{table['split']} of {name}"] = {s["method"]: {"top1": round(s["top1"], 4), "top5": round(s["top5"], 4)}
                                                 for s in table["scores"] if s["method"] in kinds}
    return out


def falls(kept, now):
    """A line for each figure that is missing or fell."""
    for place, kinds in kept.items():
        for kind, figures in kinds.items():
            for figure, before in figures.items():
                value = now.get(place, {}).get(kind, {}).get(figure)
                if value is None or value < before - MOST_FALL:
                    yield f"{kind}, {figure} on {place}: {before} before, {'not there' if value is None else value} now"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    installed = args.tilewright.parent / "share/tilewright/predictors"
    kinds = sorted({path.stem.rsplit("-", 1)[0] for path in installed.glob("*.so")})
    with tempfile.TemporaryDirectory() as folder:
        now = measured(args.tilewright, kinds, pathlib.Path(folder))
    if args.update:
        FILE.write_text(json.dumps(now, indent=1) + "\n")
    problems = list(falls(json.loads(FILE.read_text()), now))
    print("\n".join(problems) or f"predictor_quality: {len(kinds)} kinds, {len(now)} parts, none fell")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
