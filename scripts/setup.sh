#!/usr/bin/env bash
# Installs what building, testing, training and the comparison with other compilers need. Idempotent: a second call only looks.
#   scripts/setup.sh [core] [test] [sanitizers] [vdla] [opencl] [cuda] [train] [rivals] [aarch64]      (default: core)
# apt packages go into the system (sudo is used when not root), Python packages into .venv/ (train: .venv-train/, rivals:
# .venv-rivals/), the ONNX library into .deps/; so do the libraries that aarch64 brings, which the system knows nothing of.
set -euo pipefail
cd "$(dirname "$0")/.."
export DEBIAN_FRONTEND=noninteractive

ONNX_VERSION=1.23.2
# The libraries that the compiler is built with
libraries="llvm-22-dev libpolly-22-dev liblld-22-dev libprotobuf-dev libyaml-cpp-dev libcli11-dev nlohmann-json3-dev zlib1g-dev
  libsqlite3-dev libxgboost-dev libstb-dev libseccomp-dev"
core_apt="g++ make git ca-certificates clang-22 cmake ninja-build ccache protobuf-compiler doctest-dev $libraries
  python3-venv python3-pip lld-22 libstdc++-12-dev-arm64-cross libstdc++-12-dev-armhf-cross"
test_apt="libc6-dev-arm64-cross libc6-dev-riscv64-cross libc6-dev-armhf-cross qemu-user musl-tools binutils strace libjpeg-dev
  libonnx-testdata qemu-system-arm meson pkgconf zsh fish mmdebstrap chromium"
sanitizers_apt="libclang-rt-22-dev clang-tidy-22"
vdla_apt="verilator yosys"
opencl_apt="pocl-opencl-icd ocl-icd-libopencl1"
cuda_apt=""
train_apt=""
rivals_apt=""
aarch64_apt="mmdebstrap qemu-user"
core_pip=""
test_pip="onnxruntime==1.31.1 onnx==$ONNX_VERSION numpy==2.4.6 pillow==13.0.0 pyyaml==6.0.4 clang-format==22.1.5"
sanitizers_pip=""
vdla_pip=""
opencl_pip=""
cuda_pip="nvidia-cuda-nvcc==13.0.88"   # ptxas
aarch64_pip=""
# PyPI's torch for x86-64 links to the CUDA libraries, also where there is no GPU (3 GB); Triton, cuSOLVER and the like
# are loaded late and never used here, so torch is installed without its own list of dependencies.
train_pip="filelock typing-extensions sympy networkx jinja2 fsspec numpy==2.4.6 scikit-learn==1.9.1 onnx==$ONNX_VERSION
  cuda-toolkit[cublas,cudart,cufft,cufile,cupti,cusparse,nvjitlink,nvrtc]==13.2.2 nvidia-cudnn-cu13==9.26.0.51
  nvidia-cusparselt-cu13==0.8.1 nvidia-nccl-cu13==2.30.7 nvidia-nvshmem-cu13==3.7.2 scipy==1.17.1 pyyaml==6.0.4
  onnxruntime==1.31.1 jax==0.10.2"
# xgboost's own list has NCCL of another CUDA.
train_pip_bare="torch==2.15.0 xgboost==3.2.0"
# The rivals of bench/rivals/compare_rivals.py, kernels.py and bench/decoder; llama.cpp is built from its sources. The last
# two lines: what tests/exports makes its models with.
rivals_pip="$train_pip openvino==2026.4.1 ncnn==1.0.20261020 MNN==3.6.1 pnnx==20261020 setuptools
  llama-cpp-python==0.3.36 gguf==0.19.0
  onnxscript==0.7.2 transformers==5.24.0 skl2onnx==1.20.0 onnxmltools==1.16.0 lightgbm==4.7.0 pillow==13.0.0"
rivals_pip_bare="torch==2.15.0 torchvision==0.29.2 xgboost==3.2.0 timm==1.0.31"

