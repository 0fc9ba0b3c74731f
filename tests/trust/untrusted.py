#!/usr/bin/env python3
"""--untrusted: the work is done as without it, and the process that does it sees no other files, starts no programs, has no
network, and ends at its limits with one clear line and nothing left behind.

    untrusted.py [--tilewright BUILD/tilewright]
"""
import argparse
import os
import pathlib
import subprocess
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DIGITS = ROOT / "examples/digits/digits.onnx"
SAID = "untrusted: a process of its own"


class Runs:
    def __init__(self, tilewright, folder):
        self.tilewright, self.folder = tilewright, folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()

    def __call__(self, *words, code=0, prefix=()):
        done = subprocess.run([*prefix, self.tilewright, *map(str, words)], capture_output=True, text=True, cwd=self.folder,
                              env={**os.environ, "TMPDIR": str(self.temporary)})
        assert done.returncode == code, f"{words}: status {done.returncode}, expected {code}\n{done.stdout}{done.stderr}"
        assert not list(self.temporary.iterdir()), f"{words}: left {list(self.temporary.iterdir())}"
        return done.stdout + done.stderr


def matmuls(path, size, count):
    """A chain of products with weights of their own, in a file beside the model: much to pack and to read."""
    nodes, weights, value = [], [], "x"
    for i in range(count):
        weights.append(numpy_helper.from_array(np.full((size, size), 0.01, np.float32), f"w{i}"))
        nodes.append(helper.make_node("MatMul", [value, f"w{i}"], [f"y{i}"]))
        value = f"y{i}"
    shape = [size, size]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(value, TensorProto.FLOAT, shape)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path,
              save_as_external_data=True, location=path.stem + ".data")


def check_work(run, folder):
    """Every command gives what it gives without the flag."""
    said = run("compile", DIGITS, "-o", "a.so", "--name", "d", "--untrusted")
    assert SAID in said and "no programs, no network" in said, said
    confined = (folder / "a.so").read_bytes()
    run("compile", DIGITS, "-o", "a.so", "--name", "d")
    assert (folder / "a.so").read_bytes() == confined
    run("compile", DIGITS, "-o", "c.so", "--report", "c.html", "--report-errors", 2, "--untrusted")
    assert '"no_times":""' in (folder / "c.html").read_text()
    assert run("inspect", DIGITS, "--json", "--untrusted") == run("inspect", DIGITS, "--json")
    assert "the work" not in run("inspect", "a.so", "--untrusted")
    assert "ok " in run("verify", "a.so", DIGITS, "--untrusted", "--per-node")
    run("quantize", DIGITS, "-o", "q.onnx", "--random", 2, "--untrusted")
    run("compile", "q.onnx", "-o", "q.so", "--untrusted")
    model = folder / "data/chain.onnx"
    model.parent.mkdir()
    matmuls(model, 64, 2)
    run("compile", model, "-o", "chain.so", "--untrusted")
    # A cache's tree of links
    (folder / "cache/blobs").mkdir(parents=True)
    (folder / "cache/snapshots/1").mkdir(parents=True)
    for name in ("chain.onnx", "chain.data"):
        (folder / "cache/blobs" / name).write_bytes((model.parent / name).read_bytes())
        (folder / "cache/snapshots/1" / name).symlink_to(f"../../blobs/{name}")
    run("compile", "cache/snapshots/1/chain.onnx", "-o", "cached.so", "--untrusted", "--name", "c")
    # Errors are those of the work, told once
    (folder / "none.onnx").write_bytes(b"\0\1\2")
    said = run("inspect", "none.onnx", "--untrusted", code=1)
    assert said.count("error:") == 1, said
    assert '"error"' in run("inspect", "none.onnx", "--untrusted", "--json", code=1)
    run("compile", DIGITS, "--untrusted", "--tune", "1s", code=3)
    run("compile", DIGITS, "--untrusted", "--cache", "cache", code=3)


