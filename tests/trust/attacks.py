#!/usr/bin/env python3
"""What a stranger's file may try, as a table: how it is made, the command that meets it, the exit code and the words it must
end with. Each within ten seconds and 4 GiB of address space, with one error and no signal, and no file left behind.

    attacks.py [--tilewright BUILD/tilewright] [--only PART_OF_A_NAME]
"""
import argparse
import io
import json
import os
import pathlib
import re
import resource
import struct
import subprocess
import sys
import tempfile
import zipfile

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DIGITS = ROOT / "examples/digits/digits.onnx"
RECORD = ROOT / "tests/fuzz/seeds/record/ok.json"
SECONDS, BYTES = 10, 4 << 30
ATTACKS = []
VICTIM = "victim"   # a file that no command may write to


def attack(name, code, words):
    """The function below makes the file or files in a folder, and gives the command's words."""
    def add(make):
        ATTACKS.append((name, code, words, make))
        return make
    return add


# Models -----------------------------------------------------------------------------------------------------------------------

F = TensorProto.FLOAT


def value(name, shape, kind=F):
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(nodes, weights=(), inputs=None, outputs=None, functions=(), domains=()):
    inputs = inputs or [value("x", [2, 3])]
    rank = len(inputs[0].type.tensor_type.shape.dim)
    graph = helper.make_graph(nodes, "g", inputs, outputs or [value("y", [f"y{i}" for i in range(rank)])], weights)
    return helper.make_model(graph, functions=functions, ir_version=10, opset_imports=[helper.make_opsetid("", 21)] +
                             [helper.make_opsetid(d, 1) for d in domains])


def saved(folder, model, name="m.onnx"):
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return ["compile", path, "-o", folder / "m.so"]


def add_of(folder, weight):
    """y = x + w, of a weight that is not what it says."""
    return saved(folder, model_of([helper.make_node("Add", ["x", "w"], ["y"])], [weight]))


def external(folder, location, offset=None, length=None, dims=(2, 3)):
    inside = folder / "model"
    inside.mkdir(exist_ok=True)
    (inside / "w.bin").write_bytes(bytes(24))
    (folder / "secret.bin").write_bytes(bytes(24))
    weight = TensorProto(name="w", dims=dims, data_type=F, data_location=TensorProto.EXTERNAL)
    for key, text in (("location", location), ("offset", offset), ("length", length)):
        if text is not None:
            entry = weight.external_data.add()
            entry.key, entry.value = key, str(text)
    model = model_of([helper.make_node("Add", ["x", "w"], ["y"])], [weight])
    return saved(folder, model, "model/m.onnx")


for name, location in (("a path upwards", "../secret.bin"), ("a path down and upwards", "a/../../secret.bin"), ("an absolute path", "/etc/passwd"),
                       ("an empty location", ""), ("a folder", "."), ("a location with a NUL", "w.bin\0x"), ("a device", "/dev/zero")):
    attack(f"external data: {name}", (1, 5), "'w'")(lambda folder, location=location: external(folder, location))


@attack("external data: a symbolic link", 1, "links are not followed")
def _(folder):
    words = external(folder, "link.bin")
    (folder / "model/link.bin").symlink_to(folder / "secret.bin")
    return words


@attack("external data: a link out of a cache's folder", 1, "links are not followed")
def _(folder):
    words = external(folder, "link.bin")
    (folder / "blobs").mkdir()
    (folder / "model/m.onnx").rename(folder / "blobs/m")
    (folder / "model/m.onnx").symlink_to("../blobs/m")
    (folder / "model/link.bin").symlink_to("../secret.bin")
    return words


@attack("external data: a link in a parent folder", 5, "cannot open")
def _(folder):
    words = external(folder, "up/secret.bin")
    (folder / "model/up").symlink_to(folder)
    return words


@attack("external data: a hard link", 1, "hard link")
def _(folder):
    words = external(folder, "hard.bin")
    os.link(folder / "secret.bin", folder / "model/hard.bin")
    return words


@attack("external data: a pipe", (1, 5), "pipe")
def _(folder):
    words = external(folder, "pipe")
    os.mkfifo(folder / "model/pipe")
    return words


