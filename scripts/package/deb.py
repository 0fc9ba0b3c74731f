"""A Debian package of an installed tree, by dpkg-deb."""
import os
import shutil
import subprocess

from wheel import PROGRAMS


def control(system, kilobytes):
    return (f"Package: tilewright\nVersion: {system.version}\nArchitecture: {system.architecture}\nSection: devel\nPriority: optional\n"
            f"Maintainer: Tilewright's maintainers <maintainers@tilewright.invalid>\nInstalled-Size: {kilobytes}\n"
            f"Depends: libc6 (>= {system.glibc}), libstdc++6 (>= 12), libgcc-s1\n"
            "Description: compiles ONNX models ahead of time into self-contained shared libraries\n"
            " A model becomes a shared library with its weights inside, for this machine or another one.\n"
            " LLVM and lld are in the package; nothing else is needed to compile or to run.\n")


def write(tree, system, epoch, folder, work):
    shutil.copytree(tree, work / "usr")
    files = [path for path in work.rglob("*") if path.is_file()]
    kilobytes = sum(-(-path.stat().st_size // 1024) for path in files)
    (work / "DEBIAN").mkdir()
    (work / "DEBIAN/control").write_text(control(system, kilobytes))
    for path in [work, *work.rglob("*")]:
        program = path.is_dir() or path.parent.name in PROGRAMS
        path.chmod(0o755 if program else 0o644)
        os.utime(path, (epoch, epoch))
    output = folder / f"tilewright_{system.version}_{system.architecture}.deb"
    partial = output.with_suffix(".partial")
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "-z4", "--build", work, partial], check=True,
                   stdout=subprocess.DEVNULL, env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)})
    partial.replace(output)
    return output
