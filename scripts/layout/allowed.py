"""What breaks a rule of scripts/check_layout.py and may, each with its reason.

An entry that nothing needs any more is a breach too.
"""

STEPS_IN_ORDER = "the steps of one job, one after the other; each is a call or a few lines"
FIELDS = "a line a field"
CASES = "a case an operator"
ONE_NEST = "one nest, written as it is printed"

# Circles of folders, by their nodes.
CIRCLES = {
    ("cli/..", "cli/commands"):
        "app.h is what a command's file stands on, app.cpp the list of them",
    ("kernels/..", "kernels/common", "kernels/conv", "kernels/device", "kernels/matmul",
     "kernels/schedule"):
        "lower.h has both what families give back and the call that finds the family",
}

# (file, function) -> (lines, reason)
FUNCTIONS = {
    ("driver/compile.cpp", "lower_graph"): (139, STEPS_IN_ORDER),
    ("driver/compile.cpp", "compile_graph"): (99, STEPS_IN_ORDER),
    ("driver/manifest.cpp", "to_json"): (76, FIELDS),
    ("driver/manifest.cpp", "parse_manifest"): (70, FIELDS),
    ("driver/manifest.cpp", "make_manifest"): (61, FIELDS),
    ("driver/schedules.cpp", "choose"): (61, STEPS_IN_ORDER),
    ("cli/tune_network.cpp", "tune_network"): (79, STEPS_IN_ORDER),
    ("cli/commands/inspect.cpp", "print_manifest"): (77, FIELDS),
    ("kernels/matmul/lower.cpp", "lower_matmul"): (138, ONE_NEST),
    ("kernels/matmul/lower_nbits.cpp", "lower_matmul_nbits"): (61, ONE_NEST),
    ("kernels/matmul/schedule.cpp", "schedule_matmul"): (68, STEPS_IN_ORDER),
    ("kernels/conv/schedule.cpp", "schedule_blocked"): (87, STEPS_IN_ORDER),
    ("kernels/strassen/lower.cpp", "strassen"): (76, ONE_NEST),
    ("kernels/strassen/schedule.cpp", "schedule_strassen"): (86, STEPS_IN_ORDER),
    ("kernels/reduce/lower.cpp", "lower_reduce"): (83, ONE_NEST),
    ("kernels/reduce/schedule.cpp", "schedule_reduce"): (74, STEPS_IN_ORDER),
    ("kernels/attention/schedule.cpp", "schedule_attention"): (72, STEPS_IN_ORDER),
    ("kernels/elementwise/injective.cpp", "injective_element"): (69, CASES),
    ("kernels/pool/lower.cpp", "lower_pool"): (64, ONE_NEST),
    ("kernels/device/tiles.cpp", "add_tiled_sums"): (64, ONE_NEST),
}

# Folders with many files, directly in them.
FOLDERS = {
    "ir/schedule": "a file a primitive",
    "tests/cli": "a file a question to the whole program",
}

# (file, part of the line) where a loop, a stage or a buffer is named outside its family's folder
NAMES = {
    ("backends/llvm/backend.cpp", 'stage == "llvm"'): "a stage of code generation, of --emit",
    ("backends/llvm/backend.cpp", 'stage == "asm"'): "a stage of code generation, of --emit",
    ("kernels/schedule/builder.cpp", 'find_buffer("conv")'): "convolutions and products share it",
    ("kernels/schedule/pairs.cpp", '->label != "acc"'): "convolutions and products share it",
    ("kernels/schedule/pairs.cpp", '.name != "w"'): "convolutions and products share it",
    ("kernels/schedule/pairs.cpp", '== "rc"'): "convolutions and products share it",
}
