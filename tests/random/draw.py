"""A seed's graph: what it is like, the forms in which it is compiled, the data of its runs and what they must give."""
import dataclasses

import numpy as np
import onnx

import constants
import control
import elementwise
import layers
import shapes
import special
from functions import with_functions
from graph import BF16, F16, F32, POLYNOMIALS, Generator, reads
from oracle import LEAST_SPAN, Steps, difference, distance, in_f32, inner_values, results_of, with_outputs
from quantizer import Quantizer, to_qlinear

EVERYTHING = elementwise.FAMILIES + shapes.FAMILIES + layers.FAMILIES + control.FAMILIES + constants.FAMILIES
NETWORKS = layers.NETWORK + elementwise.NETWORK + shapes.NETWORK
FAMILIES = {"mixed": EVERYTHING, "pictures": NETWORKS + layers.PICTURES * 3, "sequences": NETWORKS + layers.SEQUENCES * 3, "special": special.FAMILIES}
TOLERANCE = {F32: 1e-4, F16: 2e-2, BF16: 1e-1}   # of an output's range, by the least precise type of the graph
STYLES = ["mixed", "mixed", "mixed", "pictures", "sequences", "special"]


@dataclasses.dataclass
class Case:
    """model: what is compiled. whole: the same without functions. plain: without QLinear operators too, for onnxruntime. runs: the inputs'
    data. expected: the outputs of each run, or None. dims: the values of each free dimension in the runs."""
    seed: int
    style: str
    whole: onnx.ModelProto
    plain: onnx.ModelProto
    runs: list
    tolerance: float = 1e-4
    dims: dict = dataclasses.field(default_factory=dict)
    expected: list = None
    steps: Steps = None
    loose: set = dataclasses.field(default_factory=set)   # quantized values with elements near ties; outputs
    all_values: list = None
    unclear: bool = False   # a zero point that the graph computes may be another one
    model: onnx.ModelProto = None

    def __post_init__(self):
        self.steps, self.model = Steps(self.plain), self.whole
        if self.steps.made:
            self.show_ties()
        else:
            self.expected = results_of(self.plain, self.runs)

    def show_ties(self):
        """A quantized value near a tie may be a step off. It becomes an output, and what reads it is judged by what has been made
        of it, so that all else is exact."""
        outputs = [o.name for o in self.plain.graph.output]
        asked = list(dict.fromkeys([*outputs, *self.steps.made, *self.steps.read()]))
        found = results_of(with_outputs(self.plain, asked), self.runs)
        if found is None:
            return
        self.unclear = any(self.steps.zero_unclear(results) for results in found)
        self.loose = {name for name in self.steps.made for results in found if self.steps.near(name, results).any()}
        self.all_values = found
        self.show_loose()

    def wrong(self, run, have):
        """What is wrong with the outputs of a run; None: nothing."""
        want, allowed = self.expected[run], {}
        if self.loose and any(not np.array_equal(have[name], want[name]) for name in self.loose):
            found = self.fed_with(run, have)
            if found is None:
                return f"onnxruntime does not go on from {sorted(self.loose)}"
            want, allowed = found
        def judged(tolerances):
            lines = (difference(name, have[name], want[name], tolerances.get(name, self.tolerance), allowed.get(name), self.style == "special") for name in want)
            return next(filter(None, lines), None)
        said = judged({})
        return judged(self.rounding_of(run)) if said and self.tolerance > TOLERANCE[F32] else said

    def rounding_of(self, run):
        """Tolerances where 16 bits cost more than is usual, as in a softmax of large numbers: by what they cost onnxruntime."""
        wide, names = in_f32(self.plain), list(self.expected[run])
        found = results_of(wide, [{name: value.astype(F32) if value.dtype == F16 else value for name, value in self.runs[run].items()}])
        return {name: self.tolerance + 2 * distance(self.expected[run][name], found[0][name]) for name in names} if found else {}

    def fed_with(self, run, have):
        """Outputs, where each node is fed with the quantized values that the library has made; where those may be a step off."""
        cut = onnx.ModelProto()
        cut.CopyFrom(self.plain)
        for node in cut.graph.node:
            node.output[:] = [f"{name}__made" if name in self.loose else name for name in node.output]
        for name in sorted(self.loose):
            value = have[name]
            cut.graph.input.append(onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
        names = {f"{o.name}__made" if o.name in self.loose else o.name: o.name for o in self.plain.graph.output}
        found = results_of(with_outputs(cut, list(dict.fromkeys([*names, *self.steps.read()]))), [{**self.runs[run], **{n: have[n] for n in self.loose}}])
        if found is None:
            return None
        results = found[0]
        shown = {name for name in self.steps.made if name not in self.loose and self.steps.near(name, results).any()}
        if shown:   # near ties of other values, now that those are a step off
            self.loose |= shown
            self.show_loose()
            raise MoreOutputs
        return {name: results[made] for made, name in names.items()}, {name: self.steps.near(name, results) for name in self.loose}

    def show_loose(self):
        """What may be a step off becomes an output, beside the others."""
        outputs = list(dict.fromkeys([*(o.name for o in self.plain.graph.output), *sorted(self.loose)]))
        self.model, self.plain = (with_outputs(m, outputs, self.all_values[0]) for m in (self.whole, self.plain))
        self.expected = [{name: results[name] for name in outputs} for results in self.all_values]

    def evaluated_wrong(self, said):
        """What the evaluators say of the last run, by `verify`. Outputs behind loose values are for onnxruntime alone, as the evaluators
        are not fed with what the library has made."""
        behind = self.behind_loose()
        for name, d in said.items():
            if "problem" in d:
                return f"evaluator: {name} {d['problem']}"
            if d["max_abs"] is None:   # infinite, or no number
                if self.tolerance > TOLERANCE[F32]:   # a short float that overflows between two operators, which onnxruntime joins
                    continue
                return f"evaluator: {name}[{d['worst']}] is {d['got']}, expected {d['want']}"
            steps = name in self.loose | self.steps.words_given and d["max_abs"] <= 1
            integers = self.expected is not None and self.expected[-1][name].dtype.kind != "f"
            near = d["max_abs"] <= self.tolerance * LEAST_SPAN or (d["max_rel"] is not None and d["max_rel"] <= self.tolerance)
            if name in behind or steps or d["max_abs"] == 0 or (near and not integers):
                continue
            return f"evaluator: {name}[{d['worst']}] is {d['got']}, expected {d['want']}"
        return None

    def right_by_evaluators(self, said):
        """Whether onnxruntime, whose sigmoids near 0 are off, may be the one that is wrong: the evaluators agree with the library."""
        known = any(node.op_type in POLYNOMIALS for node in self.plain.graph.node)
        return known and all("problem" not in d and d["max_rel"] is not None and d["max_rel"] <= self.tolerance for d in said.values())

    def behind_loose(self):
        """Values that are made of loose ones, or of ones that the evaluators may round otherwise."""
        behind, first = set(), self.loose | self.steps.words_given
        for node in self.plain.graph.node:
            if reads(node) & (behind | first):
                behind |= set(node.output)
        return behind


class MoreOutputs(Exception):
    """More values must be outputs before the rest can be judged: the case has to be compiled again."""


def style_of(seed):
    """A third of all graphs are quantized."""
    return "quantized" if seed % 3 == 0 else STYLES[seed // 3 % len(STYLES)]


def case_of(seed, most, subnormals=True):
    """subnormals: whether there are such in special data. None: nothing could be drawn."""
    rng, style = np.random.default_rng(seed), style_of(seed)
    drawn = ("pictures", "sequences")[rng.random() < 0.3] if style == "quantized" else style
    generator = Generator(rng, drawn, style == "quantized", subnormals)
    count = 2 + generator.pick(most - 1)
    for _ in range(4 * count):
        if len(generator.nodes) < count:
            generator.step(FAMILIES[drawn])
    if not generator.nodes:
        return None
    plain = generator.finish()
    runs = [generator.feeds(second) for second in (False, True)]
    if style == "quantized":
        plain = quantized(plain, runs, rng)
        if plain is None:
            return None
    whole = to_qlinear(plain, rng) if style == "quantized" and rng.random() < 0.4 else plain
    dims = {free.name: (int(free), free.second) for free in generator.frees}
    case = Case(seed, style, whole, plain, runs, TOLERANCE[generator.least_precise()], dims)
    if case.unclear or (style == "quantized" and case.expected is None):
        return None
    if rng.random() < 0.25:
        case.model = with_functions(case.model, rng)
    return case


def quantized(model, runs, rng):
    """None: onnxruntime does not run it."""
    names = [*inner_values(model)]
    found = results_of(with_outputs(model, names), runs)
    if found is None:
        return None
    ranges, seen = {}, {}
    for results in (*found, *runs):
        for name, value in results.items():
            if value.dtype == F32 and value.size:
                ranges.setdefault(name, []).extend([float(value.min()), float(value.max())])
                seen.setdefault(name, set()).add(value.shape)
    ranges = {name: (min(ends), max(ends)) for name, ends in ranges.items() if max(map(abs, ends)) < 1e4}   # a mask's stay floats
    shapes = {name: min(some) for name, some in seen.items() if len(some) == 1}
    return Quantizer(model, ranges, shapes, rng).write()
