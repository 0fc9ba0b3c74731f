"""The analytic branch of the ranker: terms of cost with coefficients that cannot be negative.

A statement costs the sum of its terms times their coefficients, a program the sum of its statements. All of it is in logarithms: terms
are columns of the statement's features (binary logarithms of counts) and sums of them, coefficients are exponentials, sums are
log-sum-exp. What a term is says `Terms`.
"""
import math

import torch
from torch import nn

BUFFERS = 5
LEVELS = ("l1", "l2", "l3")
ASSUMED = {"l1": 15.0, "l2": 20.0, "l3": 24.0}  # binary logarithms of bytes, where the hardware's numbers are not given
NEVER = -60.0
LOG2 = math.log(2)


class Terms(nn.Module):
    """[batch, statements, terms] of natural logarithms: work in scalars and in vectors, loops' overhead, accesses and cache lines of
    each buffer, and lines that come from behind each level of cache, which are those whose data is used again too late."""

    def __init__(self, columns):
        super().__init__()
        place = {name: at for at, name in enumerate(columns)}

        def column(name):
            return place[name]
        work = [at for name, at in place.items() if name.startswith(("float_", "int_")) or name in ("bool", "select")]
        work.append(column("iterations"))
        self.register_buffer("work", torch.tensor(work), persistent=False)
        self.vector, self.unroll = column("vector.product"), column("unroll.product")
        self.iterations = column("iterations")
        for name in ("bytes", "lines", "unique_lines", "lines_by_reuse", "reuse_distance_bytes", "register"):
            where = torch.tensor([column(f"buffer{b}.{name}") for b in range(BUFFERS)])
            self.register_buffer(name, where, persistent=False)
        self.count = 2 * len(work) + 2 + BUFFERS * (4 + len(LEVELS))

    def forward(self, rows, levels):
        vector = rows[:, :, self.vector:self.vector + 1]
        unroll = rows[:, :, self.unroll:self.unroll + 1]
        iterations = rows[:, :, self.iterations:self.iterations + 1]

        def counts(x):
            return torch.where(x > 0, x * LOG2, torch.full_like(x, NEVER))

        def less(x, y):
            return torch.where(x > 0, (x - y) * LOG2, torch.full_like(x, NEVER))
        work = rows[:, :, self.work]
        memory = 1 - rows[:, :, self.register]
        data, lines, distance = rows[:, :, self.bytes], rows[:, :, self.lines], rows[:, :, self.reuse_distance_bytes]
        out = [counts(work), less(work, vector), less(iterations, unroll), less(iterations, unroll + vector),
               counts(data * memory), less(data * memory, vector), counts(rows[:, :, self.unique_lines] * memory),
               counts(rows[:, :, self.lines_by_reuse] * memory)]
        for at in range(len(LEVELS)):
            late = nn.functional.logsigmoid(2 * (distance - levels[:, at][:, None, None]))
            out.append(torch.where(lines * memory > 0, lines * LOG2 + late, torch.full_like(lines, NEVER)))
        return torch.cat(out, dim=2)


class Analytic(nn.Module):
    """The logarithm of time, but for a constant. Coefficients are constants times what a context makes of them: that of the program, which
    is task and hardware, or that of each statement."""

    def __init__(self, columns, context, hardware_names):
        super().__init__()
        self.terms = Terms(columns)
        self.constant = nn.Parameter(torch.full((self.terms.count,), -3.0))
        self.change = nn.Linear(context, self.terms.count)
        nn.init.zeros_(self.change.weight)
        nn.init.zeros_(self.change.bias)
        self.thresholds = nn.Parameter(torch.zeros(len(LEVELS)))
        self.places = [next((i for i, name in enumerate(hardware_names) if name.lower().startswith(level)), None) for level in LEVELS]

    def levels(self, batch, hardware):
        sizes = []
        for at, level in enumerate(LEVELS):
            known = hardware is not None and self.places[at] is not None
            size = hardware[:, self.places[at]] if known else torch.full((batch,), ASSUMED[level])
            sizes.append(size + self.thresholds[at])
        return torch.stack(sizes, dim=1)

    def forward(self, rows, there, context, hardware):
        terms = self.terms(rows, self.levels(rows.shape[0], hardware))
        context = context if context.dim() == 3 else context[:, None, :]
        coefficients = self.constant + torch.tanh(self.change(context)) * 2
        each = torch.logsumexp(terms + coefficients, dim=2)
        return torch.logsumexp(torch.where(there > 0, each, torch.full_like(each, NEVER)), dim=1)
