"""`{benchmark} NAME`: the tables of docs/results/NAME.json, as `python -m benchmarks --table` prints them."""

import sys
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.harness import report, table  # noqa: E402
from benchmarks.harness.rows import NOUNS  # noqa: E402


class Benchmark(SphinxDirective):
    """Tables, the command that repeats them, and when and with what they were measured."""

    required_arguments = 1

    def run(self):
        name = self.arguments[0]
        path = ROOT / "docs" / "results" / f"{name}.json"
        self.env.note_dependency(str(path))
        found = report.read(path)
        lines, caption = table.summarised(name, found["rows"])
        return [drawn(lines or table.plain_lines(found["rows"])), told(name, found["metadata"], caption)]


def told(name, facts, caption):
    versions = ", ".join(f"{key} {facts[key]}" for key in ("python", "numpy", "numba"))
    text = (
        f"{caption} ".lstrip()
        + f"Measured {facts['date'][:10]} on {facts['threads']} threads, {versions}; repeat it by "
    )
    return nodes.paragraph("", "", nodes.Text(text), nodes.literal("", f"python -m benchmarks {name}"), nodes.Text("."))


def drawn(lines):
    """A table without the columns that are the same in all lines."""
    columns = list(dict.fromkeys(key for line in lines for key in line))
    columns = [c for c in columns if c not in (*NOUNS, "runs") or len({line.get(c, "") for line in lines}) > 1]
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in columns), cols=len(columns))
    group += nodes.thead("", line_of(column.replace("_", " ") for column in columns))
    group += nodes.tbody("", *(line_of(line.get(column, "") for column in columns) for line in lines))
    return nodes.table("", group, classes=["benchmark"])


def line_of(cells):
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", cell)) for cell in cells))


def setup(app):
    app.add_directive("benchmark", Benchmark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
