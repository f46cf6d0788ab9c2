"""Tables: all digits in files, few on the page, and columns that can be sorted."""

import csv
import io
import math
import random
import re
from fractions import Fraction

import numpy as np
import pytest

from bifactor_reproduce.harness.items import Table
from bifactor_reproduce.report.tables import as_csv, as_html, shown

DASH = "–"


def test_files_keep_every_digit():
    rng = random.Random(0)
    values = [rng.uniform(-1, 1) * 10.0 ** rng.randint(-300, 300) for _ in range(200)] + [5e-324, 0.1 + 0.2, -0.0]
    text = as_csv(["value", "text"], [[value, 'a "b", c\nd'] for value in values])
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[0] == ["value", "text"]
    assert [float(row[0]) for row in rows[1:]] == values
    assert {row[1] for row in rows[1:]} == {'a "b", c\nd'}


def test_numpy_numbers_are_numbers():
    row = [np.float64(1 / 3), np.int64(7), np.float32(0.5), None, math.nan, "text"]
    assert as_csv(list("abcdef"), [row]).splitlines()[1] == f"{1 / 3!r},7,0.5,,,text"


@pytest.mark.parametrize(
    ("value", "how", "text"),
    [
        (7.08312e-7, None, "7.083e-07"),
        (0.123456, None, "0.1235"),
        (12.3456, None, "12.35"),
        (12345.6, None, "12346"),
        (1.234e9, None, "1.234e+09"),
        (2.0, None, "2"),
        (0.0, None, "0"),
        (123456789, None, "123456789"),
        (np.int64(12), None, "12"),
        (3, ".1f", "3.0"),
        (0.722, ".1%", "72.2%"),
        (None, ".1f", DASH),
        (math.nan, None, DASH),
        (math.inf, ".1f", "∞"),
        (-math.inf, None, "−∞"),
        ("budget", ".1f", "budget"),
        (True, None, "True"),
        (Fraction(1, 4), None, "0.25"),
    ],
)
def test_what_is_shown(value, how, text):
    assert shown(value, how) == text


def test_cells_tell_the_script_what_they_are(parse):
    rows = [["SVP", 7.08312e-7, "a"], ["<b>", None, "x" * 40], ["PCG", math.inf, "c"]]
    html = as_html(Table("name", 'Ti"tle', "", ["method", "error <&", "stopped"], rows))
    assert re.findall(r'data-value="([^"]+)"', html) == ["7.08312e-07", "Infinity"]
    assert html.count('class="none"') == 1
    assert '<td class="long">' in html
    page = parse(html)
    assert page.tags["button"] == 3
    assert page.tags["tr"] == 4
    assert "error <&" in page.text
    assert "<b>" in page.text
    assert html.startswith('<div class="scroll" role="region" tabindex="0" aria-label="Ti&quot;tle">')


def test_rows_must_have_all_columns():
    with pytest.raises((ValueError, IndexError)):
        as_html(Table("name", "", "", ["a", "b"], [[1]]))


def test_an_empty_table(parse):
    assert parse(as_html(Table("name", "", "", ["a", "b"], []))).tags["tr"] == 1
    assert as_csv(["a", "b"], []) == "a,b\n"


def test_the_script_is_on_the_page(html):
    script = html.split("<script>")[1].split("</script>")[0]
    for needed in ("aria-sort", "ascending", "descending", "addEventListener", "dataset.value"):
        assert needed in script
