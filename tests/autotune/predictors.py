#!/usr/bin/env python3
"""Tests the learned predictors on a small made-up data set: all configurations train, are evaluated, resume, and are exported; and the tables that
bench/searches/budgets.py makes of searches.

    .venv-train/bin/python tests/autotune/predictors.py       about a minute; exit status 1 when something fails

Times of the made-up programs follow from their features, so that a model which learns anything ranks better than chance.
"""
import argparse
import gzip
import hashlib
import json
import pathlib
import sys
import tempfile
import types

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "autotune"), str(ROOT / "bench" / "searches")]
import budget_tables  # noqa: E402
from predictor import baselines, batches, choices, config as configs, data, evaluate, export, gains, losses, metrics, study, train, transfer  # noqa: E402

PLATFORMS = ["wide", "narrow"]
FAMILIES = {"train": ["alpha", "beta", "sampled"], "validation": ["gamma"], "test": ["delta", "epsilon"]}
PROGRAMS = 40
KINDS = ["vectorize", "unroll", "split", "reorder", "fuse", "parallel", "compute_at", "decompose_reduction", "set_scope", "cache_read",
         "cache_write", "rfactor", "prefetch", "layout", "peel", "partition", "compute_inline", "pack", "pad", "block", "other"]
LOOPS = (["float_mad", "float_add", "int_add", "bool", "select", "iterations", "vector.product", "vector.innermost", "unroll.product",
          "alloc.bytes"]
         + [f"buffer{b}.{name}" for b in range(5)
            for name in ("bytes", "lines", "unique_lines", "lines_by_reuse", "reuse_distance_bytes", "register")])


def write_lines(folder, name, lines):
    packed = gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode(), mtime=0)
    (folder / name).write_bytes(packed)
    return {"file": name, "bytes": len(packed), "sha256": hashlib.sha256(packed).hexdigest()}


def made_up_tasks():
    names = [(split, family, number) for split, families in FAMILIES.items() for family in families for number in range(3)]
    return [{"key": f"{at:016x}", "lowered_for": "any", "name": f"conv {8 << number}", "kind": "conv", "network": family, "split": split,
             "flops": 1e6 * (number + 1), "complete": True, "kernel": "k", "text": f"graph {{ %x: f32[1, {8 << number}, 4, 4] = input }}"}
            for at, (split, family, number) in enumerate(names)]


def made_up_data(folder, random):
    """Writes a data set of two platforms; gives the hidden cost of every program by its id."""
    tasks, programs, labels, cost = made_up_tasks(), [], [[] for _ in PLATFORMS], {}
    for at, task in enumerate(tasks):
        ids = [at * 1000 + i for i in range(PROGRAMS)]
        hidden = random.uniform(0, 2, PROGRAMS)
        cost.update(zip(ids, hidden))
        schedules = [f"schedule {{\n  split a {int(10 * h)} -> b c\n  vectorize c\n}}\n" for h in hidden]
        programs.append({"task": task["key"], "lowered_for": "any", "ids": ids, "sources": [i % 5 for i in range(PROGRAMS)],
                         "schedules": schedules})
        for place in range(len(PLATFORMS)):
            for again in (0, 1):
                seconds = np.exp(hidden * (1 - 0.3 * place) + random.normal(0, 0.01, PROGRAMS)) * 1e-3 * (at + 1)
                status = [2 if i == 3 else 0 for i in range(PROGRAMS)]
                labels[place].append({"task": task["key"], "lowered_for": "any", "pass": again, "ids": ids, "status": status,
                                      "least": seconds.tolist(), "median": seconds.tolist(), "samples": [5] * PROGRAMS,
                                      "contended": [False] * PROGRAMS, "time": [1] * PROGRAMS})
    files = [write_lines(folder, "tasks.jsonl.gz", tasks), write_lines(folder, "programs.jsonl.gz", programs),
             write_lines(folder, "kernels.jsonl.gz", [{"kernel": "k", "text": ""}])]
    platforms = []
    for place, name in enumerate(PLATFORMS):
        files.append(write_lines(folder, f"labels-{place + 1}.jsonl.gz", labels[place]))
        platforms.append({"file": f"labels-{place + 1}.jsonl.gz", "target": name, "target_key": name, "machine": f"{name} chip, 2 cores, features 0a", "threads": 1, "kind": "time"})
    (folder / "manifest.json").write_text(json.dumps({"format": 1, "platforms": platforms, "files": files}))
    return cost


