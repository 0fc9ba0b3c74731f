#!/usr/bin/env bash
# Builds the compiler for AArch64 hosts, and tries its packages in an emulator: aarch64.sh --tilewright build/release/tilewright
set -euo pipefail
cd "$(dirname "$0")/../.."
scripts/setup.sh aarch64
cmake --preset aarch64 >/dev/null
cmake --build build/aarch64 --target product -j "$(nproc)"
.venv/bin/python tests/packages/aarch64.py "$@"
