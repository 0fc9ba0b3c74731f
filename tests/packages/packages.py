#!/usr/bin/env python3
"""The packages: built, equal when built again, and used where nothing else is.

    packages.py --build build/release                     the wheel in a fresh Python environment
    packages.py --build build/release --clean-root [--model resnet50.onnx]
                both, each in a Debian of its own with nothing but `apt` and what the package names (by mmdebstrap, as
                root): the digits, the model and a library for ARM64, and how long it takes to the first result
"""
import argparse
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 75 * 10**6    # bytes of a package
FIRST_RESULT = 120    # seconds from a bare system to the first result


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **options).stdout


def package(build, output, *flags):
    # A commit in between would be another time
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    listed = run(sys.executable, ROOT / "scripts/package/package.py", "--build", build, "--output", output, *flags,
                 env=environment)
    return [pathlib.Path(line) for line in listed.split()]


def check_package(file):
    assert file.stat().st_size <= LIMIT, f"{file.name} has {file.stat().st_size} bytes, the limit is {LIMIT}"
    print(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB", flush=True)


def check_wheel(build, folder):
    """Builds it twice, installs it, and compiles with it."""
    first, = package(build, folder / "first", "--wheel")
    second, = package(build, folder / "second", "--wheel")
    assert first.read_bytes() == second.read_bytes(), "two wheels of one build differ"
    check_package(first)
    venv = folder / "venv"
    run(sys.executable, "-m", "venv", venv)
    run(venv / "bin/python", "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", first)
    shutil.rmtree(folder / "second")
    tilewright = venv / "bin/tilewright"
    said = run(tilewright, "--version")
    assert "LLVM" in said and "cortex-a72" in said, said   # with the descriptions that are in the wheel
    loaded = run("ldd", next(venv.rglob("tilewright/bin/tilewright")))
    assert "libLLVM" not in loaded, f"LLVM is not in the program:\n{loaded}"
    for line in loaded.splitlines():
        if "libprotobuf" in line:
            assert str(venv) in line, f"not the wheel's own: {line}"
    run(tilewright, "compile", ROOT / "examples/digits/digits.onnx", "-o", folder / "digits.so")
    assert "logits" in run(tilewright, "run", folder / "digits.so", "--random", 1)
    assert (venv / "share/man/man1/tilewright.1").is_file()
    check_module(venv, folder / "digits.so")
    check_shells(venv)
    cmake = run(venv / "bin/python", "-c", "import tilewright; print(tilewright.CMAKE)").strip()
    assert (pathlib.Path(cmake) / "tilewrightConfig.cmake").is_file()
    check_boards(venv, tilewright, folder)
    check_description(venv)
    print("wheel: equal when built again, installs, compiles and runs the digits")


def check_boards(venv, tilewright, folder):
    """What measures on boards, and what runs libraries there."""
    workers = pathlib.Path(run(venv / "bin/python", "-c", "import tilewright; print(tilewright.WORKERS)").strip())
    assert {file.suffix for file in workers.iterdir()} >= {".x86_64", ".aarch64", ".armv7"}, list(workers.iterdir())
    told = subprocess.run([workers / "tilewright-worker.x86_64"], capture_output=True, text=True)
    assert "tilewright-worker DIR" in told.stdout + told.stderr, told
    run(tilewright, "compile", ROOT / "examples/digits/digits.onnx", "-o", folder / "board.so", "--with-runner")
    assert "logits" in run(folder / "board.run", "run", folder / "board.so", "--random", 1)


def check_description(venv):
    """The long description has no link to where nothing is, and the pages that it names are in the package."""
    info, = venv.rglob("tilewright-*.dist-info/METADATA")
    text = info.read_text()
    assert "Provides-Extra: numpy" in text
    dead = [link for link in re.findall(r"\]\(([^)]*)\)", text) if not link.startswith(("https://", "#"))]
    assert not dead, f"links to no place: {dead}"
    docs = pathlib.Path(run(venv / "bin/python", "-c", "import tilewright; print(tilewright.DOCS)").strip())
    named = re.findall(r" \(`([^`]+\.md)`\)", text)
    assert named and all((docs / page).is_file() for page in named), named
    home = wheel_module().description((docs / "README.md").read_text(), "https://example.org/tilewright/")
    assert "](https://example.org/tilewright/docs/guide/README.md)" in home


def wheel_module():
    sys.path.insert(0, str(ROOT / "scripts/package"))
    import wheel
    return wheel


def check_unfinished(folder):
    """What is no finished build is told in one line, and no package is written."""
    empty = folder / "empty"
    empty.mkdir()
    told = subprocess.run([sys.executable, ROOT / "scripts/package/package.py", "--build", empty, "--output", empty / "out"],
                          capture_output=True, text=True)
    assert told.returncode == 1 and told.stderr.count("\n") == 1 and "is no finished build" in told.stderr, told.stderr
    assert not list((empty / "out").iterdir()), "a package of nothing"
    print("an unfinished build: told in a line")


def check_module(venv, library):
    """`tilewright.Model` of the wheel, with this Python's numpy."""
    numpy = importlib.util.find_spec("numpy")
    if not numpy:
        return print("the wheel's Model: not run, this Python has no numpy")
    use = ("import sys; sys.path.append(sys.argv[1])\nimport numpy\nfrom tilewright import Model\n"
           "print(Model(sys.argv[2])(numpy.zeros((1, 1, 8, 8), 'f4')).shape)")
    said = run(venv / "bin/python", "-c", use, pathlib.Path(numpy.origin).parents[1], library)
    assert said.strip() == "(1, 10)", said
    print("the wheel's Model runs the digits")


def check_shells(prefix):
    """What each shell completes, by its script."""
    share = prefix / "share"
    bash = share / "bash-completion/completions/tilewright"
    asked = f"source {bash}; COMP_WORDS=(tilewright compile --out); COMP_CWORD=2; _tilewright; echo ${{COMPREPLY[@]}}"
    assert run("bash", "-c", asked).split() == ["--output"]
    path = {"PATH": f"{prefix / 'bin'}:/usr/bin:/bin", "HOME": str(prefix)}
    asked = f"source {bash}; COMP_WORDS=(tilewright compile -t cortex-a7); COMP_CWORD=3; _tilewright; echo ${{COMPREPLY[@]}}"
    assert run("bash", "-c", asked, env=path).split() == ["cortex-a7", "cortex-a72", "cortex-a76", "cortex-a78"]
    fish = share / "fish/vendor_completions.d/tilewright.fish"
    assert "--output" in run("fish", "--no-config", "-c", f"source {fish}; complete -C 'tilewright compile --outp'", env=path)
    run("zsh", "-f", "-c", f"autoload -U compinit; compinit -D; source {share / 'zsh/site-functions/_tilewright'}", env=path)
    print("completion: bash, zsh and fish take it")


class CleanRoot:
    """A Debian of its own. `shared`: its folders that are folders of this machine."""

    ENTER = ('root=$1; shift; mount -t proc proc "$root/proc"; mount --rbind /dev "$root/dev"; mount --rbind /sys "$root/sys"; '
             'while [ "$1" != -- ]; do mount --bind "$1" "$root/$2"; shift 2; done; shift; exec chroot "$root" "$@"')

    def __init__(self, folder, packages="", shared=None):
        self.folder = folder
        self.shared = shared or {}
        include = [f"--include={packages}"] if packages else []
        run("mmdebstrap", "--variant=minbase", *include, "bookworm", folder)
        for place in self.shared:
            (folder / place).mkdir(parents=True)

    def __call__(self, *command, **environment):
        alone = ["unshare", "--fork", "--pid", "--mount", "sh", "-ec", self.ENTER, "root", self.folder]
        mounts = [word for place, here in self.shared.items() for word in (here, place)]
        done = subprocess.run([*alone, *mounts, "--", *command], capture_output=True, text=True,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", **environment})
        if done.returncode:
            sys.exit(f"in the clean root: {' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def put(self, file):
        shutil.copy(file, self.folder / "tmp")
        return f"/tmp/{file.name}"


def use(root, name, install, model):
    """From nothing to a first result, then the others."""
    digits = root.put(ROOT / "examples/digits/digits.onnx")
    start = time.monotonic()
    install()
    root("tilewright", "compile", digits, "-o", "/tmp/digits.so")
    assert "logits" in root("tilewright", "run", "/tmp/digits.so", "--random", "1")
    seconds = time.monotonic() - start
    assert seconds < FIRST_RESULT, f"{name}: {seconds:.0f} s to the first result"
    root("tilewright", "verify", "/tmp/digits.so", digits)
    root("tilewright", "compile", digits, "-t", "cortex-a72", "-o", "/tmp/arm.so")
    header = (root.folder / "tmp/arm.so").read_bytes()[:20]
    assert header[:4] == b"\x7fELF" and header[18] == 183, "not a library for ARM64"
    if model:
        inside = root.put(model)
        root("tilewright", "compile", inside, "-o", "/tmp/model.so")
        root("tilewright", "run", "/tmp/model.so", "--random", "1")
    print(f"{name}: {seconds:.1f} s from a bare Debian to the first result; "
          f"digits, ARM64{f', {model.name}' if model else ''}", flush=True)


def check_clean_roots(build, folder, model):
    wheel, deb = package(build, folder / "packages")
    again = package(build, folder / "again", "--deb")[0]
    assert deb.read_bytes() == again.read_bytes(), "two .debs of one build differ"
    for file in (wheel, deb):
        check_package(file)
    root = CleanRoot(folder / "deb")
    file = root.put(deb)
    use(root, "deb", lambda: root("dpkg", "-i", file), model)
    shutil.rmtree(folder / "deb")
    root = CleanRoot(folder / "wheel", "python3-venv")
    file = root.put(wheel)

    def install():
        root("python3", "-m", "venv", "/opt/tilewright")
        root("/opt/tilewright/bin/pip", "install", "--quiet", "--no-index", file)
        root("ln", "-s", "/opt/tilewright/bin/tilewright", "/usr/bin/tilewright")

    use(root, "wheel", install, model)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--clean-root", action="store_true")
    parser.add_argument("--model", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if arguments.clean_root:
            check_clean_roots(arguments.build, folder, arguments.model)
        else:
            check_unfinished(folder)
            check_wheel(arguments.build, folder)


if __name__ == "__main__":
    main()