def check_limits(run, folder):
    model = folder / "large.onnx"
    matmuls(model, 1024, 24)   # 100 MB
    begin = time.monotonic()
    said = run("compile", model, "-o", "l.so", "--untrusted", "--limit-seconds", 0.01, code=1)
    assert "ended after 0.01 seconds" in said and time.monotonic() - begin < 30, said
    said = run("compile", model, "-o", "l.so", "--untrusted", "--limit-memory", 0.15, code=1)
    assert "memory" in said, said
    for flag, value, words in (("--limit-memory", 0, "above 0"), ("--limit-memory", "inf", "at most"), ("--limit-seconds", 0, "above 0")):
        said = run("compile", model, "-o", "l.so", "--untrusted", flag, value, code=1)
        assert flag in said and words in said, said
        for command in (["compile", model, "-o", "l.so"], ["inspect", model], ["verify", "l.so", model]):
            said = run(*command, flag, 1, code=1)   # a limit that nothing is held to
            assert f"{flag} holds the work of --untrusted" in said, said
    assert not (folder / "l.so").exists() and not [f for f in folder.iterdir() if "l.so" in f.name], list(folder.iterdir())


def check_files(run, folder):
    """What lies outside of the folders that were named is not there for the work: a model cannot have it read."""
    outside = folder / "outside"
    outside.mkdir()
    model = folder / "inside/m.onnx"
    model.parent.mkdir()
    matmuls(model, 64, 1)
    (model.parent / "m.data").rename(outside / "m.data")
    said = run("compile", model, "-o", "m.so", "--untrusted", code=5)
    assert "m.data" in said, said
    # A library whose code would do it: what the kernel refuses, for any code in the process
    run("compile", DIGITS, "-o", "noted.so")
    subprocess.run(["objcopy", "--dump-section", f".note.tilewright={folder / 'note.bin'}", folder / "noted.so"], check=True)
    probe = folder / "probe.c"
    probe.write_text(PROBE.replace("OUTSIDE", str(outside / "m.data")).replace("NOTE", str(folder / "note.bin")))
    library = folder / "probe/probe.so"
    library.parent.mkdir()
    subprocess.run(["cc", "-shared", "-fPIC", probe, "-o", library], check=True)
    said = run("verify", library, DIGITS, "--no-check", "--untrusted", code=3)
    for line in ("other file: Permission denied", "written file: Permission denied", "program: Operation not permitted",
                 "network: Operation not permitted", "terminal: Operation not permitted", "signal: Operation not permitted"):
        assert line in said, said
    assert not (library.parent / "made").exists()
    said = run("verify", library, DIGITS, "--no-check", code=3)
    assert "other file: Success" in said and "written file: Success" in said, said


# A hostile library, with the manifest of a good one: it works when it is loaded.
PROBE = r"""
__asm__(".section .note.tilewright, \"a\", @note\n.balign 4\n.incbin \"NOTE\"\n.previous\n");
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
const void* tw_query(unsigned version) { return 0; }
static void tell(const char* what, long status) { fprintf(stderr, "%s: %s\n", what, status < 0 ? strerror(errno) : "Success"); }
__attribute__((constructor)) static void begin(void) {
  tell("other file", open("OUTSIDE", O_RDONLY));
  tell("written file", open("probe/made", O_CREAT | O_WRONLY, 0600));
  unlink("probe/made");
  tell("network", socket(AF_INET, SOCK_STREAM, 0));
  tell("terminal", ioctl(0, TIOCSTI, "x"));
  tell("signal", kill(getppid(), 0));
  char* const words[] = {"true", 0};
  if (socket(AF_INET, SOCK_STREAM, 0) < 0) tell("program", execve("/bin/true", words, 0));   /* only where it is refused */
}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tilewright", default=ROOT / "build/release/tilewright", type=pathlib.Path)
    tilewright = parser.parse_args().tilewright.resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        run = Runs(tilewright, folder)
        if "cannot confine" in subprocess.run([tilewright, "inspect", DIGITS, "--untrusted"], capture_output=True, text=True).stderr:
            print("untrusted: not run, as this system has no Landlock")
            return
        check_work(run, folder)
        check_limits(run, folder)
        check_files(run, folder)
    print("untrusted: ok")


if __name__ == "__main__":
    main()
