"""Tilewright's ranker: statements, schedule primitives, the task and the hardware as tokens, and an analytic branch.

Statements are tokens of their loop features; primitives are tokens of their kind, their log-scaled numbers, their position, and the
stage that they change. One pre-norm transformer layer mixes them. The score is the negative logarithm of the analytic branch's time
plus a linear function of the embedding, so a new platform needs only a new linear head. `spread` is the ranker's own deviation of its
score. Each part can be left out by the configuration, which is how the ablation is made.
"""
import torch
from torch import nn

from .analytic import Analytic
from .common import EncoderLayer, Scale, layers, logarithm2, present, real_rows

KINDS = 21
STAGES = 16


class StepTokens(nn.Module):
    def __init__(self, rows, columns, width):
        super().__init__()
        self.token = layers(columns + STAGES, width, width, last=False)
        self.positions = nn.Parameter(torch.randn(rows, width) * 0.02)
        self.register_buffer("stages", torch.arange(1, STAGES + 1).float(), persistent=False)

    def forward(self, steps):
        kinds, numbers = steps[:, :, :KINDS], steps[:, :, KINDS:]
        stage = (numbers[:, :, :1] == self.stages).float()
        scaled = torch.log(numbers.abs() + 1) * 0.5
        return self.token(torch.cat([kinds, scaled, stage], dim=2)) + self.positions


class Registers(nn.Module):
    """[batch, statements, 6] of binary logarithms: what a statement holds, and the tile of its unrolled and vector loops, over the machine's
    vector registers; its vector over the machine's; and of each how far it is above. Beyond the registers values are spilled."""

    COUNT = 6

    def __init__(self, columns, hardware_names):
        super().__init__()
        self.alloc, self.vector, self.innermost, self.unroll = (
            columns.index(name) for name in ("alloc.bytes", "vector.product", "vector.innermost", "unroll.product"))
        self.bytes, self.count = hardware_names.index("vector_bytes"), hardware_names.index("vector_registers")

    def forward(self, rows, there, hardware):
        width = hardware[:, self.bytes:self.bytes + 1]
        all_bytes = width + hardware[:, self.count:self.count + 1]
        over = torch.stack([rows[:, :, self.alloc] - all_bytes, rows[:, :, self.vector] + rows[:, :, self.unroll] + 2 - all_bytes,
                            rows[:, :, self.innermost] + 2 - width], dim=2)
        return torch.cat([over, torch.relu(over)], dim=2) * 0.25 * there[:, :, None]


class Context(nn.Module):
    """[batch, width]: what is the same for all programs of a task on a platform. `single` names the kinds that are read: task, hardware."""

    def __init__(self, single, corpus, width, dropout):
        super().__init__()
        self.single, self.dropout = single, nn.Dropout(dropout)
        sizes = [len(corpus.features["task"].columns) if kind == "task" else len(corpus.hardware_names) for kind in single]
        self.scales = nn.ModuleDict({kind: Scale(size) for kind, size in zip(single, sizes)})
        self.layers = layers(max(1, sum(sizes)), width, last=True)

    @staticmethod
    def seen(kind, inputs):
        """Hardware comes as it is, tasks come as logarithms."""
        return logarithm2(inputs[kind]) if kind == "hardware" else inputs[kind]

    def fit(self, inputs):
        for kind in self.single:
            self.scales[kind].fit_moments(self.seen(kind, inputs))

    def forward(self, inputs, batch):
        scaled = [self.scales[kind](self.seen(kind, inputs)).clamp(-4, 4) for kind in self.single]
        return self.dropout(self.layers(torch.cat(scaled, dim=1) if scaled else torch.zeros(batch, 1)))


class Doubt(nn.Module):
    """How far off a score may be, from its embedding; it changes nothing before it."""

    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, 1)

    def forward(self, embedding):
        return torch.exp(self.linear(embedding.detach())[:, 0].clamp(-5, 2)) + 0.02


class Ranker(nn.Module):
    def __init__(self, config, corpus, _platforms):
        super().__init__()
        network, needs = config["network"], config["features"]
        self.width, self.parts = network["width"], network["parts"]
        self.dropout, self.each_statement = nn.Dropout(network["dropout"]), network["coefficients"] == "statement"
        self.columns = corpus.features["loops"].columns
        self.scale = Scale(len(self.columns))
        self.registers = Registers(self.columns, corpus.hardware_names) if "registers" in self.parts else None
        self.statement = layers(len(self.columns) + (Registers.COUNT if self.registers else 0), self.width, self.width)
        if "steps" in self.parts:
            self.steps = StepTokens(needs["steps"]["rows"], needs["steps"]["width"], self.width)
        self.context = Context([kind for kind in ("task", "hardware") if kind in self.parts], corpus, self.width, network["dropout"])
        self.layer = EncoderLayer(self.width, network["heads"], 2 * self.width, network["dropout"]) if "attention" in self.parts else None
        pooled = self.width * (2 + ("steps" in self.parts))
        self.embed = layers(pooled, 2 * self.width, network["embedding"])
        self.head = nn.Linear(network["embedding"], 1)
        self.doubt = Doubt(network["embedding"])
        self.analytic = Analytic(self.columns, self.width, corpus.hardware_names if "hardware" in self.parts else []) \
            if "analytic" in self.parts else None

    def fit(self, inputs):
        self.scale.fit_moments(real_rows(inputs["loops"]))
        self.context.fit(inputs)

    def forward(self, inputs):
        rows = inputs["loops"]
        there = present(rows)
        context = self.context(inputs, rows.shape[0])
        statements = self.scale(rows).clamp(-4, 4)
        if self.registers is not None:
            statements = torch.cat([statements, self.registers(rows, there, Context.seen("hardware", inputs))], dim=2)
        tokens = [self.statement(statements), context[:, None, :]]
        known = [there, torch.ones(rows.shape[0], 1)]
        if "steps" in self.parts:
            tokens.append(self.steps(inputs["steps"]))
            known.append(inputs["steps"][:, :, :KINDS].sum(dim=2))
        x, known = torch.cat(tokens, dim=1), torch.cat(known, dim=1)
        if self.layer is not None:
            x = self.layer(x, known)
        x = x * known[:, :, None]
        count = rows.shape[1]
        pooled = [x[:, :count].sum(dim=1), x[:, count]]
        if "steps" in self.parts:
            pooled.append(x[:, count + 1:].sum(dim=1) / 16)
        embedding = self.embed(self.dropout(torch.cat(pooled, dim=1)))
        score = self.head(embedding)[:, 0]
        if self.analytic is not None:
            hardware = Context.seen("hardware", inputs) if "hardware" in self.parts else None
            score = score - self.analytic(rows, there, x[:, :count] if self.each_statement else context, hardware)
        return {"score": score, "spread": self.doubt(embedding), "embedding": embedding}
