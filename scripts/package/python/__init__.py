"""Tilewright, a compiler of ONNX models. `tilewright` on the command line; here only where its files are."""
import pathlib

PREFIX = pathlib.Path(__file__).resolve().parent
EXECUTABLE = PREFIX / "bin" / "tilewright"
INCLUDE = PREFIX / "include"                     # tilewright.h
CMAKE = PREFIX / "lib" / "cmake" / "tilewright"  # tilewright_DIR of find_package
