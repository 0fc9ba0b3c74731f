#!/usr/bin/env python3
"""Looks at the pages of `compile --report` and `tune --report`: they are whole, ask for no other file, have every call
with its schedule and memory, and no name in a model can break them. Where Chromium is installed, it opens them.

    report.py [--tilewright BUILD/tilewright]
"""
import argparse
import html
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

import onnx
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HOSTILE = "</script><script>console.error('hostile')</script><!--<b>\u2028&amp;\"'"
DIGITS = ROOT / "examples/digits/digits.onnx"
VOID = {"meta", "link", "input", "br"}


def hostile_model(path):
    """y = softmax(relu(x @ w)), two of them in a chain, with names that would end a script or open an element."""
    weights = helper.make_tensor("w", TensorProto.FLOAT, [64, 64], [0.01 * (i % 7) for i in range(64 * 64)])
    nodes = []
    value = "x"
    for layer in range(2):
        for op, inputs in (("MatMul", [value, "w"]), ("Relu", ["m"]), ("Softmax", ["r"])):
            inputs = [i if i in ("x", "w") or i == value else f"{i}{layer}{HOSTILE}" for i in inputs]
            made = {"MatMul": f"m{layer}{HOSTILE}", "Relu": f"r{layer}{HOSTILE}", "Softmax": f"s{layer}{HOSTILE}"}[op]
            made = "y" if layer == 1 and op == "Softmax" else made
            nodes.append(helper.make_node(op, inputs, [made], name=f"{op}{layer}{HOSTILE}"))
            value = made
    graph = helper.make_graph(nodes, "hostile", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 64])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 64])], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


class Page(html.parser.HTMLParser):
    """Its elements must close in the order they opened in; what the JSON element holds is in `data`."""

    def __init__(self, text):
        super().__init__()
        self.open, self.data, self.scripts, self.addresses = [], "", 0, []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.addresses += [attributes[a] for a in ("src", "href") if a in attributes]
        self.scripts += tag == "script"
        if tag not in VOID:
            self.open.append((tag, attributes.get("id")))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == ("script", "data"):
            self.data += data