say() { printf 'setup: %s\n' "$*"; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

install_apt() {
  local missing=() name
  for name in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
  done
  [ ${#missing[@]} = 0 ] && return
  say "apt-get install ${missing[*]}"
  as_root apt-get update -qq
  as_root apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

python=/usr/bin/python3
[ -x $python ] || python=python3

make_venv() {
  [ -x "$1/bin/python" ] && return
  say "python environment in $1"
  $python -m venv "$1"
}

# install_pip VENV FLAGS SPEC...
install_pip() {
  local venv=$1 flags=$2 missing=() spec
  shift 2
  [ $# = 0 ] && return
  make_venv "$venv"
  for spec in "$@"; do
    local name=${spec%%==*} version=${spec#*==}
    [ "$version" = "$spec" ] && version='*'
    name=${name%%\[*}
    local have
    have=$(ls -d "$venv"/lib/python3*/site-packages/"${name//-/_}"-*.dist-info 2>/dev/null | head -n 1 || true)
    # shellcheck disable=SC2254
    case "$have" in *-$version.dist-info) ;; *-$version+*.dist-info) ;; *) missing+=("$spec") ;; esac
  done
  [ ${#missing[@]} = 0 ] && return
  say "pip install ${missing[*]}"
  # shellcheck disable=SC2086
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check $flags "${missing[@]}"
}

# build_onnx FOLDER FLAGS...: the ONNX library in .deps/FOLDER, configured with these flags
build_onnx() {
  local prefix=.deps/$1 stamp=.deps/$1/stamp want
  shift
  want="$ONNX_VERSION $(cksum < scripts/onnx/CMakeLists.txt) $(g++ -dumpfullversion)"
  [ -f $stamp ] && [ "$(cat $stamp)" = "$want" ] && return
  say "building the ONNX library $ONNX_VERSION in $prefix (2-4 minutes, once)"
  rm -rf $prefix .deps/onnx-build
  mkdir -p .deps/onnx-build
  local sdist=${TW_ONNX_SDIST:-}
  if [ -z "$sdist" ]; then
    $python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary onnx \
      -d .deps/onnx-build "onnx==$ONNX_VERSION"
    sdist=$(ls .deps/onnx-build/onnx-*.tar.gz)
  fi
  mkdir .deps/onnx-build/src
  tar -xzf "$sdist" -C .deps/onnx-build/src --strip-components=1
  cmake -G Ninja -S scripts/onnx -B .deps/onnx-build/build -DCMAKE_BUILD_TYPE=Release \
    -DONNX_SOURCE="$PWD/.deps/onnx-build/src" -DCMAKE_INSTALL_PREFIX="$PWD/$prefix" "$@" >/dev/null
  cmake --build .deps/onnx-build/build --target install >/dev/null
  rm -rf .deps/onnx-build
  printf '%s' "$want" > $stamp
}

# Debian's packages for AArch64 with the compiler's libraries, unpacked to .deps/aarch64.
unpack_aarch64() {
  local root=.deps/aarch64 wanted="$libraries libstdc++-12-dev" deb name link file
  [ -f $root/stamp ] && [ "$(cat $root/stamp)" = "$wanted" ] && return
  say "unpacking libraries for AArch64 to $root (1 GB)"
  as_root rm -rf $root
  as_root mmdebstrap --quiet --architectures=arm64 --variant=extract --skip=cleanup/apt --include="$wanted" bookworm $root
  as_root chown -R "$(id -u):$(id -g)" $root
  # A link from the root's begin would lead out of it.
  find $root/usr -lname '/*' -printf '%p %l\n' | while read -r link file; do ln -snfr "$root$file" "$link"; done
  # Unpacked is not installed for dpkg; the licences of a file are found by its package.
  for deb in $root/var/cache/apt/archives/*.deb; do
    name=$(dpkg-deb --field "$deb" Package)
    { dpkg-deb --field "$deb"; printf 'Status: install ok installed\n\n'; } >> $root/var/lib/dpkg/status
    dpkg-deb --fsys-tarfile "$deb" | tar -t | sed 's|^\.||; s|/$||; s|^$|/.|' > "$root/var/lib/dpkg/info/$name.list"
  done
  rm -rf $root/var/cache $root/var/lib/apt $root/dev
  printf '%s' "$wanted" > $root/stamp
}

# Where tilewright looks for it besides PATH.
link_ptxas() {
  local found
  found=$(find .venv/lib -path '*/bin/ptxas' -type f | head -n 1)
  [ -n "$found" ] && ln -sf "$PWD/$found" .venv/bin/ptxas
}

[ $# = 0 ] && set -- core
for group in "$@"; do
  case $group in core|test|sanitizers|vdla|opencl|cuda|train|rivals|aarch64) ;; *) echo "setup: unknown group '$group' (core, test, sanitizers, vdla, opencl, cuda, train, rivals, aarch64)" >&2; exit 2 ;; esac
done
for group in "$@"; do
  apt_list="${group}_apt" pip_list="${group}_pip" bare_list="${group}_pip_bare" venv=.venv
  case $group in train|rivals) venv=.venv-$group ;; esac
  # shellcheck disable=SC2086
  install_apt ${!apt_list}
  # shellcheck disable=SC2086
  install_pip $venv "" ${!pip_list}
  # shellcheck disable=SC2086
  install_pip $venv --no-deps ${!bare_list:-}
  case $group in
    core) build_onnx onnx ;;
    aarch64) unpack_aarch64; build_onnx onnx-aarch64 --toolchain "$PWD/cmake/aarch64.cmake" ;;
    cuda) link_ptxas ;;
  esac
done
say "ready: $*"
