#!/usr/bin/env python3
"""Predictors in the product: schedules that nobody measured are right and the same every time, searches take them, damaged and foreign
files are refused, and heads for a chip are fitted to what a worker measures.

    one_shot.py --tilewright BUILD/tilewright
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KINDS = ("ranker", "one-shot", "tlp", "mtl-tlp")
DIGITS = ROOT / "examples/digits/digits.onnx"


def run(args, *words, **environment):
    result = subprocess.run([str(w) for w in (args.tilewright, *words)], capture_output=True, text=True, timeout=900, env={**os.environ, **environment})
    return result.returncode, result.stdout, result.stderr


def must(args, *words, **environment):
    code, out, err = run(args, *words, **environment)
    assert code == 0, (words, code, out, err)
    return out


def predictors(args):
    return args.tilewright.parent / "share/tilewright/predictors"


def compiles(args, folder):
    """Twice the same bytes, whose results are right, from any number of threads that compile."""
    for jobs in (1, 2):
        (folder / str(jobs)).mkdir()
        must(args, "compile", DIGITS, "--tune", "one-shot", "-j", jobs, "-o", folder / str(jobs) / "d.so")
    assert (folder / "1/d.so").read_bytes() == (folder / "2/d.so").read_bytes()
    must(args, "verify", folder / "1/d.so", DIGITS, "--random", 1)
    report = json.loads(must(args, "compile", DIGITS, "--tune", "one-shot", "--json", "-t", "x86-64-v3", "-o", folder / "j.so"))
    assert any("the predictor's" in note for note in report["notes"]), report["notes"]
    code, _, err = run(args, "compile", DIGITS, "--tune", "one-shot", "--frozen", "-o", folder / "f.so")
    assert code == 1 and "--frozen takes none but the lock's" in err, err


def other_machine(args, folder):
    """A chip that is not here has its schedules, too."""
    must(args, "compile", DIGITS, "--tune", "one-shot", "-t", "cortex-a72", "-o", folder / "a72.so")


def by_description(args, folder):
    """A description asks for predictors: as with the flag, unless one says no, and a lock keeps what they chose."""
    chip, model = folder / "own.yaml", folder / "own.onnx"
    chip.write_text(must(args, "target", "x86-64-v3") + "schedules: predicted\n")
    model.write_bytes(pathlib.Path(DIGITS).read_bytes())

    def asked(name, *words):
        """Whether predictors were; the library's kernels."""
        report = json.loads(must(args, "compile", model, "--json", "-o", folder / name, *words))
        kernels = [kernel["hash"] for kernel in json.loads(must(args, "inspect", folder / name, "--json"))["manifest"]["kernels"]]
        return any("the predictor's" in note for note in report.get("notes", [])), kernels
    own = asked("own.so", "-t", chip)
    assert own == asked("flag.so", "-t", chip, "--tune", "one-shot") and own[0]
    rules = asked("rules.so", "-t", "x86-64-v3")
    assert asked("off.so", "-t", chip, "--tune", "off") == rules and not rules[0]
    must(args, "lock", model, "-t", chip)
    assert asked("frozen.so", "-t", chip, "--frozen") == (False, own[1])
    (folder / "tilewright.lock").unlink()
    chip.write_text("triple: x86_64-linux-gnu\nschedules: guessed\n")
    code, _, err = run(args, "compile", model, "-t", chip, "-o", folder / "g.so")
    assert code == 1 and "schedules must be rules or predicted" in err, err


def every_kind(args, folder):
    """Each paper's predictor proposes for two targets, what it proposes is measured, and the library is right. Without a measurement only the ranker
    chooses, which says how sure it is."""
    for kind, target in zip(KINDS, ("x86-64-v3", "x86-64-v2", "x86-64-v3", "x86-64-v2")):
        library, log = folder / f"{kind}.so", folder / f"{kind}-proposed.db"
        must(args, "compile", DIGITS, "--tune", "one-shot:2", "--tuner", kind, "-t", target, "--log", log, "-o", library)
        must(args, "verify", library, DIGITS, "--random", 1)
        assert json.loads(must(args, "log", "best", "--log", log, "--json"))["best"], (kind, target)
    for words, wanted in ((("--tune", "one-shot", "--tuner", "gbt"), "--tuner 'gbt': one of ranker, one-shot, tlp, mtl-tlp"),
                          (("--tune", "one-shot", "--tuner", "tlp"), "does not say how sure it is"), (("--tuner", "tlp"), "add --tune")):
        code, _, err = run(args, "compile", DIGITS, *words, "-o", folder / "w.so")
        assert code == 1 and wanted in err, (code, err)


