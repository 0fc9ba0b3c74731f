"""What tests of tuning share: a folder with a model and a target of one core, and logs whose times leave nothing to chance."""
import json
import re
import subprocess


class TuningPlace:
    """A folder with a model, the target that tunes it, a log, and the program. The folder must be there."""

    def __init__(self, tilewright, folder):
        self.tilewright, self.folder = tilewright, folder
        self.model, self.target, self.log = folder / "m.onnx", folder / "chip.yaml", folder / "tuned.db"
        # One core: which records count does not depend on how they spread over this machine's
        self.target.write_text(re.sub(r"^cores: \d+", "cores: 1", self.must("target", "host"), flags=re.MULTILINE))

    def run(self, *words):
        return subprocess.run([str(word) for word in (self.tilewright, *words)], capture_output=True, text=True)

    def must(self, *words):
        done = self.run(*words)
        assert done.returncode == 0, (words, done.returncode, done.stdout[-600:], done.stderr[-900:])
        return done.stdout

    def last_is_fastest(self, log):
        """Writes another log, in which each kernel's last schedule is by far the fastest, so that what a compile takes is no chance. Gives the tasks that
        have records, and those that have such a schedule."""
        exported, changed = self.folder / "records.jsonl", self.folder / "changed.jsonl"
        self.must("log", "export", exported, "--log", self.log)
        last = {}
        lines = [json.loads(line) for line in exported.read_text().splitlines()]   # records, and the texts of their kernels and tasks
        for record in (line for line in lines if "status" in line):
            assert record["status"] in ("ok", "illegal"), record
            if record["status"] == "ok" and not record.get("about", "").endswith(" default"):
                last[record["task"], record["kernel"]] = record
        for record in last.values():
            record["seconds"] = [second * 1e-3 for second in record["seconds"]]
        changed.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.must("log", "import", changed, "--log", log)
        return {line["task"] for line in lines if "status" in line}, {task for task, _ in last}
