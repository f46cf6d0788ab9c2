"""The command itself: help without imports, and commands of other packages."""

import json
import subprocess
import sys

from click.testing import CliRunner

from bifactor.cli import main as module
from bifactor.cli.main import COMMANDS, main


def test_every_command_is_described_and_can_be_loaded():
    for name in COMMANDS:
        answer = CliRunner().invoke(main, [name, "--help"])
        assert answer.exit_code == 0, answer.output


def test_the_package_is_the_command():
    called = [sys.executable, "-m", "bifactor", "--help"]
    told = subprocess.run(called, capture_output=True, text=True, check=True).stdout
    assert told.startswith("Usage: bifactor ")
    assert all(name in told for name in COMMANDS)


def test_help_lists_all_commands():
    text = CliRunner().invoke(main, ["--help"]).output
    assert all(name in text for name in COMMANDS)


def test_a_command_that_is_not_installed_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(module, "entry_points", lambda **_: ())
    answer = CliRunner().invoke(main, ["reproduce", "all"])
    assert answer.exit_code == 1
    assert "pip install ./reproduce" in answer.output


def test_an_unknown_command_is_refused():
    answer = CliRunner().invoke(main, ["compleet"])
    assert answer.exit_code == 2
    assert "compleet" in answer.output


def test_errors_are_told_to_machines_too(tmp_path):
    answer = CliRunner().invoke(main, ["predict", str(tmp_path / "none"), "pairs.csv", "--json"])
    assert answer.exit_code == 1
    assert "error" in json.loads(answer.stdout)
