#!/bin/sh
# cross_cc.sh MACHINE SOURCE OUTPUT [FLAGS...]: a dynamically linked C program for another machine, by clang and lld with
# Debian's libc6-dev-*-cross; no compiler for that machine is needed. Exit 77: that libc is not installed.
# LIBRARIES: shared libraries to link with.
# MACHINE: aarch64, riscv64 or armv7; the result runs under `qemu-aarch64 -L /usr/aarch64-linux-gnu` and the like.
set -e
machine=$1 source=$2 output=$3
shift 3
case $machine in
  aarch64) triple=aarch64-linux-gnu emulation=aarch64linux loader=ld-linux-aarch64.so.1 flags= ;;
  riscv64) triple=riscv64-linux-gnu emulation=elf64lriscv loader=ld-linux-riscv64-lp64d.so.1 flags="-march=rv64gc -mabi=lp64d" ;;
  armv7) triple=arm-linux-gnueabihf emulation=armelf_linux_eabi loader=ld-linux-armhf.so.3 flags="-march=armv7ve -mfpu=neon-vfpv4" ;;
  *) echo "unknown machine $machine"; exit 1 ;;
esac
root=/usr/$triple
[ -f $root/lib/crt1.o ] || exit 77
"${CLANG:-clang-22}" --target=$triple $flags -O1 -isystem $root/include "$@" -c "$source" -o "$output.o"
# libc.so is a linker script with the paths of a native system: name the libraries themselves.
"${LLD:-ld.lld-22}" -m $emulation --dynamic-linker /lib/$loader -o "$output" $root/lib/crt1.o $root/lib/crti.o "$output.o" $LIBRARIES \
  $root/lib/libc.so.6 $root/lib/libc_nonshared.a $root/lib/$loader $root/lib/crtn.o
rm "$output.o"
