"""A model in a Bazel build (docs/guide/builds.md)."""

load("@rules_cc//cc:defs.bzl", "cc_import", "cc_library")

def tilewright_model(name, model, target = "x86-64-v2", options = [], data = []):
    """A cc_library of the compiled model and its header.

    Args:
      name: the library, and the C identifier of the model.
      model: the ONNX file.
      target: a name of `tilewright targets`. Say which: `host` would differ between remote machines.
      options: further flags of `tilewright compile`.
      data: files beside the model that hold its tensors, and its tilewright.lock.
    """
    native.genrule(
        name = name + "_compile",
        srcs = [model] + data,
        outs = [name + ".so", name + ".h"],
        cmd = "tilewright compile $(location %s) -t %s --name %s -o $(location %s.so) %s" %
              (model, target, name, name, " ".join(options)),
        message = "Compiling the model",
    )
    cc_import(
        name = name + "_library",
        shared_library = name + ".so",
        hdrs = [name + ".h"],
    )
    cc_library(
        name = name,
        deps = [name + "_library"],
        includes = ["."],
    )
