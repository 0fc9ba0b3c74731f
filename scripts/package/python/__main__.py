"""Runs the compiler in this process's place."""
import os
import sys

from tilewright import EXECUTABLE


def main():
    os.execv(EXECUTABLE, [str(EXECUTABLE), *sys.argv[1:]])


if __name__ == "__main__":
    main()
