"""`bifactor tomography`, as a user meets it."""

import gzip
import json
import os
import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bifactor.cli.main import main
from bifactor.data import read_counts
from bifactor.estimators import StateTomography
from bifactor.models.tomography import fit as models
from bifactor.models.tomography.measurements import eigenvectors
from bifactor.running.result import Status

SETTINGS = ["".join(letters) for letters in product("XYZ", repeat=2)]
OUTCOMES = ["00", "01", "10", "11"]
SINGLET = np.array([0, 1, -1, 0]) / np.sqrt(2)


@pytest.fixture
def counts(tmp_path, monkeypatch):
    """What 1000 shots in each setting show of a singlet with a little white noise, in both layouts."""
    monkeypatch.chdir(tmp_path)
    p = 0.9 * np.abs(eigenvectors(SETTINGS).conj() @ SINGLET) ** 2 + 0.1 / 4
    rng = np.random.default_rng(0)
    y = np.stack([rng.multinomial(1000, row / row.sum()) for row in p.reshape(9, 4)])
    cells = [f"{s},{o},{k}" for s, row in zip(SETTINGS, y, strict=True) for o, k in zip(OUTCOMES, row, strict=True)]
    Path("long.csv").write_text("\n".join(["setting,outcome,count", *cells]) + "\n")
    rows = [";".join([s, *map(str, row)]) for s, row in zip(SETTINGS, y, strict=True)]
    Path("wide.csv").write_text("\n".join([";".join(["Setting", *OUTCOMES]), *rows]) + "\n")
    return y


def invoke(*arguments, code=0):
    done = CliRunner().invoke(main, ["tomography", *map(str, arguments)])
    assert done.exit_code == code, done.output
    assert code == 0 or "Traceback" not in done.output
    return done


def answer(*arguments):
    return json.loads(invoke(*arguments, "--json").stdout)


def test_both_layouts_find_the_state(counts):
    long, wide = (answer(name, "--qubits", 2, "--rank", 4, "--target", "singlet") for name in ("long.csv", "wide.csv"))
    assert long == wide
    assert long["shots"] == counts.sum()
    assert long["fidelity"] == pytest.approx(0.925, abs=0.02)
    assert sum(long["eigenvalues"]) == pytest.approx(1)
    assert long["purity"] == pytest.approx(np.sum(np.square(long["eigenvalues"])))
    said = invoke("long.csv", "--rank", 4, "--target", "ghz").stdout
    for word in ("rank", "purity", "eigenvalues", "log-likelihood", "fidelity", "9,000 shots in 9 settings", "χ² = "):
        assert word in said
    assert "note" not in said


def test_what_is_written_can_be_a_target(counts):
    invoke("long.csv", "--rank", 4, "-o", "state.npz")
    with np.load("state.npz") as state:
        np.testing.assert_allclose(state["rho"], state["factor"] @ state["factor"].conj().T)
        np.testing.assert_allclose(np.trace(state["rho"]), 1)
    assert answer("long.csv", "--rank", 4, "--target", "state.npz")["fidelity"] == pytest.approx(1)
    np.save("vector.npy", SINGLET)
    by_name, by_file = (answer("long.csv", "--rank", 2, "--target", it)["fidelity"] for it in ("singlet", "vector.npy"))
    assert by_name == by_file


@pytest.fixture
def three(tmp_path, monkeypatch):
    """Counts of a GHZ state of three qubits, pure and half white noise."""
    monkeypatch.chdir(tmp_path)
    rng, settings = np.random.default_rng(1), ["".join(letters) for letters in product("XYZ", repeat=3)]
    ghz = np.eye(8)[[0, 7]].sum(axis=0) / np.sqrt(2)
    for name, noise in (("pure", 0.0), ("mixed", 0.5)):
        p = (1 - noise) * np.abs(eigenvectors(settings).conj() @ ghz).reshape(27, 8) ** 2 + noise / 8
        lines = [
            f"{s}," + ",".join(map(str, rng.multinomial(300, q / q.sum()))) for s, q in zip(settings, p, strict=True)
        ]
        Path(f"{name}.csv").write_text("setting," + ",".join(f"{k:03b}" for k in range(8)) + "\n" + "\n".join(lines))


def test_rank_is_left_to_held_out_settings(three):
    pure, mixed = answer("pure.csv", "--target", "ghz"), answer("mixed.csv", "--target", "w")
    assert pure["rank"] == 1
    assert list(pure["held_out"]) == ["1", "2"]
    assert pure["fidelity"] > 0.98
    assert mixed["rank"] == 8
    assert mixed["fidelity"] < 0.3
    for found in (pure, mixed):
        assert found["goodness_of_fit"]["explained"]
        assert found["goodness_of_fit"]["p_value"] > 1e-3
        assert found["notes"] == []