def searches(args, folder):
    """Each kind that is there measures its candidates and nothing else; compile measures N of each kernel."""
    kinds = {file.stem.rsplit("-", 1)[0] for file in predictors(args).glob("*.so")}
    assert kinds == set(KINDS), kinds
    for kind in sorted(kinds):
        log = folder / f"{kind}.db"
        lines = must(args, "tune", DIGITS, "--tuner", kind, "--kernel", 2, "--trials", 6, "--space", "generated", "--no-rules", "--log", log, "--json")
        summary = json.loads(lines.splitlines()[-1])
        assert summary["trials"] >= 6, summary
    out = must(args, "compile", DIGITS, "--tune", "one-shot:2", "--log", folder / "n.db", "-o", folder / "n.so")
    assert "tuned" in out, out
    must(args, "verify", folder / "n.so", DIGITS, "--random", 1)
    code, _, err = run(args, "tune", DIGITS, "--tuner", "ranker", "--log", folder / "x.db", TILEWRIGHT_PREDICTORS=str(folder))
    assert code == 0, err   # a folder without any is passed by


def refuses(args, folder):
    """Damaged libraries, other networks, heads of others."""
    bad = folder / "bad"
    bad.mkdir()
    whole = sorted(predictors(args).glob("ranker-*.so"))[0].read_bytes()
    for name, data, wanted in (("cut", whole[: len(whole) // 2], "error"), ("bit", whole[:90000] + bytes([whole[90000] ^ 1]) + whole[90001:], "error"),
                               ("text", b"no library\n", "error")):
        (bad / "ranker-1.so").write_bytes(data)
        code, _, err = run(args, "compile", DIGITS, "--tune", "one-shot", "-o", folder / f"{name}.so", TILEWRIGHT_PREDICTORS=str(bad))
        assert code in (1, 8) and wanted in err and not (folder / f"{name}.so").exists(), (name, code, err)
    must(args, "compile", DIGITS, "-o", bad / "ranker-1.so")   # a library, and no predictor
    code, _, err = run(args, "compile", DIGITS, "--tune", "one-shot", "-o", folder / "p.so", TILEWRIGHT_PREDICTORS=str(bad))
    assert code == 1 and "is no predictor of this version" in err, (code, err)
    description = folder / "chip.yaml"
    description.write_text(must(args, "target", "x86-64-v3"))
    (folder / "chip.heads.json").write_text('{"format": 1, "kind": "ranker", "members": ["00"], "own_shares": [1], "weights": [[1]]}')
    code, _, err = run(args, "compile", DIGITS, "--tune", "one-shot", "-t", description, "-o", folder / "p.so")
    assert code == 1 and "is damaged, or no heads" in err, (code, err)
    (folder / "chip.heads.json").unlink()


def adapts(args, folder):
    """Heads are fitted to this machine, and a second call measures nothing anew."""
    description = folder / "chip.yaml"
    words = ("adapt", "-t", description, "--samples", 160, "--json")
    first = json.loads(must(args, *words))
    assert first["samples"] >= 160 and first["tasks"] >= 4 and 0 < first["before"]["top1"] <= 1, first
    second = json.loads(must(args, *words))
    assert second["samples"] == first["samples"] and second["after"] == first["after"], (first, second)
    if first["heads"]:
        must(args, "compile", DIGITS, "--tune", "one-shot", "-t", description, "-o", folder / "h.so")


def adapts_by_log(args, folder):
    """A tuning log stands for measuring; one without the target's records is refused."""
    description, log = folder / "chip.yaml", folder / "adapt.db"
    must(args, "tune", DIGITS, "-t", description, "--tuner", "random", "--trials", 96, "--no-prove", "--log", log)
    found = json.loads(must(args, "adapt", "-t", description, "--log", log, "--json"))
    assert found["samples"] >= 16 and found["tasks"] >= 2 and 0 < found["before"]["top1"] <= 1, found
    code, _, err = run(args, "adapt", "-t", "cortex-a72", "-o", folder / "h.json", "--log", log)
    assert code == 1 and "has no kernel with 8 records of 'cortex-a72'" in err, err
    code, _, err = run(args, "adapt", "-t", "vdla-16x16", "-o", folder / "h.json", "--log", log)
    assert code == 3 and "has a device" in err, (code, err)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    args = parser.parse_args()
    args.tilewright = args.tilewright.resolve()
    tests = (compiles, other_machine, by_description, every_kind, searches, refuses, adapts, adapts_by_log)
    with tempfile.TemporaryDirectory() as name:
        for test in tests:
            test(args, pathlib.Path(name))
            print(f"{test.__name__}: ok", flush=True)
        shutil.rmtree(name, ignore_errors=True)
        os.makedirs(name, exist_ok=True)
    print(f"{len(tests)} passed, 0 failed")


if __name__ == "__main__":
    main()
