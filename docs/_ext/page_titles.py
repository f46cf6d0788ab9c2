"""A link whose text is the name of a file, as in `[cli.md](cli.md#predict)`, shows the title of its page or section."""

import posixpath
import re

from docutils import nodes

FILE = re.compile(r"[\w/.-]+\.md")


def titled(app, doctree, docname):
    for link in doctree.findall(nodes.reference):
        if link.get("internal") and FILE.fullmatch(link.astext()):
            page, _, place = link["refuri"].partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(docname), page.removesuffix(".html")))
            if title := section(app.env, target, place):
                link.children = [nodes.inline("", title)]


def section(env, docname, place):
    if not place:
        return env.titles[docname].astext() if docname in env.titles else None
    contents = env.tocs[docname].findall(nodes.reference)
    return next((entry.astext() for entry in contents if entry.get("anchorname") == f"#{place}"), None)


def setup(app):
    app.connect("doctree-resolved", titled)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
