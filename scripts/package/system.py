"""The system that a build's program is for: this one, or the one below a cross build's sysroot."""
import os
import re
import subprocess

MACHINES = {62: ("x86_64", "amd64"), 183: ("aarch64", "arm64")}   # of ELF: Python's name and Debian's


def output(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True).stdout


class System:
    def __init__(self, build):
        self.program = build / "tilewright"
        cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M))
        self.version = cache["CMAKE_PROJECT_VERSION"]
        self.sysroot = cache.get("CMAKE_SYSROOT", "")
        self.emulator = list(filter(None, cache.get("CMAKE_CROSSCOMPILING_EMULATOR", "").split(";")))
        self.machine, self.architecture = MACHINES[int.from_bytes(self.program.read_bytes()[18:20], "little")]
        loader = re.search(r"program interpreter: ([^]]+)", output("readelf", "-l", self.program))[1]
        self.loader = [*self.emulator, self.place(loader)]
        self.glibc = re.search(r"release version (\d+\.\d+)", output(*self.loader, "--version"))[1]

    def place(self, file):
        """Where a file of the system is on this machine."""
        return self.sysroot + file

    def libraries(self):
        """Name and file of each shared library that the loader takes for the program."""
        for line in output(*self.loader, "--list", self.program).splitlines():
            name, arrow, file = (part.strip() for part in line.partition("=>"))
            if arrow:   # else what the kernel maps
                yield name.split("/")[-1], file.split(" (")[0].removeprefix(self.sysroot)

    def archives(self, build):
        """The system's static libraries that are in the program."""
        command = output("ninja", "-C", build, "-t", "commands", "tilewright").splitlines()[-1]
        begin = self.place("/usr/")
        return sorted({word[len(self.sysroot):] for word in command.split() if word.startswith(begin) and word.endswith(".a")})

    def package_of(self, file):
        """The Debian package that the file is of, or nothing."""
        target = "/" + os.path.relpath(os.path.realpath(self.place(file)), os.path.realpath(self.sysroot or "/"))
        for path in (file, target, "/usr" + target):
            found = output("dpkg-query", "--admindir", self.place("/var/lib/dpkg"), "-S", path, check=False)
            if found:
                return found.split(":")[0]
        return None
