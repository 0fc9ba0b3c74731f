"""Benchmark architectures with random weights, as ONNX files.

    python3 bench/networks OUT [NAME ...]
Without names all that there are; a file that is there is left.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from networks import convolutional, sequences   # noqa: E402

NETWORKS = {network.__name__: network for room in (convolutional, sequences) for network in room.NETWORKS}


def main(arguments):
    if not arguments or arguments[0].startswith("-") or set(arguments[1:]) - NETWORKS.keys():
        sys.exit(f"{__doc__}Names: {', '.join(NETWORKS)}")
    folder = pathlib.Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name in arguments[1:] or NETWORKS:
        if not (folder / f"{name}.onnx").exists():
            print(NETWORKS[name]().save(folder), flush=True)


main(sys.argv[1:])
