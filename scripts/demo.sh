#!/usr/bin/env bash
# The main job on real input: digits.onnx becomes a shared library, a plain C program classifies the held-out digits with it.
set -euo pipefail
cd "$(dirname "$0")/.."
digits=examples/digits
out=build/demo

scripts/setup.sh core
cmake --preset release >/dev/null
cmake --build build/release --target product
mkdir -p $out

tilewright=build/release/tilewright
$tilewright compile $digits/digits.onnx -o $out/digits.so
cc -std=c99 -O2 -Wall -Wextra -I $out -I runtime $digits/classify.c $out/digits.so -Wl,-rpath,"$PWD/$out" -o $out/classify
$out/classify $digits/test_images.npy $digits/test_labels.npy $out/predictions.txt
echo "artifact size: $(stat -c %s $out/digits.so) bytes (model: $(stat -c %s $digits/digits.onnx))"
echo "agreement with the reference evaluators:"
$tilewright verify $out/digits.so $digits/digits.onnx
