"""The build fails where a page would load a script, a style, a font or a picture from another host."""

import re
from pathlib import Path

from sphinx.errors import ExtensionError

LOADED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=\"((?:https?:)?//[^\"]+)\"")
IN_STYLE = re.compile(r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^\"')]+)")


def check(app, exception):
    if exception is None and app.builder.format == "html":
        pages = [(page, LOADED) for page in Path(app.outdir).rglob("*.html")]
        pages += [(page, IN_STYLE) for page in Path(app.outdir).rglob("*.css")]
        for page, pattern in pages:
            if found := pattern.search(page.read_text(encoding="utf-8")):
                raise ExtensionError(f"{page.name} loads {found[1]}. Put a copy into the site.")


def setup(app):
    app.connect("build-finished", check, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
