"""Who includes whom, by folder.

A node is a folder. Where a folder has sub-folders, its own files are two nodes: those that reach a
sub-folder stand on top of it (`ir/..`), the others below (`ir`).
"""
import os
import pathlib
import re

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include "([^"]+)"', re.MULTILINE)


class IncludeGraph:
    def __init__(self, root: pathlib.Path, files: list[pathlib.Path]):
        self.root = root
        names = {str(file.relative_to(root)) for file in files}
        includes = {}  # file -> files
        for name in sorted(names):
            folder = pathlib.PurePath(name).parent
            written = INCLUDE.findall((root / name).read_text())
            targets = [t if t in names else os.path.normpath(folder / t) for t in written]
            includes[name] = [t for t in targets if t in names]
        self.includes = includes
        node_of = self._nodes(includes)
        self.edges = {node: {} for node in sorted(set(node_of.values()))}  # from -> to -> [line]
        for name, targets in includes.items():
            for target in targets:
                if node_of[name] != node_of[target]:
                    lines = self.edges[node_of[name]].setdefault(node_of[target], [])
                    lines.append(f"{name} includes {target}")

    @staticmethod
    def _nodes(includes: dict[str, list[str]]) -> dict[str, str]:
        folder = {name: str(pathlib.PurePath(name).parent) for name in includes}
        parents = {str(p) for f in folder.values() for p in pathlib.PurePath(f).parents}
        unit = {name: str(pathlib.PurePath(name).with_suffix("")) for name in includes}
        reached = {}  # unit -> the units that it includes: a header stands with its source
        for name, targets in includes.items():
            reached.setdefault(unit[name], set()).update(unit[t] for t in targets)
        folder_of_unit = {unit[name]: folder[name] for name in includes}

        def on_top(start: str) -> bool:
            seen, todo = {start}, [start]
            while todo:
                for target in reached[todo.pop()] - seen:
                    if folder_of_unit[target].startswith(folder_of_unit[start] + "/"):
                        return True
                    seen.add(target)
                    todo.append(target)
            return False

        return {name: folder[name] + "/.." if folder[name] in parents and on_top(unit[name])
                else folder[name] for name in includes}

    def way(self, name: str, wanted: str) -> list[str]:
        """The files from one to another that it includes, over others; none if it does not."""
        ways, todo = {name: [name]}, [name]
        for file in todo:
            for target in self.includes[file]:
                if target not in ways:
                    ways[target] = [*ways[file], target]
                    todo.append(target)
        return ways.get(wanted, [])

    def circles(self) -> list[list[str]]:
        """Sets of nodes of which each reaches each."""
        reach = {node: self._reach(node) for node in self.edges}
        found = []
        for node in self.edges:
            circle = sorted(other for other in reach[node] if node in reach[other])
            if circle and circle not in found:
                found.append(circle)
        return found

    def _reach(self, start: str) -> set[str]:
        seen, todo = set(), [start]
        while todo:
            fresh = set(self.edges[todo.pop()]) - seen
            seen |= fresh
            todo += fresh
        return seen

    def inside(self, circle: list[str]) -> list[tuple[str, str, list[str]]]:
        return [(a, b, self.edges[a][b]) for a in circle for b in sorted(self.edges[a])
                if b in circle]

    def levels(self) -> list[list[str]]:
        """Each node above all that it includes; a circle counts as one."""
        reach = {node: self._reach(node) for node in self.edges}
        level = {}
        for node in sorted(self.edges, key=lambda n: len(reach[n])):
            below = [level[t] for t in reach[node] if t in level and node not in reach[t]]
            level[node] = 1 + max(below, default=-1)
        rows = [[] for _ in range(1 + max(level.values(), default=-1))]
        for node in sorted(level):
            rows[level[node]].append(node)
        return rows

    def arrows(self) -> list[tuple[str, str]]:
        """The includes that do not follow from others."""
        reach = {node: self._reach(node) for node in self.edges}
        return [(a, b) for a in self.edges for b in self.edges[a]
                if not any(b in reach[c] and a not in reach[c] for c in self.edges[a] if c != b)]

    def text(self) -> str:
        lines = []
        for number, row in reversed(list(enumerate(self.levels()))):
            for node in row:
                below = [b for a, b in self.arrows() if a == node]
                lines.append(f"{number:3}  {node:24} {' '.join(below)}".rstrip())
        return "\n".join(lines) + "\n"

    def dot(self) -> str:
        lines = ["digraph includes {", "  rankdir=BT; node [shape=box];"]
        lines += [f'  "{node}";' for node in self.edges]
        lines += [f'  "{a}" -> "{b}";' for a, b in self.arrows()]
        return "\n".join([*lines, "}"]) + "\n"

    def svg(self) -> str:
        """A row a level, what is included below."""
        wide, high, gap = 150, 26, 34
        rows = self.levels()
        width = max(len(row) for row in rows) * (wide + 14) + 14
        place = {}
        for number, row in enumerate(reversed(rows)):
            left = (width - len(row) * (wide + 14)) / 2
            for column, node in enumerate(row):
                place[node] = (left + column * (wide + 14) + 7, 12 + number * (high + gap))
        height = 12 + len(rows) * (high + gap)
        out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
               'font-family="sans-serif" font-size="12">',
               f'<rect width="{width}" height="{height}" fill="white"/>']
        for a, b in self.arrows():
            (ax, ay), (bx, by) = place[a], place[b]
            out.append(f'<line x1="{ax + wide / 2:.0f}" y1="{ay + high:.0f}" '
                       f'x2="{bx + wide / 2:.0f}" y2="{by:.0f}" stroke="#9aa5b1"/>')
        for node, (x, y) in place.items():
            out.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="{wide}" height="{high}" rx="4" '
                       'fill="#eef3f8" stroke="#456"/>')
            out.append(f'<text x="{x + wide / 2:.0f}" y="{y + 17:.0f}" '
                       f'text-anchor="middle">{node}</text>')
        return "\n".join([*out, "</svg>"]) + "\n"
