"""Cases together in one model: compiled once, run as often as there is data. Where something fails, each case is tried alone."""
import collections
import pathlib
import re
import tempfile

import onnx

from draw import MoreOutputs
from machines import BOARDS, EMULATORS, Fault, Refused, machine_of
from merged import merged, prefix_of

# what: compared, evaluated (alone), refused, failed, or again: more values are outputs now
Result = collections.namedtuple("Result", "case what why")


def run_together(cases, tilewright, target):
    """A Result a case; Fault where the model as a whole fails, Refused where a part of it is not supported."""
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        onnx.save(merged([case.model for case in cases]), work / "model.onnx")
        dims = {prefix_of(i) + name: values for i, case in enumerate(cases) for name, values in case.dims.items()}
        machine = machine_of(target)(tilewright, work, target, dims)
        wrong, again = [None] * len(cases), set()
        for number in range(len(cases[0].runs)):
            feeds = joined(cases, lambda case: case.runs[number])
            have = machine.run(number, feeds, joined(cases, lambda case: case.expected[number] if case.expected else {}))
            for i, case in enumerate(cases):
                prefix = prefix_of(i)
                if not case.expected or wrong[i] or i in again:
                    continue
                try:
                    wrong[i] = case.wrong(number, {name.removeprefix(prefix): value for name, value in have.items() if name.startswith(prefix)})
                except MoreOutputs:
                    again.add(i)
        if hasattr(machine, "verified") and not machine.emulator:
            said = machine.verified(feeds)
            for i, case in enumerate(cases):
                own = {name.removeprefix(prefix_of(i)): d for name, d in said.items() if name.startswith(prefix_of(i))}
                if wrong[i] and own and case.right_by_evaluators(own):
                    wrong[i] = None
                wrong[i] = wrong[i] or (None if i in again else case.evaluated_wrong(own))
        return [Result(case, "again" if i in again else "failed" if text else "compared" if case.expected else "evaluated", text)
                for i, (case, text) in enumerate(zip(cases, wrong))]


def joined(cases, tensors):
    return {prefix_of(i) + name: value for i, case in enumerate(cases) for name, value in tensors(case).items()}


def results_of_batch(cases, tilewright, target):
    """A Result of each case. Those that are refused are left out by the name in the message; of what fails together, each is tried alone."""
    cases = [case for case in cases if case.expected or not needs_expected(target)]
    results = []
    while cases:
        try:
            return results + [alone_again(r, tilewright, target, len(cases)) for r in run_together(cases, tilewright, target)]
        except (Refused, Fault) as why:
            index = re.search(r"\bg(\d+)_", str(why)) if isinstance(why, Refused) else None
            if index and int(index[1]) < len(cases) and len(cases) > 1:
                results.append(Result(cases.pop(int(index[1])), "refused", str(why)))
                continue
            return results + one_by_one(cases, tilewright, target, why)
    return results


def one_by_one(cases, tilewright, target, why):
    results = [run_alone(case, tilewright, target) for case in cases]
    if isinstance(why, Fault) and not any(r.what == "failed" for r in results):
        results[0] = Result(cases[0], "failed", f"only together with those up to seed {cases[-1].seed}: {why}")
    return results


def run_alone(case, tilewright, target):
    try:
        result = run_together([case], tilewright, target)[0]
        return run_alone(case, tilewright, target) if result.what == "again" else result
    except Refused as why:
        return Result(case, "refused", str(why))
    except Fault as why:
        return Result(case, "failed", str(why))


def alone_again(result, tilewright, target, count):
    """What has failed among others is tried alone, so that it is known which of the two it takes."""
    if result.what == "again":
        return run_alone(result.case, tilewright, target)
    if result.what != "failed" or count == 1:
        return result
    again = run_alone(result.case, tilewright, target)
    return again if again.what == "failed" else Result(result.case, "failed", f"only among others: {result.why}")


def needs_expected(target):
    """Elsewhere there is no evaluator, which makes up for what onnxruntime does not run."""
    return target in EMULATORS or target in BOARDS
