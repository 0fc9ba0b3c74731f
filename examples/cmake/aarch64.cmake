# A toolchain file for ARM64 by clang, with Debian's libraries for it (libc6-dev-arm64-cross, libgcc-12-dev-arm64-cross):
#   cmake -DCMAKE_TOOLCHAIN_FILE=aarch64.cmake
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
find_program(CLANG_PATH NAMES clang-22 clang REQUIRED)
set(CMAKE_C_COMPILER ${CLANG_PATH})
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT -fuse-ld=lld)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
