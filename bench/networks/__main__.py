"""Benchmark architectures with random weights, as ONNX files.

    python3 bench/networks OUT [--variants] [--quantized] [--half] [NAME ...]
    python3 bench/networks OUT --small [--half] [NAME ...]
Without names all that there are; a file that is there is left. --small: networks of the same families that are small enough for an emulator; --half: also
what of these and of the large ones is named, in f16 (NAME_f16.onnx). --variants: also convolutional networks of smaller pictures and of four pictures at once,
and transformers of other numbers of tokens, for data sets. --quantized: also 8-bit versions of every network with convolutions that lies in OUT.
"""
import inspect
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from networks import builder, convolutional, half, sequences, small   # noqa: E402

NETWORKS = {network.__name__: network for room in (convolutional, sequences) for network in room.NETWORKS}
SMALL = {network.__name__: network for network in small.NETWORKS}
FLAGS = ("--variants", "--quantized", "--small", "--half")


SIZES, TOKENS, BATCH = (160, 288), (32, 128), 4


def variants(network):
    """(suffix, arguments, batch) of each."""
    takes = inspect.signature(network).parameters
    found = [(f"_s{size}", {"size": size}, 1) for size in SIZES if "size" in takes and network.__name__ not in ("shifted_windows", "resnet3d18")]
    found += [(f"_t{tokens}", {"tokens": tokens}, 1) for tokens in TOKENS if "tokens" in takes]
    return found + [(f"_b{BATCH}", {}, BATCH)] * (network in convolutional.NETWORKS and network.__name__ not in ("super_resolution", "resnet3d18"))


def write(folder, name, suffix="", arguments=None, batch=1):
    if (folder / f"{name}{suffix}.onnx").exists():
        return
    builder.Network.batch = batch
    network = (NETWORKS | SMALL)[name](**(arguments or {}))
    network.name += suffix
    print(network.save(folder), flush=True)


def main(arguments):
    wants_variants, wants_quantized, wants_small, wants_half = (flag in arguments for flag in FLAGS)
    arguments = [a for a in arguments if a not in FLAGS]
    networks = SMALL if wants_small else NETWORKS
    if not arguments or arguments[0].startswith("-") or set(arguments[1:]) - networks.keys():
        sys.exit(f"{__doc__}Names: {', '.join(networks)}")
    folder = pathlib.Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name in arguments[1:] or networks:
        write(folder, name)
        for variant in variants(networks[name]) if wants_variants else ():
            write(folder, name, *variant)
        if wants_half and not (folder / f"{name}_f16.onnx").exists():
            half.halve(folder / f"{name}.onnx", folder / f"{name}_f16.onnx")
            print(folder / f"{name}_f16.onnx", flush=True)
    if wants_quantized:
        from networks import quantized   # needs onnxruntime
        for path in sorted(folder.glob("*.onnx")):
            out = path.with_name(f"{path.stem}_int8.onnx")
            if path.stem.endswith("_int8") or out.exists() or not quantized.has_convolutions(path):
                continue
            quantized.write(path, out)
            print(out, flush=True)


main(sys.argv[1:])