def write_features(folder, ids, rows, columns):
    folder.mkdir(parents=True)
    np.save(folder / "ids.npy", np.array(ids, np.int64))
    np.save(folder / "offsets.npy", np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64))
    np.save(folder / "values.npy", np.concatenate(rows).astype(np.float32))
    (folder / "columns.txt").write_text("".join(f"{name}\n" for name in columns))


def made_up_features(folder, cost, random):
    ids = list(cost)
    random.shuffle(ids)  # the order of a folder is not that of the data set
    steps, loops, one_shot, task = [], [], [], []
    for i in ids:
        rows = np.zeros((random.integers(2, 70), 43))
        rows[np.arange(len(rows)), random.integers(0, 21, len(rows))] = 1
        rows[:, 21:25] = random.integers(0, 9, (len(rows), 4))
        rows[0, 19] = 50 * cost[i]
        steps.append(rows)
        rows = random.uniform(1, 12, (random.integers(1, 14), len(LOOPS)))
        rows[:, LOOPS.index("float_mad")] = 8 + 3 * cost[i]
        rows[:, [at for at, name in enumerate(LOOPS) if name.endswith("register")]] = 0
        loops.append(rows)
        row = random.uniform(0, 1, (1, 748))
        row[0, 700:730] = 3 * cost[i]
        one_shot.append(row)
        task.append(np.full((1, 6), float(i // 1000)))
    write_features(folder / "steps", ids, steps, KINDS + [f"p{p}" for p in range(22)])
    write_features(folder / "loops", ids, loops, LOOPS)
    write_features(folder / "one-shot", ids, one_shot, [f"c{c}" for c in range(748)])
    write_features(folder / "task", ids, task, [f"t{t}" for t in range(6)])
    (folder / "hardware.json").write_text(json.dumps({name: {"l1_bytes": 32768, "l2_bytes": 1 << 19, "vector_bytes": 64 >> at, "vector_registers": 32 >> at}
                                                      for at, name in enumerate(PLATFORMS)}))


def check_losses(corpus):
    """Losses against what they are by hand, and the metrics against draws."""
    there = torch.tensor([[True, True, True]])
    good, bad = torch.tensor([[3.0, 2.0, 1.0]]), torch.tensor([[1.0, 2.0, 3.0]])
    speeds = torch.tensor([[1.0, 0.5, 0.25]])
    assert losses.lambda_rank(good, speeds, there) < losses.lambda_rank(bad, speeds, there)
    assert losses.list_net(good, speeds, there, 0.2) < losses.list_net(bad, speeds, there, 0.2)
    assert float(losses.log_error(torch.log(speeds) + 7, speeds, there)) < 1e-9
    masked = torch.tensor([[True, True, False]])
    assert torch.allclose(losses.lambda_rank(good, speeds, masked), losses.lambda_rank(good[:, :2], speeds[:, :2], masked[:, :2]))
    seconds = np.array([1.0, 2.0, 4.0, np.inf])
    times, ratios = metrics.random_times(seconds, (1, 2))
    assert abs(ratios[0] - (1 + 0.5 + 0.25) / 4) < 1e-9 and abs(ratios[1] - (3 * 1 + 2 * 0.5 + 1 * 0.25) / 6) < 1e-9
    assert abs(times[0] - 7 / 3) < 1e-9
    weights = losses.inverse_density(np.array([0.0] * 9 + [1.0]))
    assert abs(weights[-1] / weights[0] - 9) < 1e-9
    small, large = (data.share_of_labels(corpus, share, "tasks", 1, 0) for share in (0.2, 0.6))
    assert (small <= large).all() and small.sum() < large.sum()
    assert corpus.speeds(0)[3] == 0 and np.nanmax(corpus.speeds(0)) == 1


def check_algorithms(folder):
    """Tasks of one key by different algorithms: they have their own programs, and are learned from as one layer."""
    folder.mkdir()
    tasks = made_up_tasks()[:2]
    tasks.append({**tasks[0], "algorithm": "winograd_f4"})
    named = [{"task": t["key"], "lowered_for": "any", **({"algorithm": t["algorithm"]} if "algorithm" in t else {})} for t in tasks]
    seconds = [[4.0, 2.0], [3.0, 6.0], [1.0, 8.0]]
    programs = [{**n, "ids": [10 * at, 10 * at + 1], "sources": [0, 1], "schedules": ["", ""]} for at, n in enumerate(named)]
    labels = [{**n, "pass": 0, "ids": [10 * at, 10 * at + 1], "status": [0, 0], "least": seconds[at], "median": seconds[at], "samples": [1, 1],
               "contended": [False, False], "time": [1, 1]} for at, n in enumerate(named)]
    files = [write_lines(folder, name, lines) for name, lines in (("tasks.jsonl.gz", tasks), ("programs.jsonl.gz", programs), ("labels-1.jsonl.gz", labels),
                                                                   ("kernels.jsonl.gz", [{"kernel": "k", "text": ""}]))]
    platform = {"file": "labels-1.jsonl.gz", "target": "wide", "target_key": "wide", "machine": "made up", "threads": 1, "kind": "time"}
    (folder / "manifest.json").write_text(json.dumps({"format": 1, "platforms": [platform], "files": files}))
    corpus = data.load(folder)
    assert corpus.layer_of.tolist() == [0, 1, 0] and corpus.tasks[2].algorithm == "winograd_f4"
    assert corpus.speeds(0).tolist() == [0.25, 0.5, 1.0, 0.5, 1.0, 0.125]
    assert sorted(programs.tolist() for _, programs in batches.Examples(corpus, [0, 1, 2], [0]).groups) == [[0, 1, 4, 5], [2, 3]]
    data.keep_algorithm(corpus, "winograd")
    assert corpus.split("train") == [2]


def check_choices(corpus, runs, folder):
    """A choice is taken where the score is far enough above the default's, by hand and on a whole data set."""
    gains, spreads, seconds = np.array([0.0, 2.0, 1.0]), np.array([0.0, 0.8, 0.1]), np.array([2.0, 4.0, 1.0])
    assert choices.chosen(gains, spreads, seconds, 0, 1.0) == (0.5, True)
    assert choices.chosen(gains, spreads, seconds, 0, 2.0) == (2.0, True)
    assert choices.chosen(gains, np.array([0.0, 0.8, 0.6]), seconds, 0, 3.0) == (1.0, False)
    gain, spread = choices.set_gains(np.array([[1.0, 3.0], [2.0, 2.0]]), np.array([[0.0, 3.0], [0.0, 1.0]]), 0)
    assert gain.tolist() == [0.0, 1.0] and spread.tolist() == [0.0, np.sqrt(5 + 1)]
    choices.write(corpus, runs, folder / "choices.md")
    lines = [line.split(" | ") for line in (folder / "choices.md").read_text().splitlines() if line.startswith("| all |")]
    assert len(lines) == len(choices.SHARES) and float(lines[0][5].rstrip("%")) >= float(lines[-1][5].rstrip("%")), lines


def check_gains():
    """The numbers under which errors are most likely: noise alone where embeddings are equal, more along the direction in which the network errs."""
    random = np.random.default_rng(1)
    embeddings = random.normal(size=(4000, 3)) * np.array([1.0, 1.0, 0.0])
    errors = random.normal(size=4000) * np.sqrt(0.05**2 + 0.3**2 * embeddings[:, 0]**2)
    numbers = gains.fit(errors, np.zeros(4000), embeddings)
    assert 0.04**2 < numbers[0] < 0.06**2 and 0.25**2 < numbers[2] < 0.35**2 and numbers[3] < 0.05**2, numbers
    one, two = gains.coverage(numbers, errors, np.zeros(4000), embeddings)
    assert 0.65 < one < 0.71 and 0.93 < two < 0.97, (one, two)


def check_placed():
    """A run's scores where another set numbers platforms and programs otherwise."""
    run = {"ids": np.array([3, 1, 7]), "platforms": np.array(["wide", "narrow"]), "scores": np.array([[1.0, 2.0, 9.0], [3.0, 4.0, 9.0]])}
    corpus = types.SimpleNamespace(ids=np.array([1, 3]), platform_keys=["narrow", "wide"])
    assert evaluate.placed(corpus, run).tolist() == [[4.0, 3.0], [2.0, 1.0]]
    corpus.platform_keys = ["narrow", "other"]
    try:
        evaluate.placed(corpus, run)
        raise AssertionError("scores for a platform that the run does not know")
    except ValueError as error:
        assert "other" in str(error)


def check_nearest():
    """The main operator's kind and extents, and which of two tasks is nearer."""
    def task(text):
        return data.tileset.Task(0, "k", "t", "n", "conv", "f", "train", 1.0, True, "k", text)
    text = "task anchor=0 x\ngraph {{\n  %x: f32[1, {0}, 4]@1:16 = input\n  %v: f32[1, {0}, 2]@1:16 = conv(%x) group={1}\n}}\n"
    one, two, far, grouped = (baselines.shape_of(task(text.format(*at))) for at in ((8, 1), (16, 1), (64, 1), (8, 4)))
    assert one[0] == "conv" and one[1].tolist() == [0, 3, 2, 0, 3, 1] and grouped[0] == "conv grouped"
    assert baselines.distance(one, two) == 2 and baselines.distance(one, far) == 6 and baselines.distance(one, grouped) > 1e6


def check_pools():
    """Pools with and without what rules made, of one task whose times are known: the default, a rule's point, and 30 others."""
    count = 32
    seconds = np.array([np.arange(count) + 10.0, np.arange(count)[::-1] + 10.0, np.full(count, np.nan)])
    seconds[0, 0], seconds[0, 1], seconds[1, :2], seconds[1, 5] = 4, 2, (1, 50), np.nan   # the default takes twice a rule's point
    task = data.tileset.Task(0, "k", "t", "n", "conv", "f", "test", 1.0, True, "k", "")
    sources = np.array([0, 4] + [1] * (count - 2))
    corpus = data.Corpus([task], np.arange(count), sources, [""] * count, np.array([0, count]), seconds, np.full(seconds.shape, np.nan), ["a", "b", "c"])
    corpus.kinds, corpus.chips = ["time"] * 3, ["one", "two", "one"]
    parts = evaluate.report(corpus, {}, "test", draws=10)["platforms"]["a"]
    assert {kind: part["pool"] for kind, part in parts.items()} == {"all": 32, "without rules": 30}
    for kind, copy, best in (("all", [0.5, 0.5], None), ("without rules", [2 / 41, 2 / 37], 2 / 12)):
        rows = {title: row["mean"][:2] for title, row in parts[kind]["rows"].items()}
        assert rows["default schedule"] == [0.5, 0.5] and rows["best of rules"] == [1, 1] and np.allclose(rows["copy of b's times"], copy), rows
        assert "copy of c's times, the same chip" not in rows and (best is None or rows["best of the pool"][0] == best), rows
    made = []
    for at, times in enumerate(([2.0, 4.0], [8.0])):   # the first knows two tasks, the second the last of these
        made.append(evaluate.Outcome())
        for number, time in enumerate(times):
            made[-1].add(evaluate.Pool(number + at, None, None, 2.0, "f"), [time] * 3)
    assert evaluate.ahead([made[0]], [made[1]], 5) == (1, [[0.25, 0.25, 0.25]] * 2)
    chip = data.chip_of({"machine": "AMD EPYC, 2 cores, L2 512K, features 7d"})
    assert chip == data.chip_of({"machine": "AMD EPYC, 4 cores, L2 512K, features 0c"}) == "AMD EPYC, L2 512K"
    assert chip != data.chip_of({"machine": "AMD EPYC, 2 cores, L2 1024K, features 7d"})


def check_export(corpus, run, folder):
    """The file gives what PyTorch gives, from raw features."""
    path = export.export(run, corpus, folder / f"{run.name}.onnx")
    difference = export.compare(run, corpus, path, np.arange(export.BATCH))
    assert difference < 2e-3, f"{run.name}: the exported model differs by {difference}"


def train_all(place, features, corpus, runs):
    small = {"epochs": 2, "loss.size": 64, "patience": 3}
    for path in sorted(configs.FOLDER.glob("*.yaml")):
        name, changes = path.stem, dict(small)
        if configs.load(name)["model"] == "trees":
            changes = {"rounds": 20}
        if configs.load(name)["loss"].get("batch") == "lists":
            changes["loss.size"] = 4
        platforms = "0,1" if name == "mtl-tlp" or name.startswith("ranker") else "0"
        arguments = train.parser().parse_args([name, "--data", str(place), "--features", str(features), "--platforms", platforms, "--out",
                                               str(runs / f"{name}-0-1")])
        arguments.set = [f"{key}={value}" for key, value in changes.items()]
        train.run(arguments, corpus)
        assert train.run(arguments, corpus) == json.loads((runs / f"{name}-0-1" / "done.json").read_text())


def check_kinds(corpus):
    """Labels of two kinds are refused."""
    known, corpus.kinds = corpus.kinds, ["time", "estimate"]
    data.check_one_kind(corpus, [1])
    try:
        data.check_one_kind(corpus, [0, 1])
    except SystemExit as refusal:
        assert "1 (" in str(refusal) and "estimate" in str(refusal), refusal
    else:
        raise AssertionError("times and estimates were learned from together")
    corpus.kinds = known


def check_nothing_held_out(place, features, corpus, folder):
    """A platform that no family of validation has labels of: the last epoch's weights are kept."""
    known = corpus.seconds.copy()
    corpus.seconds[:, np.isin(corpus.task_of, corpus.split("validation"))] = np.nan
    arguments = train.parser().parse_args(["mlp", "--data", str(place), "--features", str(features), "--out", str(folder / "alone"), "--set", "epochs=2"])
    assert train.run(arguments, corpus)["held_out"] is None and (folder / "alone" / "weights.pt").exists()
    corpus.seconds = known


def check_resume(place, features, corpus, folder):
    """A run that was ended in the middle gives the same scores as one that was not."""
    def arguments(out):
        return train.parser().parse_args(["mlp", "--data", str(place), "--features", str(features), "--out", str(folder / out),
                                          "--set", "epochs=4", "--set", "loss.size=64"])
    train.run(arguments("whole"), corpus)
    before, train.SAVE_SECONDS = train.SAVE_SECONDS, -1
    run_epoch = train.Training.run_epoch

    def ended(self):
        if self.epoch == 2:
            raise KeyboardInterrupt
        return run_epoch(self)
    train.Training.run_epoch = ended
    try:
        train.run(arguments("parts"), corpus)
        raise AssertionError("the run was not ended")
    except KeyboardInterrupt:
        train.Training.run_epoch = run_epoch
    train.run(arguments("parts"), corpus)
    train.SAVE_SECONDS = before
    whole, parts = (np.load(folder / out / "scores.npz")["scores"] for out in ("whole", "parts"))
    assert np.array_equal(whole, parts, equal_nan=True), "a resumed run differs"


def check_transfer(place, features, corpus, folder):
    """One source, and no source, with two shares of labels; the platforms agree, as their times were made to."""
    arguments = argparse.Namespace(data=str(place), features=str(features), runs=str(folder / "transfer"), set=["epochs=1", "loss.size=64"],
                                   seeds=[1], share_by="programs", split="test", shares=(0.5, 1.0))
    results = {"mlp": transfer.measured(corpus, 0, "mlp", [1], arguments)}
    assert set(results["mlp"]) == {(1, 0.0), (0, 0.5), (0, 1.0), (1, 0.5), (1, 1.0)}
    table = transfer.table(corpus, 0, [1], results, arguments)
    assert "| TenSet-MLP, 1 source, 50% of the labels | 6 |" in table and "| copy of narrow's times | 6 |" in table
    assert "| TenSet-MLP, 1 source, 50% of the labels | TenSet-MLP, no source, 50% of the labels | " in table
    assert "| TenSet-MLP, 1 source, 50% of the labels | copy of narrow's times | 6 | -" in table
    assert json.loads((folder / "transfer" / "mlp-0-1-0.5-programs" / "config.json").read_text())["config"]["epochs"] == 2
    assert transfer.others(corpus, 0) == [1]
    assert transfer.agreement(corpus)["wide", "narrow"][0] > 0.9


def check_study(place, features, folder):
    """The command of all tables: what it trains in bf16 is in the tables, and is exported under the names that tuners look for."""
    common = ["--data", str(place), "--features", str(features), "--out", str(folder / "study"), "--seeds", "1,2", "--platforms", "1,0", "--set", "epochs=1",
              "--set", "loss.size=64", "--set", "precision=bf16"]
    study.main([*common, "--only", "tlp-attention-rank,one-shot,mtl-tlp", "--parts", "train,tables,export"])
    assert sorted(path.name for path in (folder / "study" / "models").iterdir()) == [f"{kind}-{seed}.onnx" for kind in ("mtl-tlp", "one-shot", "tlp") for seed in (1, 2)]
    tables = (folder / "study" / "tables.md").read_text()
    assert "| MTL-TLP, from 2 platforms, 2 seeds together |" in tables and "| One-Shot, as released |" in tables
    try:
        study.main([*common, "--only", "tlp-attention-rank,tlp-wide", "--parts", "train,export"])
    except ValueError as refusal:
        assert "two networks of the kind tlp" in str(refusal)
    else:
        raise AssertionError("one network was written over another of its kind")


def check_budget_tables():
    """Two kernels of a network: qualities, seconds, and networks, against what they are by hand."""
    def run(*gains, searching, measured=4):
        return {"gains": list(gains), "trials": 4, "measured": measured, "searching": searching, "measuring": 2.0 * measured}

    def kernel(name, calls, trees, ranker, default):
        return {"name": name, "model": "net", "calls": calls, "default": default, "methods": {"gbt": [trees], "ranker": [ranker]},
                "again": {"gbt": {"1": 0.5, "4": 0.8}, "ranker": {"1": 1.0, "4": None}}}
    entries = [kernel("a", 2, run([1, 8.0], [3, 2.0], searching=[[2, 1.0], [4, 3.0]]), run([1, 2.0], [2, 1.0], searching=[[4, 0.5]], measured=0), 1.0),
               kernel("b", 1, run([1, 4.0], searching=[[4, 2.0]]), run([1, 8.0], searching=[[4, 1.0]]), 4.0)]
    a, b = entries
    assert budget_tables.quality(a, "gbt", 1) == 1 / 8 and budget_tables.quality(a, "gbt", 4) == 1 / 2 and budget_tables.quality(b, "ranker", 4) == 1 / 2
    assert budget_tables.seconds_of_trial(a) == 2 and budget_tables.seconds_after(a, a["methods"]["gbt"][0], 3) == 3 + 6
    assert budget_tables.seconds_after(a, a["methods"]["ranker"][0], 0) == 0.5
    assert budget_tables.sooner(a, "ranker") == [(3 + 8) / (0.5 + 2)] and budget_tables.sooner(b, "ranker") == [None]
    text = budget_tables.text(entries, ["gbt", "ranker"], True)
    assert "| ranker | 0.500 (0.500..0.500) | 0.707 (0.707..0.707) | - |" in text, text
    assert "| net | 2 | 0.300 | 0.750 | 0.500 | 0.600 |" in text, text    # (2 + 4) over 20, 8, 12, 10
    assert "| net | 21 s | 8000.000 ms | 18 s, 1.2, 0.800 |" in text, text
    assert "| ranker | 1.000 | - | - | - | 0.000 |" in text, text
    assert budget_tables.figure(entries, ["gbt", "ranker"]).count("<polyline") == 2


def main():
    train.settle()
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        place, features, runs = folder / "set", folder / "features", folder / "runs"
        place.mkdir()
        made_up_features(features, made_up_data(place, random), random)
        corpus = data.load(place, features, ["steps", "loops", "one-shot", "task", "hardware"])
        check_losses(corpus)
        check_placed()
        check_nearest()
        check_gains()
        check_pools()
        check_algorithms(folder / "algorithms")
        train_all(place, features, corpus, runs)
        check_kinds(corpus)
        check_nothing_held_out(place, features, corpus, folder)
        check_resume(place, features, corpus, folder)
        for run in sorted(runs.iterdir()):
            if (run / "weights.pt").exists():
                check_export(corpus, run, folder)
        report = evaluate.report(corpus, evaluate.read_runs(runs), "test", draws=50)
        (folder / "tables.md").write_text(evaluate.markdown(report))
        check_choices(corpus, evaluate.read_runs(runs), folder)
        rows = report["platforms"]["wide"]["all"]["rows"]
        for method in ("XGBoost, statements", "TenSet-MLP", "Tilewright ranker, from 2 platforms"):
            assert rows[method]["mean"][0] > rows["one random program"]["mean"][0], f"{method} ranks no better than chance"
        assert rows["second label (A/A)"]["mean"][0] > 0.95
        check_transfer(place, features, corpus, folder)
        check_study(place, features, folder)
    check_budget_tables()
    print("predictors: ok")


if __name__ == "__main__":
    main()
