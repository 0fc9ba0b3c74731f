"""Learned cost models: they rank the programs of a kernel by how fast they will run.

Each model has a configuration in `configs/`, its network or trees in `models/`, and its own features and losses. `study.py` trains
all of them and writes all tables; `train.py`, `evaluate.py`, `transfer.py` and `export.py` are its parts. Each file's head says how
to run it. Needs `scripts/setup.sh train`; PyTorch is used here only, never by the compiler.
"""
