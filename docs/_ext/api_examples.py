"""`.. example:: MODULE NAME`: a part of api/examples/MODULE.py, after the shared lines that it needs."""

import ast
import re
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

FOLDER = Path(__file__).parents[1] / "api" / "examples"
MARK = re.compile(r"^# --- (\w+) ---\n", re.MULTILINE)


def parts(module):
    """What all parts of a file share, and each part by its name."""
    shared, *rest = MARK.split((FOLDER / f"{module}.py").read_text(encoding="utf-8"))
    return shared, dict(zip(rest[::2], rest[1::2], strict=True))


def names(tree, context):
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, context)}


def bound(statement):
    """The names that a statement gives a value to."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    return names(statement, ast.Store)


def needed(shared, part):
    """The shared lines without statements whose names are not used later."""
    used, kept = names(ast.parse(part), ast.Load), []
    for statement in reversed(ast.parse(shared).body):
        own = bound(statement)
        if not own or own & used:
            used |= names(statement, ast.Load)
            kept.append(statement)
    lines = shared.splitlines()
    dropped = {
        k
        for statement in ast.parse(shared).body
        if statement.lineno not in {other.lineno for other in kept}
        for k in range(statement.lineno - 1, statement.end_lineno)
    }
    text = "\n".join(line for k, line in enumerate(lines) if k not in dropped)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


class Example(SphinxDirective):
    required_arguments = 2

    def run(self):
        module, name = self.arguments
        self.env.note_dependency(str(FOLDER / f"{module}.py"))
        shared, found = parts(module)
        if name not in found:
            raise self.error(f"docs/api/examples/{module}.py has no part '# --- {name} ---'. Add one.")
        text = needed(shared.split('"""', 2)[-1], found[name]) + "\n\n" + found[name].strip() + "\n"
        text = re.sub(r"  # noqa.*", "", text)
        return [nodes.literal_block(text, text, language="python")]


def setup(app):
    app.add_directive("example", Example)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