@pytest.mark.parametrize("rank", ["auto", 2])
@pytest.mark.parametrize("bit_order", ["same", "reversed"])
def test_python_and_the_shell_say_the_same_to_the_last_bit(three, rank, bit_order):
    found = answer("mixed.csv", "--rank", rank, "--bit-order", bit_order, "--seed", 5, "--target", "ghz", "-o", "s.npz")
    settings, counts = read_counts("mixed.csv")
    model = StateTomography(rank=rank, bit_order=bit_order, random_state=5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit_counts(settings, counts)
    assert found["notes"] == [str(warning.message) for warning in caught]
    assert (found["notes"] == []) == (rank == "auto" and bit_order == "same")
    assert found["rank"] == model.rank_
    search = model.rank_search_
    scores = {} if search is None else dict(zip(map(str, search["rank"]), search.score, strict=True))
    assert found["held_out"] == scores
    assert found["purity"] == model.purity()
    assert found["eigenvalues"] == model.eigenvalues_.tolist()
    assert found["log_likelihood"] == model.log_likelihood(settings, counts)
    assert found["goodness_of_fit"] == vars(model.goodness_of_fit_)
    assert found["fidelity"] == model.fidelity("ghz")
    assert found["iterations"] == model.n_iter_
    assert found["bit_order"] == bit_order
    model.save("p.npz")
    assert Path("p.npz").read_bytes() == Path("s.npz").read_bytes()


def test_a_state_that_explains_nothing_is_noted(counts):
    found = answer("long.csv", "--rank", 1)
    assert not found["goodness_of_fit"]["explained"]
    assert found["goodness_of_fit"]["p_value"] < 1e-3
    assert "not explained by a state of rank 1" in found["notes"][0]
    said = " ".join(invoke("long.csv", "--rank", 1).stdout.replace("│", " ").split())
    assert "note The counts are not explained by a state of rank 1" in said


def test_reversed_bits_are_noted(counts):
    """Of the setting XZ, a state that is |+⟩ ⊗ |0⟩ shows 00; |+⟩ ⊗ |1⟩ shows 01, which reversed is 10."""
    rng, state = np.random.default_rng(0), np.kron([1, 1], [0.6, 0.8]) / np.sqrt(2)
    p = np.abs(eigenvectors(SETTINGS).conj() @ state).reshape(9, 4) ** 2
    rows = [dict(zip(OUTCOMES, rng.multinomial(500, q).tolist(), strict=True)) for q in p]
    y = dict(zip(SETTINGS, rows, strict=True))
    turned = {s: {outcome[::-1]: count for outcome, count in row.items()} for s, row in y.items()}
    Path("same.json").write_text(json.dumps(y))
    Path("turned.json").write_text(json.dumps(turned))
    good = answer("same.json", "--rank", 1)
    assert good["notes"] == []
    assert "pass bit_order='reversed' (--bit-order reversed)" in answer("turned.json", "--rank", 1)["notes"][0]
    other = answer("turned.json", "--rank", 1, "--bit-order", "reversed")
    assert other == {**good, "bit_order": "reversed"}


def test_ctrl_c_while_the_rank_is_chosen_is_said(three, monkeypatch):
    plain, calls = models.fit_state, []

    def fit_state(data, rank, how):
        state = plain(data, rank, how)
        calls.append(rank)
        broken = replace(state.result, status=Status.INTERRUPTED)
        return replace(state, result=broken) if len(calls) == 7 else state

    monkeypatch.setattr(models, "fit_state", fit_state)
    said = invoke("mixed.csv").stdout
    assert calls[:7] == [1, 1, 1, 1, 1, 2, 2]
    assert "when Ctrl-C ended its choice" in said


def test_few_settings_take_the_full_rank(counts):
    few = answer("long.csv")
    assert few["rank"] == 4
    assert few["held_out"] == {}


def test_lost_zeros_repeated_lines_and_gzip(counts):
    text = Path("long.csv").read_text()
    lost = text.replace(",00,", ",0,").replace(",01,", ",1,")
    Path("lost.csv").write_text(lost)
    Path("twice.csv").write_text(text + text.split("\n", 1)[1])
    with gzip.open("long.csv.gz", "wt") as file:
        file.write(text)
    first = answer("long.csv", "--rank", 4)
    assert answer("lost.csv", "--rank", 4) == first
    assert answer("long.csv.gz", "--rank", 4) == first
    twice = answer("twice.csv", "--rank", 4)
    assert twice["shots"] == 2 * first["shots"]
    assert twice["purity"] == pytest.approx(first["purity"], rel=1e-4)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("setting,outcome,count\n", "no lines below"),
        ("\n\n", "blank lines"),
        ("basis,outcome,count\nXX,00,1\n", "no column called setting"),
        ("setting,outcome\nXX,00\n", "no column called count"),
        ("setting,count\nXX,1\n", "no column called outcome"),
        ("setting,a,b\nXX,1,2\n", "neither columns"),
        ("setting,outcome,count\nXX,00\n", "Line 2 of bad.csv has 2 fields"),
        ("setting,outcome,count\nXX,00,many\n", "'many'"),
        ("setting,outcome,count\nXX,00,\n", "not a number"),
        ("setting,outcome,count\nXX,00,-1\n", "'-1'"),
        ("setting,outcome,count\nXX,00,inf\n", "'inf'"),
        ("setting,outcome,count\nXX,00,0\n", "no count above 0"),
        ("setting,outcome,count\nXX,02,1\n", "'02'"),
        ("setting,outcome,count\nXX,000,1\n", "'000'"),
        ("setting,outcome,count\nXQ,00,1\n", "'XQ'"),
        ("setting,outcome,count\nXX,00,1\nXXX,000,1\n", "'XXX'"),
        ("setting|outcome|count\nXX|00|1\n", "no column called setting"),
        ("setting,outcome,count\n\0", "is not text"),
    ],
)
def test_bad_files_get_one_sentence(content, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bad.csv").write_text(content)
    assert message in invoke("bad.csv", "-o", "state.npz", code=1).output
    assert os.listdir() == ["bad.csv"]


def test_mistakes_get_one_sentence_and_leave_nothing(counts):
    Path("cut.csv.gz").write_bytes(gzip.compress(Path("long.csv").read_bytes())[:60])
    Path("latin.csv").write_bytes("setting,outcome,count\nXX,00,1\n# é".encode("latin-1"))
    np.save("three.npy", np.ones(8) / np.sqrt(8))
    np.save("long.npy", np.ones(4))
    np.save("words.npy", np.array(["a", "b", "c", "d"]))
    Path("broken.npz").write_bytes(b"PK\3\4 and no more")
    np.savez("state.npz", rho=np.eye(4))
    before = sorted(os.listdir())
    for arguments, message in (
        (("absent.csv",), "There is no file"),
        (("cut.csv.gz",), "truncated"),
        (("latin.csv",), "UTF-8"),
        ((".",), "is a folder"),
        (("long.csv", "--qubits", 3), "3 letters"),
        (("long.csv", "--rank", 5), "--rank 5 is not possible for 2 qubits. Choose from 1 to 4, or auto."),
        (("state.npz",), "state.npz is not text. Pass counts as csv or json."),
        (("long.csv", "--target", "bell"), "is unknown. Pass ghz, w, singlet"),
        (("long.csv", "--target", "absent.npy"), "There is no file"),
        (("long.csv", "--target", "three.npy"), "shape (8,)"),
        (("long.csv", "--target", "long.npy"), "Normalise"),
        (("long.csv", "--target", "words.npy"), "shape (4,)"),
        (("long.csv", "--target", "broken.npz"), "damaged"),
        (("long.csv", "-o", "state.txt"), "does not end in .npz"),
        (("long.csv", "-o", "broken.npz"), "--force"),
        (("long.csv", "-o", "no/state.npz"), "does not exist"),
    ):
        assert message in invoke(*arguments, code=1).output
        assert sorted(os.listdir()) == before
    assert "nor auto" in invoke("long.csv", "--rank", "some", code=2).output
    assert "'--rank': 0 is neither an integer ≥ 1 nor auto." in invoke("long.csv", "--rank", 0, code=2).output


def test_a_full_disk_leaves_nothing(counts, monkeypatch):
    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    before = sorted(os.listdir())
    assert "No space left" in invoke("long.csv", "--rank", 4, "-o", "state.npz", code=1).output
    assert sorted(os.listdir()) == before


def test_there_is_no_singlet_of_three(counts):
    Path("three.csv").write_text("setting,outcome,count\nXXX,000,1\n")
    assert "not for 3" in invoke("three.csv", "--target", "singlet", code=1).output