for name, offset, length in (("a negative offset", -8, 24), ("a huge offset", 1 << 62, 24), ("an offset beyond 64 bits", 1 << 70, 24),
                             ("a negative length", 0, -24), ("a huge length", 0, 1 << 62), ("a length that is no number", 0, "many"),
                             ("offset and length that overflow", (1 << 63) - 8, (1 << 63) - 8), ("a length that is not the shape's", 0, 20)):
    attack(f"external data: {name}", 1, "'w'")(lambda folder, o=offset, n=length: external(folder, "w.bin", o, n))


@attack("raw data that are not the shape's", 1, "20 bytes")
def _(folder):
    return add_of(folder, TensorProto(name="w", dims=[2, 3], data_type=F, raw_data=bytes(20)))


@attack("no data at all", 1, "tensor name: w")
def _(folder):
    return add_of(folder, TensorProto(name="w", dims=[2, 3], data_type=F))


@attack("packed elements of 4 bits, one too few", 1, "2 bytes")
def _(folder):
    weight = TensorProto(name="w", dims=[2, 3], data_type=TensorProto.INT4, raw_data=bytes(2))
    return saved(folder, model_of([helper.make_node("Cast", ["w"], ["c"], to=F), helper.make_node("Add", ["x", "c"], ["y"])], [weight]))


@attack("dims whose product overflows", 1, "overflow")
def _(folder):
    return add_of(folder, TensorProto(name="w", dims=[1 << 32, 1 << 32, 4], data_type=F, raw_data=bytes(8)))


@attack("a negative dim", 1, "Negative")
def _(folder):
    return add_of(folder, TensorProto(name="w", dims=[-2, 3], data_type=F, raw_data=bytes(24)))


@attack("an unknown element type", (1, 3), "99")
def _(folder):
    return add_of(folder, TensorProto(name="w", dims=[2, 3], data_type=99, raw_data=bytes(24)))


@attack("an unknown element type of an input", (1, 3), "99")
def _(folder):
    return saved(folder, model_of([helper.make_node("Relu", ["x"], ["y"])], inputs=[value("x", [2, 3], 99)]))


@attack("a constant of ConstantOfShape that no memory holds", (1, 3), "ConstantOfShape")
def _(folder):
    shape = numpy_helper.from_array(np.array([1 << 20, 1 << 20, 16], np.int64), "s")
    return saved(folder, model_of([helper.make_node("ConstantOfShape", ["s"], ["c"]), helper.make_node("ReduceSum", ["c"], ["y"])], [shape], outputs=[value("y", [1, 1, 1])]))


@attack("constants that double forty times", (1, 3), "")
def _(folder):
    nodes, name = [], "w"
    for i in range(40):
        nodes.append(helper.make_node("Concat", [name, name], [f"c{i}"], axis=0))
        name = f"c{i}"
    nodes.append(helper.make_node("ReduceSum", [name], ["r"], keepdims=0))
    nodes.append(helper.make_node("Add", ["x", "r"], ["y"]))
    return saved(folder, model_of(nodes, [numpy_helper.from_array(np.ones((64, 3), np.float32), "w")]))


@attack("a convolution of a weight of another rank", 1, "Conv")
def _(folder):
    weight = numpy_helper.from_array(np.ones((4, 3), np.float32), "w")
    return saved(folder, model_of([helper.make_node("Conv", ["x", "w"], ["y"])], [weight], [value("x", [1, 3, 8, 8])]))


@attack("a pooling window of another rank", 1, "MaxPool")
def _(folder):
    return saved(folder, model_of([helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2, 2, 2])], inputs=[value("x", [1, 3, 8, 8])]))


@attack("a pooling stride of 0", 1, "stride")
def _(folder):
    return saved(folder, model_of([helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[0, 1])], inputs=[value("x", [1, 3, 8, 8])]))


@attack("a group of a convolution that is 0", 1, "group")
def _(folder):
    weight = numpy_helper.from_array(np.ones((4, 3, 1, 1), np.float32), "w")
    return saved(folder, model_of([helper.make_node("Conv", ["x", "w"], ["y"], group=0)], [weight], [value("x", [1, 3, 8, 8])]))


@attack("a list of lists where a list is expected", (0, 1), "")
def _(folder):
    axes = numpy_helper.from_array(np.array([[0]], np.int64), "a")
    return saved(folder, model_of([helper.make_node("Squeeze", ["x", "a"], ["y"])], [axes], [value("x", [1, 3])]))


@attack("an attribute of another type", 1, "kernel_shape")
def _(folder):
    return saved(folder, model_of([helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=3)], inputs=[value("x", [1, 3, 8, 8])]))


