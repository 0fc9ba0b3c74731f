"""A wheel of an installed tree: the tree as the package `tilewright`, whose command runs the program in it."""
import base64
import hashlib
import pathlib
import re
import time
import zipfile

PROGRAMS = ("bin", "workers")   # the folders of what is run
HERE = pathlib.Path(__file__).resolve().parent
SHARED = ("share/bash-completion", "share/zsh", "share/fish", "share/man")   # go beside the environment's own


def tag(system):
    """For every Python, and for every Linux with a glibc as new as the one that the program was linked to."""
    return f"py3-none-manylinux_{system.glibc.replace('.', '_')}_{system.machine}"


def metadata(version):
    return (f"Metadata-Version: 2.1\nName: tilewright\nVersion: {version}\n"
            "Summary: Compiles ONNX models ahead of time into self-contained shared libraries\n"
            "Requires-Python: >=3.8\nProvides-Extra: numpy\nRequires-Dist: numpy; extra == 'numpy'\n"
            "Description-Content-Type: text/markdown\n\n")


def description(readme, home):
    """README where no file is beside it: its links begin with `home`, the repository's address; without one they say which page
    of the package they mean."""
    if home:
        return re.sub(r"\]\((?!\w+:)([^)]+)\)", rf"]({home.rstrip('/')}/\1)", readme)
    without_pictures = re.sub(r"^!\[.*\n\n?", "", readme, flags=re.M)
    linked = re.sub(r"\[([^]]+)\]\((?!\w+:)([^)]+)\)", r"\1 (`\2`)", without_pictures)
    return linked + ("\nThe pages named here are in the package: `python -c \"import tilewright; print(tilewright.DOCS)\"` prints "
                     "their folder.\n")


def contents(tree, system, home):
    """Name in the wheel -> bytes and whether it is a program."""
    version = system.version
    info, data = f"tilewright-{version}.dist-info", f"tilewright-{version}.data/data"
    files = {}
    for path in sorted(p for p in tree.rglob("*") if p.is_file()):
        name = path.relative_to(tree).as_posix()
        place = data if name.startswith(SHARED) else "tilewright"
        files[f"{place}/{name}"] = path.read_bytes(), path.parent.name in PROGRAMS
    for path in sorted((HERE / "python").glob("*.py")):
        files[f"tilewright/{path.name}"] = path.read_bytes(), False
    files["tilewright/model.py"] = (tree / "share/tilewright/python/tilewright.py").read_bytes(), False
    readme = (tree / "share/doc/tilewright/README.md").read_text()
    files[f"{info}/METADATA"] = (metadata(version) + description(readme, home)).encode(), False
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tilewright\nRoot-Is-Purelib: false\nTag: {tag(system)}\n".encode(), False
    files[f"{info}/entry_points.txt"] = b"[console_scripts]\ntilewright = tilewright.__main__:main\n", False
    return files, info


def write(tree, system, epoch, folder, home):
    files, info = contents(tree, system, home)
    record = ""
    for name, (text, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(text)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode(), False
    output = folder / f"tilewright-{system.version}-{tag(system)}.whl"
    partial = output.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, (text, program) in files.items():
            entry = zipfile.ZipInfo(name, time.gmtime(epoch)[:6])
            entry.external_attr = (0o100755 if program else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, text)
    partial.replace(output)
    return output
