#!/usr/bin/env python3
"""Every operator over random attributes, shapes and special values: the reference evaluator and compiled code against what is not the compiler's own,
ONNX's node cases, ONNX's Python reference and onnxruntime without optimizations.

    operator_table.py --tilewright BUILD/tilewright [--full | --share I/N] [--only OP,...] [--count N] [--seed S] [--engine NAME]
    operator_table.py --tilewright BUILD/tilewright --full --write     writes docs/reference/operator-table.md
    operator_table.py --check                                          whether its rows are those of the operators

--share: every N-th case; without --full it is 0/8.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import sys
import tempfile

import attention  # noqa: F401
import contrib_cases  # noqa: F401: each adds its operators
import elementwise  # noqa: F401
import layers  # noqa: F401
import learning  # noqa: F401
import movement  # noqa: F401
import node_cases
import onnx
import sequences  # noqa: F401
import sums  # noqa: F401
import table
import texts  # noqa: F401
from compare import error, first_difference
from draw import FAMILIES, Draw
from engines import ENGINES, Checked
from sources import Node, answers_of, opsets_of
from waivers import is_summing, limit_of, waiver_of

BATCH = 48


class Record:
    """What became of a case."""
    def __init__(self, case, sources, lacking):
        self.domain, self.op, self.version, self.index, self.text, self.name = case.domain, case.op, case.version, case.index, str(case), case.name()
        self.sources, self.lacking = sources, lacking
        self.errors, self.wrong, self.refused, self.waived = {}, [], "", {}   # errors: (engine, source) -> error
        self.bounded = False   # by a source whose waiver says how far it may be off

    def unjudged(self):
        """Whether each source that differs has a waiver, and none is left that agrees."""
        return bool(self.waived) and not self.errors and not self.bounded


def judge(record, checked, engine, results):
    """Compares with each source; what differs needs a waiver."""
    off, least = {}, checked.case.least_precise()
    for source, wanted in checked.answers.items():
        by_range, limit = limit_of(checked.case, source, engine)
        pairs = list(zip(results, wanted))
        measured = max((error(have, want, by_range, least) for have, want in pairs), default=0.0)
        if measured <= limit:
            record.errors[engine, source] = measured
            continue
        off[source] = (measured, next((first_difference(h, w) for h, w in pairs if error(h, w, by_range, least) > limit), ""))
    for source, (measured, told) in off.items():
        waiver = waiver_of(checked.case, source, engine, measured)
        if waiver:
            record.waived[source] = waiver.reason
            record.bounded |= waiver.within < float("inf")
        else:
            agreed = [s for s in checked.answers if s not in off]
            record.wrong.append(f"{engine} against {source}: {told} (error {measured:.3g}); as {' and '.join(agreed) or 'no source'}")


def drawn(seed, domain, op, index, opsets):
    return FAMILIES[domain, op](Draw(seed, domain, op, index, opsets))


def answered(case):
    """The case with its sources' answers; None: there are none."""
    try:
        node = Node(case, case.name())
        _, answers, lacking = answers_of(node)
    except Exception as problem:   # what was drawn is no model
        node, answers, lacking = None, {}, {"model": f"{type(problem).__name__}: {problem}"}
    return Record(case, list(answers), lacking), Checked(node, answers, lacking) if answers else None


def stored(folder, index):
    """One of ONNX's cases; None: it is none of a single operator on tensors."""
    case = node_cases.load(folder, index)
    if not case:
        return None, None
    return Record(case, [node_cases.SOURCE], {}), Checked(Node(case, case.name()), {node_cases.SOURCE: case.stored}, {})


def run_batch(job):
    """Records of the cases that keys name: (domain, operator, index, its opsets) of a drawn one, (folder, index) of a stored one."""
    tilewright, engines, keys, seed = job
    records, batch = [], []
    for key in keys:
        record, checked = stored(*key) if len(key) == 2 else answered(drawn(seed, *key))
        if not record:
            continue
        records.append(record)
        if checked:
            batch.append((record, checked))
    with tempfile.TemporaryDirectory() as work:
        for name in engines:
            outcome = ENGINES[name](tilewright, work).run([c for _, c in batch])
            for record, checked in batch:
                if record.name in outcome.results:
                    judge(record, checked, name, outcome.results[record.name])
                elif record.name in outcome.refused:
                    record.refused = outcome.refused[record.name]
                else:
                    record.wrong.append(f"{name}: {outcome.failed[record.name]}")
    return records


def jobs_of(args):
    """Cases of one opset go into batches together."""
    groups = collections.defaultdict(list)
    for (domain, op), opsets in table.catalogue().items():
        if (domain, op) not in FAMILIES or (args.only and op not in args.only):
            continue
        for index in range(args.count):
            if index % args.share[1] != args.share[0]:
                continue
            case = drawn(args.seed, domain, op, index, opsets)
            groups[str(opsets_of([case]))].append((domain, op, index, opsets))
    for index, folder in enumerate(node_cases.folders()):
        model = onnx.load(folder / "model.onnx")
        op = model.graph.node[0].op_type
        if index % args.share[1] == args.share[0] and (not args.only or op in args.only):
            groups[str(model.opset_import)].append((folder, index))
    for keys in groups.values():
        for at in range(0, len(keys), BATCH):
            yield args.tilewright, args.engine, keys[at:at + BATCH], args.seed


def told_of(records, verbose):
    """Prints what is wrong; how many are."""
    wrong = 0
    for record in records:
        wrong += bool(record.wrong)
        for line in record.wrong:
            print(f"WRONG {record.op}-{record.version} #{record.index}: {line}\n    {record.text}")
        if verbose and record.refused:
            print(f"refused {record.text}: {record.refused}")
        if verbose and not record.sources:
            print(f"no source {record.text}: {record.lacking}")
        for source, reason in record.waived.items() if verbose else ():
            print(f"waived {record.text}: {source}: {reason}")
        if verbose and record.unjudged():
            print(f"no source without a waiver: {record.op}-{record.version} {record.text}")
    return wrong


def share_of(text):
    index, count = map(int, text.split("/"))
    return index, count


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tilewright", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=16, help="cases an operator")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--engine", action="append", choices=list(ENGINES))
    parser.add_argument("--share", type=share_of, default=(0, 8))
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    args.engine = args.engine or list(ENGINES)
    args.share = (0, 1) if args.full else args.share
    args.tilewright = args.tilewright and args.tilewright.resolve()
    return args


def main():
    args = arguments()
    if args.check:
        return table.check(FAMILIES)
    records = []
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        for found in pool.map(run_batch, jobs_of(args)):
            records += found
            told_of(found, args.verbose)
            sys.stdout.flush()
    wrong = sum(bool(r.wrong) for r in records)
    compared = sum(bool(r.errors or r.waived) for r in records)
    print(f"{len(records)} cases of {len({(r.domain, r.op) for r in records})} operators: {compared} compared, {sum(bool(r.refused) for r in records)} refused, "
          f"{sum(not r.sources for r in records)} without a source, {sum(bool(r.waived) for r in records)} with a waiver, "
          f"{sum(r.unjudged() for r in records)} with waivers of all sources, {wrong} wrong")
    if args.write:
        table.write(records, FAMILIES, lambda key: is_summing(*key))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