@attack("a function that calls itself", 1, "f")
def _(folder):
    function = helper.make_function("own", "f", ["a"], ["b"], [helper.make_node("f", ["a"], ["b"], domain="own")],
                                    [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)])
    return saved(folder, model_of([helper.make_node("f", ["x"], ["y"], domain="own")], functions=[function], domains=["own"]))


@attack("functions that call each other", 1, "")
def _(folder):
    sets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    functions = [helper.make_function("own", a, ["a"], ["b"], [helper.make_node(b, ["a"], ["b"], domain="own")], sets) for a, b in (("f", "g"), ("g", "f"))]
    return saved(folder, model_of([helper.make_node("f", ["x"], ["y"], domain="own")], functions=functions, domains=["own"]))


@attack("functions that double thirty times", (1, 3), "")
def _(folder):
    sets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    functions = [helper.make_function("own", "f0", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], sets)]
    for i in range(1, 30):
        twice = [helper.make_node(f"f{i - 1}", ["a"], ["t"], domain="own"), helper.make_node(f"f{i - 1}", ["t"], ["b"], domain="own")]
        functions.append(helper.make_function("own", f"f{i}", ["a"], ["b"], twice, sets))
    return saved(folder, model_of([helper.make_node("f29", ["x"], ["y"], domain="own")], functions=functions, domains=["own"]))


def nested(depth):
    """If in If in If ..., built from the inside as bytes: the library's own builder would go too deep."""
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "b", [], [value("y", None)])
    for _ in range(depth):
        node = helper.make_node("If", ["c"], ["y"])
        for name in ("then_branch", "else_branch"):
            entry = node.attribute.add()
            entry.name, entry.type = name, AttributeProto.GRAPH
            (entry.g.CopyFrom(graph) if name == "then_branch" else
             entry.g.CopyFrom(helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "e", [], [value("y", None)])))
        graph = helper.make_graph([node], "b", [], [value("y", None)])
    return model_of(list(graph.node), inputs=[value("x", [2, 3]), value("c", [], TensorProto.BOOL)])


@attack("branches in branches, thirty deep", (0, 1, 3), "")
def _(folder):
    return saved(folder, nested(30))


@attack("messages in messages, ten thousand deep", 1, "")
def _(folder):
    """Bytes: a graph in an attribute in a node in a graph."""
    def field(number, body):
        size, out = len(body), bytearray([number << 3 | 2])
        while size > 127:
            out.append(size & 127 | 128)
            size >>= 7
        return bytes(out) + bytes([size]) + body
    body = b""
    for _ in range(10000):
        body = field(1, field(5, field(6, body)))
    path = folder / "m.onnx"
    path.write_bytes(bytes([8, 8]) + field(7, body))
    return ["compile", path, "-o", folder / "m.so"]


