"""Docstrings are written for a terminal, with |x|, ‖X‖_* and x_; here they become valid reStructuredText."""

import re

LITERAL = re.compile(r"(`[^`]+`|\*\*\S.*?\S\*\*|https?://\S+)")
SPECIAL = re.compile(r"(?<!\\)([|*]|_(?=\W|$))")
INHERITED = re.compile(r"set_\w+_request|get_metadata_routing|get_params|set_params|set_output")
"""Methods that scikit-learn gives to every estimator, and documents itself."""


INITIAL = re.compile(r"^(\s*)([A-Z])\. ")
"""Of an author, at the start of a line; not the number of an item in a list."""
BUILT_IN = {kind.__doc__.splitlines()[0] for kind in (bool, dict, float, int, list, str, tuple)}


def escaped(line):
    parts = LITERAL.split(line)
    return "".join(part if k % 2 else SPECIAL.sub(r"\\\1", part) for k, part in enumerate(parts))


def process(app, what, name, obj, options, lines):
    if lines and lines[0] in BUILT_IN:  # of the value of an attribute
        lines.clear()
    lines[:] = [INITIAL.sub(r"\1\2\\. ", escaped(line)).replace("tcp://", r"tcp\://") for line in lines]


def skip(app, what, name, obj, skipped, options):
    return True if INHERITED.fullmatch(name) else None


def setup(app):
    app.connect("autodoc-process-docstring", process, priority=400)  # before numpydoc makes its fields of them
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
