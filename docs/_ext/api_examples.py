"""`.. example:: MODULE NAME`: a part of api/examples/MODULE.py, marked by its name, after the lines that all share."""

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


class Example(SphinxDirective):
    required_arguments = 2

    def run(self):
        module, name = self.arguments
        self.env.note_dependency(str(FOLDER / f"{module}.py"))
        shared, found = parts(module)
        if name not in found:
            raise self.error(f"docs/api/examples/{module}.py has no part '# --- {name} ---'. Add one.")
        text = shared.split('"""')[-1].strip() + "\n\n" + found[name].strip() + "\n"
        text = re.sub(r"  # noqa.*", "", text)
        return [nodes.literal_block(text, text, language="python")]


def setup(app):
    app.add_directive("example", Example)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
