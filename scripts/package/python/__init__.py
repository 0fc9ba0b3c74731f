"""Tilewright, a compiler of ONNX models. `tilewright` on the command line; here compiled models, and where its files are."""
import pathlib

PREFIX = pathlib.Path(__file__).resolve().parent
EXECUTABLE = PREFIX / "bin" / "tilewright"
INCLUDE = PREFIX / "include"                     # tilewright.h, tilewright.hpp
CMAKE = PREFIX / "lib" / "cmake" / "tilewright"  # tilewright_DIR of find_package
PKGCONFIG = PREFIX / "lib" / "pkgconfig"         # a folder of PKG_CONFIG_PATH
WORKERS = PREFIX / "share" / "tilewright" / "workers"   # tilewright-worker of each architecture, for boards
DOCS = PREFIX / "share" / "doc" / "tilewright"   # README and the pages that it names


def __getattr__(name):
    """Model and Error, which need numpy: the compiler does not."""
    if name not in ("Model", "Error"):
        raise AttributeError(f"module 'tilewright' has no attribute '{name}'")
    from tilewright import model
    return getattr(model, name)
