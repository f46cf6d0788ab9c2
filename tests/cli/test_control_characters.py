"""Names and titles come from files of others: no command passes control characters in them on to the terminal."""

import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from bifactor.cli.main import main
from bifactor.cli.output import escape_controls

EVIL = "\x1b[31m\x1b]2x\x07\x9b31m\x7f\b\u202e"
"""A colour, a title of the window, a colour once more, deletions, and the reversal of all that follows."""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    i, j = np.nonzero(rng.random((20, 12)) < 0.6)
    users, items = [f"u{k}{EVIL}" for k in i], [f"i{k}{EVIL}:heart:[b]" for k in j]
    user, item, value = (f"{name}{EVIL}" for name in ("user", "item", "value"))
    frame = pd.DataFrame({user: users, item: items, value: rng.standard_normal(i.size)})
    frame.to_csv("data.csv", index=False)
    for part, name in enumerate(("clicks.csv", "later.csv")):
        frame[[user, item]][part::2].to_csv(name, index=False)
    pairs = pd.DataFrame({user: [users[0], f"new{EVIL}"], item: [items[0], items[1]]})
    pairs.to_csv("pairs.csv", index=False)
    names = sorted(set(items))
    pd.DataFrame({"item": names, "title": [f"<b>T{k}{EVIL}" for k in range(len(names))]}).to_csv("t.csv", index=False)
    frame.to_csv(f"data{EVIL}.csv", index=False)
    table = rng.standard_normal((30, 3))
    table[rng.random((30, 3)) < 0.2] = np.nan
    pd.DataFrame(table, columns=[f"{k}{EVIL}" for k in "abc"]).to_csv("table.csv", index=False)
    Path("counts.csv").write_text(f"setting,outcome,count\nXX{EVIL},00,5\n", encoding="utf-8")
    return tmp_path


def controls(text):
    return {letter for letter in text if unicodedata.category(letter) in ("Cc", "Cf") and letter != "\n"}


def run(*arguments, code=0):
    done = CliRunner().invoke(main, list(arguments))
    assert done.exit_code == code, done.output
    return done


FITS = (
    ("complete", "data.csv", "--rank", "1", "-o", "fit"),
    ("complete", f"data{EVIL}.csv", "--rank", "1", "--ridge", "1", "-o", f"fit{EVIL}"),
    ("complete", "clicks.csv", "--implicit", "--rank", "2", "--ridge", "0.1", "--unobserved", "0.3", "-o", "clicks"),
    ("partition", "data.csv", "-o", "blocks"),
    ("impute", "table.csv", "-o", "full.csv"),
)
USES = (
    ("recommend", "fit", "--user", f"u1{EVIL}", "--names", "t.csv"),
    ("recommend", "clicks", "--user", f"u1{EVIL}", "--names", "t.csv"),
    ("recommend", "clicks", "--user", f"u1{EVIL}"),
    ("recommend", "clicks", "--user", f"nobody{EVIL}", "--unknown", "popular"),
    ("evaluate", "fit", f"data{EVIL}.csv"),
    ("evaluate", "clicks", "later.csv"),
)
MISTAKES = (
    ("recommend", "fit", "--user", f"nobody{EVIL}"),
    ("predict", "fit", "pairs.csv", "--unknown", "raise"),
    ("complete", "data.csv", "--value", f"x{EVIL}", "-o", "other"),
    ("complete", f"no{EVIL}.csv", "-o", "other"),
    ("tomography", "counts.csv", "--qubits", "2"),
    ("impute", f"no{EVIL}.csv", "-o", "other.csv"),
    ("inpaint", f"no{EVIL}.png", "--transparent", "-o", "other.png"),
    ("partition", f"no{EVIL}.csv", "-o", "other"),
    ("evaluate", "fit", f"no{EVIL}.csv"),
)


def test_no_command_shows_them(folder):
    for command in (*FITS, *USES):
        done = run(*command)
        assert controls(done.stdout + done.stderr) == set(), command
    assert r"\x1b[31m" in run(*USES[0]).stdout.replace("\n", "")
    assert ":heart:[b]" in run("recommend", "fit", "--user", f"u1{EVIL}", "--json").stdout
    for command in MISTAKES:
        done = run(*command, code=1)
        assert controls(done.stdout + done.stderr) == set(), command
        assert r"\x1b[31" in done.stderr, command
    for report in folder.glob("*/report.html"):
        assert "<b>T" not in report.read_text(encoding="utf-8")
    for command in (*USES, ("predict", "fit", "pairs.csv")):
        done = run(*command, "--json")
        assert controls(done.stdout) == set(), command
        assert json.loads(done.stdout)
    first = json.loads(run("predict", "fit", "pairs.csv", "--json").stdout)["predictions"][0]
    assert first["row"].endswith(EVIL)  # JSON escapes them, so that they are the same for a program
    lines = run("predict", "fit", "pairs.csv").stdout
    assert EVIL in lines  # which no terminal reads here


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_lines_of_csv_on_a_terminal(folder):
    import pty

    run(*FITS[1][:1], "data.csv", *FITS[1][2:-1], "fit")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "bifactor", "predict", "fit", "pairs.csv"]
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(theirs)
    assert done.returncode == 0, done.stderr
    told = os.read(ours, 1 << 16).decode().replace("\r\n", "\n")
    os.close(ours)
    assert controls(told) == set()
    assert told.count("\n") == 3
    assert r"\x1b[31m" in told


def test_every_control_character_is_shown():
    every = "".join(map(chr, range(0x300))) + "\u2028\u2029\u202a\u202e\u2066\u2069"
    assert {letter for letter in controls(escape_controls(every)) if letter != "\xad"} == set()
    assert "\n" not in escape_controls(every)
    assert "\\x1b" in escape_controls(every)
    assert re.sub(r"\\(x..|u....|[tnr])", "", escape_controls(every)) == "".join(
        letter for letter in every if letter.isprintable() or letter in "\xa0\xad"
    )
    assert escape_controls("Amélie – ночь 夜 ‏עברית") == "Amélie – ночь 夜 ‏עברית"