def run(tilewright, *words, code=0):
    done = subprocess.run([tilewright, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == code, f"{words}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def data_of(path):
    page = Page(path.read_text())
    assert page.scripts == 2, "a name made an element"
    assert all(a.startswith("data:") for a in page.addresses), page.addresses
    return json.loads(page.data)


def check_page(path, library, tilewright, timed):
    report = data_of(path)
    manifest = json.loads(subprocess.run([tilewright, "inspect", library, "--json"], capture_output=True, check=True).stdout)["manifest"]
    assert [c["name"] for c in report["calls"]] == [c["name"] for c in manifest["calls"]]
    for number, call in enumerate(report["calls"]):
        assert call["arguments"] and all(0 <= before < number for before in call["after"]), call
        assert call["source"] in ("default", "tuned", "transferred", "predicted", ""), call
    assert any("{" in call["schedule"] for call in report["calls"])
    assert all(b["offset"] + b["bytes"] <= report["arena_bytes"] for b in report["buffers"])
    assert len(report["times"]) == (len(report["calls"]) if timed else 0)
    assert bool(report["no_times"]) != timed, report["no_times"]
    assert bool(report["estimates"]) != timed
    return report


def check_estimates(report):
    """Cycles of each call's code on a Cortex-A72, not fewer than its rates allow; hot loops without spills."""
    assert len(report["estimates"]) == len(report["calls"]) and report["clock"] > 0
    for call, e in zip(report["calls"], report["estimates"]):
        hot = e["hot_loop"]
        assert e["call"] == call["name"] and (e["problem"] or 0 < hot["cycles_an_iteration"] <= hot["cycles"] <= e["cycles"] * (1 + 1e-9)), e
        assert e["problem"] or e["peak_flops"] == 0 or e["flops"] <= 1.05 * e["cycles"] * e["peak_flops"], (call["name"], e)
    products = [(c, e) for c, e in zip(report["calls"], report["estimates"]) if not e["problem"] and e["flops"] > 0.4 * 2 * 8 * 64 * 64]
    assert products, report["estimates"]
    for call, e in products:   # the matrix products
        assert call["spills"] == 0 and e["flops"] > 0.2 * e["cycles"] * e["peak_flops"], (call, e)
        hot = e["hot_loop"]
        assert hot["cycles"] > 0.4 * e["cycles"] and hot["spills_an_iteration"] == 0, e
        assert 50 < hot["peak_percent"] <= 100, e
        assert 0.8 * e["flops"] < 2 * hot["iterations"] * hot["multiply_adds_an_iteration"] <= e["flops"], e


def check_instructions(tilewright, folder):
    """The multiply-adds of a target's own instructions count: bytes, four at once, on a Neoverse N1."""
    made = json.loads(run(tilewright, "compile", DIGITS.with_name("digits_int8.onnx"), "-t", "neoverse-n1", "-o", folder / "n1.so",
                          "--report", folder / "n1.html", "--json"))
    shares = [2 * e["hot_loop"]["iterations"] * e["hot_loop"]["multiply_adds_an_iteration"] / e["flops"]
              for e in made["estimates"] if e["hot_loop"] and e["kernel"].startswith(("conv", "matmul"))]
    # The last product has ten columns in panels of four.
    assert all(share <= 1 for share in shares[:-1]) and shares[-1] <= 12 / 10 and sum(share > 0.8 for share in shares) >= 2, made["estimates"]
    assert made["estimates"] == data_of(folder / "n1.html")["estimates"]


def check_no_model(tilewright, folder):
    """Where LLVM has no model of the processor, every call says so, and the page once."""
    page = folder / "a7.html"
    run(tilewright, "compile", DIGITS, "-t", "cortex-a7", "-o", folder / "a7.so", "--report", page)
    estimates = data_of(page)["estimates"]
    assert estimates and all("no model of the processor 'cortex-a7'" in e["problem"] and not e["hot_loop"] for e in estimates), estimates
    check_browser(page, len(estimates), None)


def check_errors(report):
    """Every call's result was compared, and differs by what rounding does."""
    assert {e["call"] for e in report["errors"]} == set(range(len(report["calls"]))), report["errors"]
    assert all(0 <= e["max_rel"] < 1e-4 and e["max_ulp"] >= 0 for e in report["errors"]), report["errors"]
    assert any(e["max_rel"] > 0 for e in report["errors"]), "nothing was computed twice"


def check_tuning(path, trials):
    report = data_of(path)
    assert report["trials"] == trials, report["trials"]
    rounds = report["rounds"]
    assert rounds and all(a["seconds"] <= b["seconds"] and a["trials"] <= b["trials"] for a, b in zip(rounds, rounds[1:]))
    times = [r["network_seconds"] for r in rounds]
    assert all(b <= a * (1 + 1e-9) for a, b in zip(times, times[1:])), f"the network gets slower: {times}"
    for task in report["tasks"]:
        assert task["schedule"] and task["default_schedule"] and task["seconds"] <= task["default_seconds"], task
        assert min(task["curve"], default=task["seconds"]) == task["seconds"], task
    assert abs(sum(t["calls"] * t["seconds"] for t in report["tasks"]) / report["network_seconds"] - 1) < 1e-6
    return report


def shown(path, width=1280):
    """What Chromium makes of the page, which must say nothing on its console; None: it is not installed."""
    browser = shutil.which("chromium")
    if not browser:
        return None
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
                               f"--window-size={width},900", "--enable-logging=stderr", "--dump-dom", path.as_uri()],
                              capture_output=True, text=True, timeout=120)
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not said, said
    assert "<main" in done.stdout, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def check_browser(path, rows, nodes):
    """Whether Chromium was there. It must show so many rows, and boxes unless they are None."""
    page = shown(path)
    if page is None:
        return False
    table = re.search(r'<table id="kernels">(.*?)</table>', page, re.S)
    assert table and table[1].count("<tr") == rows + 1, page[-2000:]
    if nodes is None:
        return True
    assert page.count('<g class="node') == nodes
    assert ("hostile')" in page) == (nodes > 0)   # it is there as a text
    return True


FITS = "document.body.dataset.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth"


def check_click(path, report, folder):
    """One click, on the first name of the table: the slowest call, its schedule and its memory. No page is wider than its window."""
    slowest = max(range(len(report["times"])), key=lambda i: report["times"][i]["ms"])
    call = report["calls"][slowest]
    clicked = folder / "clicked.html"
    script = f"document.querySelector('#kernels tbody button').click(); {FITS};"
    clicked.write_text(path.read_text().replace("</body>", f"<script>{script}</script></body>"))
    for width in (1280, 500):
        page = shown(clicked, width)
        if page is None:
            return
        detail = html.unescape(re.search(r'<section id="detail".*?</section>', page, re.S)[0])
        assert call["name"] in detail and call["schedule"].strip() in detail, detail
        assert all(f"<td>{a['offset']}</td>" in detail for a in call["arguments"]), detail
        assert page.count('class="mark chosen"') >= 2, "neither the roofline nor the memory marks the call"
        assert "arena " in re.search(r'<p id="summary">(.*?)</p>', page)[1]
        assert 'data-wide="0"' in page, f"wider than a window of {width} pixels: {re.findall('data-wide=.*?>', page)}"


