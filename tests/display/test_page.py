"""Documents that load nothing, whatever their texts are."""

import base64
import hashlib
import re
from pathlib import Path

import bifactor as bf
from bifactor.display.html import document, facts, numbers, table

HOSTILE = '<script>alert("1")</script>&'


def test_texts_are_escaped():
    page = document(HOSTILE, numbers([(HOSTILE, HOSTILE)]) + facts([(HOSTILE, HOSTILE)]))
    assert page.count("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;") == 5
    assert "<script" not in page


def test_only_the_given_script_may_run():
    script = "let a = 1 < 2;"
    page = document("title", "<p>text</p>", "p{margin:0}", script)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none';style-src 'unsafe-inline';img-src data:;script-src 'sha256-{digest}'" in page
    assert page.count(f"<script>{script}</script>") == page.count("<script") == 1
    assert "script-src" not in document("title", "<p>text</p>")


def test_day_and_night():
    page = document("title", "")
    assert "prefers-color-scheme:dark" in page
    assert '<meta name="color-scheme" content="light dark">' in page


def test_each_table_scrolls_in_a_box_of_its_own():
    """Else a page is wider than a phone, which has 390 pixels."""
    whole = table(["a"] * 20, [["word" * 4] * 20]) + facts([("a", "b" * 400)])
    boxed = re.findall(r'<div class="scroll" style="overflow-x:auto"><table', whole)
    assert len(boxed) == whole.count("<table") == 2
    source = "".join(path.read_text() for path in Path(bf.__file__).parent.rglob("*.py"))
    assert len(re.findall(r"scrolling\(\s*f'<table", source)) == source.count("<table") > 0
