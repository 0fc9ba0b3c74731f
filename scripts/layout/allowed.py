"""What breaks a rule of scripts/check_layout.py and may, each with its reason.

An entry that nothing needs any more is a breach too.
"""

FIELDS = "a line a field"
ONE_NEST = "one nest, written as it is printed"

# Circles of folders, by their nodes.
CIRCLES = {
    ("cli/..", "cli/commands"):
        "app.h is what a command's file stands on, app.cpp the list of them",
}

# (file, function) -> (lines, reason)
FUNCTIONS = {
    ("cli/commands/inspect.cpp", "print_manifest"): (63, FIELDS),
    ("kernels/ops/reduce.cpp", "define_reduce"): (85, ONE_NEST),
    ("kernels/ops/pool.cpp", "define_pool"): (66, ONE_NEST),
}

# Folders with many files, directly in them.
FOLDERS = {
    "backends/llvm": "a file a kind of statement or instruction",
    "ir/schedule": "a file a primitive",
    "tests/cli": "a file a question to the whole program",
    "tests/models": "a file a suite of whole models",
}

# (file, part of the line) where a loop, a stage or a buffer is named outside its family's folder
NAMES = {
    ("backends/llvm/backend.cpp", 'stage == "llvm"'): "a stage of code generation, of --emit",
    ("backends/llvm/backend.cpp", 'stage == "asm"'): "a stage of code generation, of --emit",
}
