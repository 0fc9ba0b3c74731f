"""The commands that run a target's programs where the machine is another one."""
EMULATORS = {"aarch64-generic": ["qemu-aarch64", "-cpu", "max"], "armv7-generic": ["qemu-arm", "-cpu", "max"],
             "rv64gc": ["qemu-riscv64", "-cpu", "rv64,v=false"]}