@attack("a cycle", 1, "")
def _(folder):
    return saved(folder, model_of([helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"]), helper.make_node("Relu", ["b"], ["y"])]))


@attack("two values of one name", 1, "")
def _(folder):
    return saved(folder, model_of([helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["y"])]))


@attack("two inputs of one name", 1, "'x'")
def _(folder):
    return saved(folder, model_of([helper.make_node("Relu", ["x"], ["y"])], inputs=[value("x", [2, 3]), value("x", [3, 2])]))


@attack("two weights of one name", (0, 1), "")
def _(folder):
    weights = [numpy_helper.from_array(np.ones(n, np.float32), "w") for n in (3, 1)]
    return saved(folder, model_of([helper.make_node("Add", ["x", "w"], ["y"])], weights))


NAMES = {"a name with quotes and an end of comment": 'x"*/\\', "a name with an end of line": "a\nb", "a name with an escape sequence": "\033[2J",
         "a name that is a path": "../../etc/passwd", "a name of other letters": "Größe", "a name of a keyword": "int",
         "a very long name": "n" * 100000}
for title, text in NAMES.items():
    attack(title, 0, "")(lambda folder, text=text: saved(folder, model_of([helper.make_node("Relu", [text], ["y"], name=text)], inputs=[value(text, [text, 3])])))


@attack("a name with a NUL", (0, 1), "")
def _(folder):
    return saved(folder, model_of([helper.make_node("Relu", ["x\0y"], ["y"])], inputs=[value("x\0y", [2, 3])]))


@attack("a name that is no UTF-8", (0, 1), "")
def _(folder):
    data = model_of([helper.make_node("Relu", ["QQQQ"], ["y"])], inputs=[value("QQQQ", [2, 3])]).SerializeToString()
    (folder / "m.onnx").write_bytes(data.replace(b"QQQQ", b"\xff\xfe\xc0\x80"))
    return ["compile", folder / "m.onnx", "-o", folder / "m.so"]


@attack("a scalar where a list is expected", (0, 1), "")
def _(folder):
    return saved(folder, model_of([helper.make_node("Reshape", ["x", "s"], ["y"])], [numpy_helper.from_array(np.array(6, np.int64), "s")], outputs=[value("y", [6])]))


@attack("a text of more than 2 GB", 1, "more than 2 GiB")
def _(folder):
    size = 1 << 31
    with open(folder / "m.onnx", "wb") as file:   # a hole behind the head of the model's documentation
        file.write(bytes([6 << 3 | 2] + [size >> shift & 127 | (128 if shift < 28 else 0) for shift in range(0, 35, 7)]))
        file.truncate(file.tell() + size)
    return ["compile", folder / "m.onnx", "-o", folder / "m.so"]


@attack("zeros of more than 2 GB", 1, "number 0")
def _(folder):
    with open(folder / "m.onnx", "wb") as file:   # a hole
        file.write(bytes([8, 8]))
        file.truncate((1 << 31) + 4096)
    return ["compile", folder / "m.onnx", "-o", folder / "m.so"]


@attack("a model that is cut off", 1, "")
def _(folder):
    (folder / "m.onnx").write_bytes(DIGITS.read_bytes()[:3000])
    return ["compile", folder / "m.onnx", "-o", folder / "m.so"]


@attack("a name of a size that is an expression", (0, 1), "")
def _(folder):
    return saved(folder, model_of([helper.make_node("Relu", ["x"], ["y"])], inputs=[value("x", ["system(0)", "a*b"])]))


# Targets, locks, records, results ------------------------------------------------------------------------------------------------

def with_target(folder, text):
    (folder / "t.yaml").write_text(text)
    return ["compile", DIGITS, "-t", folder / "t.yaml", "-o", folder / "m.so"]


@attack("a description of deep lists", 1, "t.yaml")
def _(folder):
    return with_target(folder, "name: " + "[" * 100000)


@attack("a description of deep maps", 1, "t.yaml")
def _(folder):
    return with_target(folder, "{a: " * 20000)


@attack("a description of aliases of aliases", 1, "t.yaml")
def _(folder):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    return with_target(folder, "\n".join(lines) + "\n")


@attack("a description with numbers that are none", 1, "t.yaml")
def _(folder):
    text = (ROOT / "configs/x86-64-v3.yaml").read_text()
    assert "vector_bits" in text or "bits" in text
    return with_target(folder, text + "\ncores: 99999999999999999999999\n")


def with_assembly(folder, text):
    """Inline assembly in the emit of an instruction; the text as an `asm` has it."""
    semantics = "kernel @i(a: in i8[4], b: in i8[16], c: out i32[4]) { for j in 4 { for k in 4 reduce { c: c[j] += i32(a[k]) * i32(b[j * 4 + k]) } } }"
    emit = f'asm("{text}", "=x,0,x,x", c, a, b)'.replace("'", "''")
    lines = ["intrinsics:", "  - name: evil", f"    semantics: '{semantics}'", f"    emit: '{emit}'"]
    return with_target(folder, (ROOT / "configs/x86-64-v3.yaml").read_text() + "\n" + "\n".join(lines) + "\n")


for title, text in (("alone", r".incbin \"/etc/passwd\""), ("without quotes", ".include passwd"), ("behind an instruction", r"nop\n.incbin x"),
                    ("behind a semicolon", "nop;.incbin x"), ("behind a tab", r"nop\n\t.incbin x"), ("behind a label", "here:.incbin x"),
                    ("behind a comment", "/* x */.incbin x"), ("behind a space", "nop ; .incbin x"), ("in an alternative", "$(nop$|.incbin x$)"),
                    ("behind a variable", "${:comment}.incbin x"), ("behind braces", "{x}.incbin x"), ("a name in quotes", r"\"x\" 1"),
                    ("of data", ".byte 15, 11"), ("of a section", ".section .init_array"), ("of a macro", ".macro m")):
    attack(f"assembly: a directive {title}", 1, "t.yaml:")(lambda folder, text=text: with_assembly(folder, text))


@attack("a lock that is no lock", 1, "lock")
def _(folder):
    (folder / "m.onnx").write_bytes(DIGITS.read_bytes())
    (folder / "tilewright.lock").write_text("{" * 100000)
    return ["compile", folder / "m.onnx", "-o", folder / "m.so"]


def imported(folder, **changes):
    record = json.loads(RECORD.read_text()) | changes
    (folder / "r.jsonl").write_text(json.dumps(record) + "\n")
    return ["log", "import", folder / "r.jsonl", "--log", folder / "l.db"]


for title, seconds in (("0", [0.0]), ("negative", [-1.0]), ("NaN", [float("nan")]), ("infinite", [float("inf")])):
    attack(f"a record with a time that is {title}", 1, "")(lambda folder, s=seconds: imported(folder, seconds=s))


@attack("a record with a schedule that is none", 0, "has no record")
def _(folder):
    words = imported(folder, schedule="schedule {" + "{" * 100000)   # a log keeps what it cannot read: another version may
    subprocess.run([TILEWRIGHT, *words], check=True, capture_output=True)
    return ["compile", DIGITS, "-o", folder / "m.so", "--log", folder / "l.db"]


@attack("a log that is no log", (1, 5), "l.db")
def _(folder):
    (folder / "l.db").write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 40)
    return ["compile", DIGITS, "-o", folder / "m.so", "--log", folder / "l.db"]


@attack("a record of another target", 0, "has no record")
def _(folder):
    words = imported(folder, target="0" * 16)
    subprocess.run([TILEWRIGHT, *words], check=True, capture_output=True)
    return ["compile", DIGITS, "-o", folder / "m.so", "--log", folder / "l.db"]


@attack("a library that is cut off", 8, "damaged")
def _(folder):
    subprocess.run([TILEWRIGHT, "compile", DIGITS, "-o", folder / "a.so"], check=True, capture_output=True)
    (folder / "b.so").write_bytes((folder / "a.so").read_bytes()[:-100])
    return ["inspect", folder / "b.so"]


@attack("an ELF file that is no library of ours", 1, "")
def _(folder):
    return ["run", "/bin/true"]


# Libraries and arrays whose parts share bytes --------------------------------------------------------------------------------

def segments_again(folder, kind, count, contents=b""):
    """A library of ours in which `count` more segments of a kind cover what is appended, or the first one's bytes."""
    bytes_ = bytearray(library(folder).read_bytes())
    table, number = struct.unpack_from("<Q", bytes_, 32)[0], struct.unpack_from("<H", bytes_, 56)[0]
    heads = [bytes(bytes_[table + 56 * i:table + 56 * (i + 1)]) for i in range(number)]
    like = bytearray(next(h for h in heads if struct.unpack_from("<I", h)[0] == kind))
    if contents:
        struct.pack_into("<Q", like, 8, len(bytes_))
        struct.pack_into("<Q", like, 32, len(contents))
        bytes_ += contents
    struct.pack_into("<Q", bytes_, 32, len(bytes_))
    struct.pack_into("<H", bytes_, 56, number + count)
    forged = folder / "forged.so"
    forged.write_bytes(bytes_ + bytes(like) * count + b"".join(heads))
    return forged


@attack("a library whose segments share their bytes", 8, "share bytes")
def _(folder):
    return ["inspect", segments_again(folder, 1, 60000)]


@attack("a library with many large segments", 8, "damaged")
def _(folder):
    return ["inspect", segments_again(folder, 1, 60000, bytes(8 << 20))]


@attack("a library with many large segments of notes", (1, 8), "")
def _(folder):
    return ["inspect", segments_again(folder, 4, 60000, struct.pack("<III", 0, 0, 0) * (1 << 20))]


@attack("a library with many symbols of one long name", (1, 3, 8), "")
def _(folder):
    bytes_ = bytearray(library(folder).read_bytes())
    names, symbols = b"a" * (8 << 20), struct.pack("<IBBHQQ", 0, 0x12, 0, 0, 0, 0) * (1 << 19)
    at = len(bytes_)
    head = "<IIQQQQIIQQ"
    sections = struct.pack(head, *[0] * 10)
    sections += struct.pack(head, 0, 11, 0, 0, at + len(names), len(symbols), 2, 0, 8, 24)
    sections += struct.pack(head, 0, 3, 0, 0, at, len(names), 0, 0, 1, 0)
    struct.pack_into("<Q", bytes_, 40, at + len(names) + len(symbols))
    struct.pack_into("<HHH", bytes_, 58, 64, 3, 0)
    (folder / "forged.so").write_bytes(bytes_ + names + symbols + sections)
    return ["verify", folder / "forged.so", DIGITS, "--no-check"]


def with_arrays(folder, archive):
    (folder / "data").mkdir()
    (folder / "data/a.npz").write_bytes(archive)
    return ["compile", DIGITS, "-o", folder / "m.so", "--max-error", "1", "--accuracy-data", folder / "data"]


def zip_of(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in members:
            array_file = io.BytesIO()
            np.save(array_file, array)
            archive.writestr(name, array_file.getvalue())
    return file.getvalue()


@attack("arrays: a thousand members that are one", 1, "share bytes")
def _(folder):
    whole = zip_of([("a.npy", np.zeros((1 << 22,), np.uint8))])
    end = whole.rindex(b"PK\5\6")
    entry = whole[struct.unpack_from("<I", whole, end + 16)[0]:end]
    entries = b"".join(entry.replace(b"a.npy", b"%05d" % i) for i in range(1000))
    last = struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, 1000, 1000, len(entries), end - len(entry), 0)
    return with_arrays(folder, whole[:end - len(entry)] + entries + last)


@attack("arrays: two members of one name", 1, "two members 'image'")
def _(folder):
    return with_arrays(folder, zip_of([("image.npy", np.zeros(2, np.float32)), ("image", np.ones(2, np.float32))]))


# Names that are meant for a terminal or for the log of a build -----------------------------------------------------------------

NASTY = ("\x1b[2J", "\u009b2J", "\u202egnp.exe", "\u2066x", "\u200fx", "\u2028x", "\U000e0041", "\n::error::x", "\n  ::set-output name=a::b", "\r::warning::x",
         "##vso[task.setvariable variable=a]b", "##[error]x", "##teamcity[x]", "\nerror: x", "a\tb")


def nasty_model(folder, name, kind="Relu"):
    model = model_of([helper.make_node(kind, [name], ["y"], name=name)], inputs=[value(name, ["n", 3])])
    return saved(folder, model)


for text in NASTY:
    attack(f"a name for a terminal: {text!a}", 0, "")(lambda folder, text=text: nasty_model(folder, text))
    attack(f"a name for a terminal, inspected: {text!a}", 0, "")(lambda folder, text=text: ["inspect", nasty_model(folder, text)[1]])
    attack(f"a name for a terminal, as JSON: {text!a}", 0, "")(lambda folder, text=text: ["inspect", nasty_model(folder, text)[1], "--json"])
    attack(f"a name for a terminal, in an error: {text!a}", (1, 3), "")(lambda folder, text=text: nasty_model(folder, text, "Nosuch" + text))
    attack(f"a name for a terminal, of a file: {text!a}", 5, "")(lambda folder, text=text: external(folder, text))


# Files that would be waited for, or that never end ---------------------------------------------------------------------------

def library(folder):
    made = folder / "a.so"
    subprocess.run([TILEWRIGHT, "compile", DIGITS, "-o", made], check=True, capture_output=True)
    return made


def pipe(path):
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    return path


def zeros(path):
    path.symlink_to("/dev/zero")
    return path


for title, make in (("a pipe", pipe), ("a device", zeros)):
    for command, words in {"inspect": ["FILE"], "run": ["FILE", "--random", "1"], "bench": ["FILE"], "profile": ["FILE"], "bundle": ["FILE"],
                           "unbundle": ["FILE"], "verify": ["FILE", DIGITS], "compile": ["FILE"], "compare": ["LIBRARY", "FILE"]}.items():
        @attack(f"{title} where {command} expects a file", 5, "not a regular file")
        def _(folder, make=make, command=command, words=words):
            files = {"FILE": make(folder / "f"), "LIBRARY": library(folder) if "LIBRARY" in words else ""}
            return [command, *(files.get(word, word) for word in words)]

    for ending in ("npy", "npz", "pb"):
        @attack(f"{title} among the data: .{ending}", 5, "not a regular file")
        def _(folder, make=make, ending=ending):
            (folder / "data").mkdir()
            make(folder / f"data/a.{ending}")
            return ["compile", DIGITS, "-o", folder / "m.so", "--max-error", "1", "--accuracy-data", folder / "data"]

    @attack(f"{title} where the lock is", 5, "not a regular file")
    def _(folder, make=make):
        (folder / "m.onnx").write_bytes(DIGITS.read_bytes())
        make(folder / "tilewright.lock")
        return ["compile", folder / "m.onnx", "-o", folder / "m.so"]


@attack("a pipe in the place of a cache's entry", 0, "digits.so")
def _(folder):
    words = ["compile", DIGITS, "-o", folder / "digits.so", "--cache", folder / "cache"]
    subprocess.run([TILEWRIGHT, *words], check=True, capture_output=True)
    entry, = (folder / "cache").rglob("*.build")
    entry.unlink()
    pipe(entry)
    return words


@attack("pipes and a terabyte of zeros where a worker looks for jobs", 0, "2 jobs")
def _(folder):
    spool = folder / "spool"
    spool.mkdir()
    for name in ("a.job", "worker-a", "tuner.alive"):
        pipe(spool / name)
    with open(spool / "b.job", "wb") as file:   # a hole
        file.truncate(1 << 40)
    return ["worker", spool, "--idle", "1"]


@attack("a folder for a worker that others may write to", 1, "others may write to ")
def _(folder):
    (folder / "spool").mkdir()
    (folder / "spool").chmod(0o777)
    return ["worker", folder / "spool", "--idle", "1"]


@attack("a folder for a worker that its group may write to", 1, "others may write to ")
def _(folder):
    (folder / "spool").mkdir()
    (folder / "spool").chmod(0o775)
    return ["worker", folder / "spool", "--idle", "1"]


if os.getuid() == 0:
    @attack("a folder for a worker of another owner", 1, "others may write to ")
    def _(folder):
        (folder / "spool").mkdir()
        os.chown(folder / "spool", 65534, 65534)
        return ["worker", folder / "spool", "--idle", "1"]


@attack("a link where a worker writes its result", 5, "cannot write to")
def _(folder):
    """A folder of the result's name lets the rename fail; what is written before must not go through the link."""
    spool = folder / "spool"
    (spool / "a.result/full").mkdir(parents=True)
    (spool / "a.job").write_bytes(b"no job")
    (folder / VICTIM).write_text(VICTIM)
    (spool / ".a.result").symlink_to(folder / VICTIM)
    return ["worker", spool, "--idle", "1"]


CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")
COMMANDS = re.compile(r"^\s*::|##[a-z]*\[|^error: x$", re.MULTILINE)


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def meet(tilewright, attack_row):
    """What is wrong with how the program met it; None: nothing."""
    _, codes, words, make = attack_row
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        command = [str(w) for w in make(folder)]
        before = {f for f in folder.rglob("*")}
        try:
            done = subprocess.run([tilewright, *command], capture_output=True, text=True, errors="replace", timeout=SECONDS, preexec_fn=limited, cwd=folder)
        except subprocess.TimeoutExpired:
            return f"more than {SECONDS} seconds"
        said = done.stdout + done.stderr
        if done.returncode not in (codes if isinstance(codes, tuple) else (codes,)):
            return f"status {done.returncode}, expected {codes}: {said[-600:]}"
        left = {f.name for f in folder.rglob("*")} - {f.name for f in before} - {"l.db", "l.db-wal", "l.db-shm", "a.taken"}
        if (folder / VICTIM).exists() and (folder / VICTIM).read_text() != VICTIM:
            return "wrote through a link"
        if done.returncode and left:
            return f"left {left}"
        if done.returncode and ("error: " not in done.stderr or len(done.stderr) > 4000):
            return f"no clear error: {done.stderr[:300]} ... {len(done.stderr)} bytes"
        if CONTROLS.search(said):
            return f"control characters in what it says: {said!a}"
        if COMMANDS.search(said):
            return f"commands for the server of a build: {said!a}"
        return None if words in said else f"'{words}' is not in: {said[-600:]}"


def main():
    global TILEWRIGHT
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tilewright", default=ROOT / "build/release/tilewright", type=pathlib.Path)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    TILEWRIGHT = arguments.tilewright.resolve()
    rows = [row for row in ATTACKS if arguments.only in row[0]]
    problems = [(row[0], problem) for row in rows if (problem := meet(TILEWRIGHT, row))]
    for name, problem in problems:
        print(f"{name}: {problem}", file=sys.stderr)
    print(f"attacks: {len(rows)}, {len(problems)} not met as they should be")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
