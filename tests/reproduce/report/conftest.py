"""A small report with something of everything, and a parser that is strict with it."""

from collections import Counter
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from bifactor_reproduce.harness.items import Figure, Findings, Table, Verdict
from bifactor_reproduce.report import Section, write_report

HOSTILE = "<script>alert('1')</script> & \"quoted\" --> ]]>"
VOID = {"meta", "br", "hr", "img", "input", "link"}
ABOUT = {"scale": "quick", "packages": {"numpy": "2.1", HOSTILE: "1"}, "cores": 2, "jobs": None, "seeds": [1, 2]}


@dataclass(frozen=True)
class Configuration:
    shapes: tuple = ((8, 9), (10, 11))
    tolerance: float = 5e-8
    seed_of_start: int = 77
    name: str = HOSTILE


class Page(HTMLParser):
    """What is in a page; that tags do not match is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.texts = [], Counter(), [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] += 1
        told = dict(attrs)
        assert len(told) == len(attrs), attrs
        if "id" in told:
            self.ids.append(told["id"])
        self.links += [told[name] for name in ("href", "src", "xlink:href") if name in told]
        assert not any(name.startswith("on") for name in told), attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)


def curves(figure):
    axes = figure.subplots(1, 2)
    for ax in axes:
        ax.semilogy([1, 2, 3], [1e-1, 1e-3, 1e-2], "o-", label="BFGD")
        ax.plot([1, 2, 3], [1e-2, 1e-2, 1e-4], label="<b>")
        ax.set_title("<title> & more")
        ax.set_xlabel("iteration")
    axes[1].legend()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)


def pictures(figure):
    for ax in figure.subplots(2, 2).flat:
        ax.imshow(np.arange(30.0).reshape(5, 6), cmap="gray")
        ax.axis("off")


TABLE = Table(
    "errors",
    f"Errors {HOSTILE}",
    f"What was reached. {HOSTILE}",
    ["method", HOSTILE, "iterations", "seconds"],
    [["BFGD", 7.08312345678e-7, 4000, 12.34567], [HOSTILE, None, np.int64(3), np.float64(1 / 3)]],
    {"seconds": ".1f"},
)

VERDICTS = [
    Verdict("BFGD is faster than SVP.", True, "1 s against 2 s", "The paper has 3 s."),
    Verdict(f"Nobody else converges {HOSTILE}", False, HOSTILE, HOSTILE),
    Verdict("GuaranteedMC fails.", None, "A cell is missing."),
    Verdict("PCG is faster still.", True, "0.1 s against 1 s", ours=True),
]


def sections():
    findings = Findings(
        [
            TABLE,
            Figure("curves", f"Curves {HOSTILE}", HOSTILE, curves),
            Figure("photos", "Photos", "", pictures, (8, 5)),
        ],
        VERDICTS,
        ["The start is random.", HOSTILE],
    )
    failed = [(f"SVP {HOSTILE}", HOSTILE)]
    return [
        Section("sensing", f"Sensing {HOSTILE}", "Section 6.3", Configuration(), findings, "", failed, 4000.0),
        Section("empty", "Nothing", "Section 6.4", Configuration(), Findings([], [])),
        Section("ratings", "Ratings", "Section 6.5", Configuration(), reason="There are no ratings."),
        Section("broken", "Broken", "", Configuration(), failed=[("a cell", "no memory")]),
    ]


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "new" / "folder"
    assert write_report(folder, sections(), ABOUT) == folder / "index.html"
    return folder


@pytest.fixture(scope="session")
def html(folder) -> str:
    return (folder / "index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def page(html) -> Page:
    return Page(html)


@pytest.fixture(scope="session")
def report_parts():
    return sections(), ABOUT


@pytest.fixture(scope="session")
def parse():
    return Page