def branching_model(path):
    """A stem, many branches beside each other, and a head: a drawing that is wider than a phone, with nothing at its left."""
    weights = [helper.make_tensor(f"w{i}", TensorProto.FLOAT, [16, 16], [0.01 * (i + 1)] * 256) for i in range(14)]
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["stem"])]
    nodes += [helper.make_node("MatMul", ["stem", f"w{i}"], [f"b{i}"]) for i in range(14)]
    nodes += [helper.make_node("Softmax", [f"b{i}"], [f"s{i}"]) for i in range(14)]
    nodes += [helper.make_node("Concat", [f"s{i}" for i in range(14)], ["all"], axis=1), helper.make_node("Softmax", ["all"], ["y"])]
    graph = helper.make_graph(nodes, "wide", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 16])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 224])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


# How many boxes of the drawing a person sees before anything is scrolled by hand, and then of the call that is chosen.
SEEN = """{ const view = document.querySelector('#graph .scroll').getBoundingClientRect();
const seen = (selector) => [...document.querySelectorAll(selector)].map((box) => box.getBoundingClientRect()).filter((b) =>
  b.left >= view.left && b.right <= view.right && b.top >= view.top && b.bottom <= view.bottom).length;
document.body.dataset.first = seen('.node:first-of-type');
document.querySelector('#kernels tbody tr:last-child button').click();
document.body.dataset.chosen = seen('.node.chosen'); }"""


def check_phone(tilewright, folder):
    """On a phone the drawing begins where the first call is, and goes where the chosen one is."""
    model, page = folder / "wide.onnx", folder / "wide.html"
    branching_model(model)
    run(tilewright, "compile", model, "-t", "cortex-a72", "-o", folder / "wide.so", "--report", page)
    page.write_text(page.read_text().replace("</body>", f"<script>{SEEN}</script></body>"))
    text = shown(page, 500)
    if text is None:
        return
    found = {name: re.search(f'data-{name}="(\\d+)"', text) for name in ("first", "chosen")}
    assert all(m and m[1] == "1" for m in found.values()), {name: m and m[0] for name, m in found.items()}


def check_few_errors(tilewright, folder):
    """Where no error was reached in time the page says so, and has no empty table."""
    page = folder / "few.html"
    run(tilewright, "compile", DIGITS, "-o", folder / "few.so", "--report", page, "--report-errors", 1e-6)
    report, text = data_of(page), shown(page)
    assert not report["errors"] and "not reached" in report["errors_note"], report["errors"]
    assert text is None or ("not reached" in text and 'id="errors-table"' not in text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tilewright", default=ROOT / "build/release/tilewright", type=pathlib.Path)
    tilewright = parser.parse_args().tilewright.resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model, library, page = folder / "m.onnx", folder / "m.so", folder / "m.html"
        hostile_model(model)
        run(tilewright, "compile", model, "-o", library, "--report", page, "--report-errors", "20")
        report = check_page(page, library, tilewright, timed=True)
        check_errors(report)
        assert any(HOSTILE in c["name"] for c in report["calls"]), "the hostile names did not come here"
        assert any(c["after"] for c in report["calls"])
        seen = check_browser(page, len(report["calls"]), len(report["calls"]))
        check_click(page, report, folder)
        check_few_errors(tilewright, folder)
        check_phone(tilewright, folder)
        run(tilewright, "tune", DIGITS, "--trials", 8, "--log", folder / "log.db", "--report", page)
        tuning = check_tuning(page, 8)
        check_browser(page, len(tuning["tasks"]), 0)

        pages = []
        for name in ("a", "b"):   # no times: equal bytes
            page = folder / f"{name}.html"
            run(tilewright, "compile", model, "-t", "cortex-a72", "-o", library, "--report", page)
            check_estimates(check_page(page, library, tilewright, timed=False))
            pages.append(page.read_bytes())
        check_browser(page, len(report["calls"]), len(report["calls"]))
        # The library's name is the same, so all of it is
        assert pages[0] == pages[1]
        check_instructions(tilewright, folder)
        check_no_model(tilewright, folder)

        assert "no folder" in run(tilewright, "compile", model, "-o", library, "--report", folder / "no/r.html", code=5)
        assert "--report-errors needs" in run(tilewright, "compile", model, "-o", library, "--report-errors", 1, code=1)
        assert "no folder" in run(tilewright, "tune", DIGITS, "--log", folder / "log.db", "--report", folder / "no/r.html", code=5)
        assert "--emit graph" in run(tilewright, "compile", model, "--emit", "graph", "--report", page, code=1)
    print("report: ok" if seen else "report: ok; not opened in Chromium, which is not installed")


if __name__ == "__main__":
    main()
