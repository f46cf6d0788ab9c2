"""Formulas are drawn by a copy of MathJax in the site itself: one script, which needs no fonts and no other host."""

import shutil
from importlib.metadata import files
from pathlib import Path

SCRIPT = "tex-svg.js"


def copy(app, exception):
    if exception is None and app.builder.format == "html":
        found = next(path for path in files("sphinx-mathjax-offline") if path.name == SCRIPT)
        folder = Path(app.outdir, "_static", "mathjax")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found.locate(), folder / SCRIPT)


def setup(app):
    app.connect("build-finished", copy)
    app.config.mathjax_path = f"mathjax/{SCRIPT}"
    app.config.mathjax3_config = {"options": {"enableMenu": False}}
    return {"parallel_read_safe": True, "parallel_write_safe": True}
