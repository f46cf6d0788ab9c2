"""Where data are looked for."""

import pytest

from bifactor.errors import InputError
from bifactor_reproduce.harness.sources import VARIABLE, Sources


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def stock(data):
    (data / "photos-large").mkdir(parents=True)
    (data / "ml-100k").mkdir()
    (data / "ml-100k" / "u.data.gz").write_bytes(b"")


def test_without_data_there_is_none(folder):
    assert Sources.found() == Sources(None, None)


def test_the_variable_names_the_folder(folder, monkeypatch):
    stock(folder / "elsewhere")
    monkeypatch.setenv(VARIABLE, str(folder / "elsewhere"))
    found = Sources.found()
    assert found.photos == folder / "elsewhere" / "photos-large"
    assert found.ratings == folder / "elsewhere" / "ml-100k" / "u.data.gz"


def test_a_folder_beside_is_found(folder):
    stock(folder / "shared" / "data")
    found = Sources.found()
    assert found.photos is not None
    assert found.photos.is_dir()
    assert found.ratings is not None


def test_what_is_given_comes_first(folder, monkeypatch):
    stock(folder / "elsewhere")
    monkeypatch.setenv(VARIABLE, str(folder / "elsewhere"))
    (folder / "mine").mkdir()
    (folder / "mine.csv").write_text("1,2,3\n")
    found = Sources.found(folder / "mine", folder / "mine.csv")
    assert found == Sources(folder / "mine", folder / "mine.csv")


def test_wrong_paths_are_refused(folder, monkeypatch):
    with pytest.raises(InputError, match="not a folder"):
        Sources.found(photos=folder / "nowhere")
    with pytest.raises(InputError, match="not a file"):
        Sources.found(ratings=folder)
    monkeypatch.setenv(VARIABLE, str(folder / "nowhere"))
    with pytest.raises(InputError, match=VARIABLE):
        Sources.found()
