"""The report as a whole: every item is there, hostile texts do no harm, and nothing is asked of the network."""

import csv
import re
from dataclasses import replace

import pytest

from bifactor.errors import FileError, InputError
from bifactor_reproduce.harness.items import Figure, Findings, Table, Verdict
from bifactor_reproduce.report import Section, write_report
from bifactor_reproduce.report.page import duration, told


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_item_is_there(folder, page):
    assert set(files(folder)) == {
        "index.html",
        "verdicts.csv",
        "tables/errors.csv",
        *(f"figures/{name}.{kind}" for name in ("curves", "photos") for kind in ("png", "svg")),
    }
    assert {"section-sensing", "section-empty", "section-ratings", "environment", "summary"} < set(page.ids)
    assert {"table-errors", "figure-curves", "figure-photos", "verdict-sensing-0"} < set(page.ids)
    for told_somewhere in (
        "What was reached.",
        "The start is random.",
        "No findings. There are no ratings.",
        "1 h 6 min",
    ):
        assert told_somewhere in page.text
    assert page.text.count("No findings. No cell gave an outcome.") == 2  # in the contents as well
    assert "seed of start" in page.text
    assert "8, 9; 10, 11" in page.text
    assert "There is nothing to show." in page.text


def test_hostile_texts_are_only_texts(html, page):
    assert page.tags["script"] == 1
    assert "<script>alert" not in html
    assert page.text.count("<script>alert('1')</script>") >= 15


def test_links_stay_inside(folder, html, page):
    for link in page.links:
        if link.startswith("#"):
            assert link[1:] in page.ids
        elif not link.startswith("data:image/png;base64,"):
            assert (folder / link).is_file()
    assert not re.search(r"https?://|url\((?!#)|@import|//cdn", html)
    assert "default-src 'none'" in html
    drawings = [path.read_text() for path in folder.rglob("*.svg")]
    assert not any(re.search(r'(?<!xmlns=")(?<!xmlns:xlink=")https?://', text) for text in drawings)


def test_ids_are_unique(page):
    assert len(page.ids) == len(set(page.ids)) > 10


def test_the_summary_counts_both_kinds_of_claims(html, page):
    boxes = re.findall(r"<div><b>(\d+)</b><span>([^<]+)</span></div>", html)
    assert boxes == [
        ("1", "holds"),
        ("1", "does not hold"),
        ("1", "cannot tell"),
        ("1", "holds"),
        ("0", "do not hold"),
        ("0", "cannot tell"),
    ]
    assert "the paper's claims: 1 holds, 1 does not hold, 1 cannot tell; bifactor's own: 1 holds" in page.text
    summary = html[html.index('id="summary"') : html.index("<nav")]
    assert re.findall(r'href="#(verdict-[^"]+)"', summary) == ["verdict-sensing-1", "verdict-sensing-2"]


def test_verdicts_as_a_table(folder):
    with (folder / "verdicts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict"] for row in rows] == ["holds", "does not hold", "cannot tell", "holds"]
    assert [row["claim of"] for row in rows] == ["paper", "paper", "paper", "bifactor"]
    assert rows[0]["numbers"] == "1 s against 2 s"
    assert rows[0]["note"] == "The paper has 3 s."
    assert {row["experiment"] for row in rows} == {"sensing"}


def test_no_number_is_missing_silently(page):
    assert not re.search(r"\b(nan|inf|none)\b", page.text, re.IGNORECASE)


def test_the_same_bytes_each_time(folder, tmp_path, report_parts):
    sections, about = report_parts
    write_report(tmp_path, sections, about)
    assert files(tmp_path) == files(folder)


def test_no_sections_at_all(tmp_path, parse):
    page = parse(write_report(tmp_path, [], {}).read_text())
    assert {"summary", "environment"} <= set(page.ids)


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        (["a", "a"], "name of its own"),
        (["a", "A"], "name of its own"),
        (["../a"], "letters, digits"),
        (["a b"], "letters, digits"),
        ([""], "letters, digits"),
    ],
)
def test_names_that_cannot_be_files(tmp_path, names, advice):
    tables = [Table(name, "", "", ["a"], []) for name in names]
    with pytest.raises(InputError, match=advice):
        write_report(tmp_path, [Section("one", "", "", None, Findings(tables, []))], {})
    assert files(tmp_path) == {}


def test_a_table_and_a_figure_may_share_a_name(tmp_path, parse):
    items = [Table("a", "", "", ["b"], [[1]]), Figure("a", "", "", lambda figure: figure.subplots(), (2, 2))]
    page = parse(write_report(tmp_path, [Section("a", "", "", None, Findings(items, []))], {}).read_text())
    assert {"section-a", "table-a", "figure-a"} <= set(page.ids)


def test_a_figure_that_fails_leaves_the_old_page(tmp_path):
    def broken(figure):
        raise RuntimeError("no")

    old = write_report(tmp_path, [], {"a": 1}).read_bytes()
    section = Section("one", "", "", None, Findings([Figure("a", "", "", broken)], [Verdict("b", True, "")]))
    with pytest.raises(RuntimeError):
        write_report(tmp_path, [section], {})
    assert files(tmp_path)["index.html"] == old
    kept = replace(section, findings=None, reason="it failed.")
    assert b"it failed." in write_report(tmp_path, [kept], {}).read_bytes()


def test_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="Cannot write"):
        write_report(tmp_path / "file", [], {})
    (tmp_path / "index.html").mkdir()
    with pytest.raises(FileError, match="Cannot write"):
        write_report(tmp_path, [], {})
    assert {path.name for path in tmp_path.iterdir()} == {"file", "index.html", "verdicts.csv"}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (5e-8, "5e-08"),
        (0.35, "0.35"),
        (100000, "100000"),
        ((1, 2), "1, 2"),
        (((1, 2), (3, 4)), "1, 2; 3, 4"),
        ((), "–"),
        (None, "–"),
        (True, "yes"),
        ({"numpy": "2.1", "scipy": None}, "numpy 2.1, scipy –"),
        ("text", "text"),
    ],
)
def test_settings_in_words(value, words):
    assert told(value) == words


def test_durations():
    told = [duration(seconds) for seconds in (0, 9.94, 59.99, 60, 3599.9, 7321)]
    assert told == ["0.0 s", "9.9 s", "60.0 s", "1 min 0 s", "1 h 0 min", "2 h 2 min"]
