"""The networks by their names in configurations.

A network is built from its configuration and the corpus (for the numbers of columns), takes a dictionary of inputs and gives a
dictionary: `score`, [batch] or [batch, platforms], and what else it has to say. `fit` sets its constants from inputs of training.
"""
from . import lstm, mlp, one_shot, primitives, ranker, tlp

NETWORKS = {"tlp": tlp.Tlp, "one-shot": one_shot.OneShot, "lstm": lstm.StatementLstm, "mlp": mlp.StatementMlp, "ranker": ranker.Ranker,
            "primitives": primitives.Primitives}
# Members of one set. Their scores are logarithms of speed, with a spread.
RANKERS = ("ranker", "primitives")


def build(config, corpus, platforms):
    return NETWORKS[config["model"]](config, corpus, platforms)
