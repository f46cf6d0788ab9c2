"""Files of counts. What is wrong with files is tested through the command, in tests/cli/test_tomography.py."""

import gzip
import json

import numpy as np
import pytest

from bifactor.data import read_counts
from bifactor.errors import FileError

TABLE = [[512, 9, 11, 492], [248, 260, 0, 265]]
FILES = {
    "long.csv": "setting,outcome,count\nXX,00,512\nXX,01,9\nXX,10,11\nXX,11,492\nxy,00,248\nxy,01,260\nxy,11,265\n",
    "hexadecimal.csv": "Setting,Count,Outcome\nXX,512,0x0\nXX,9,0x1\nXX,11,0x2\nXX,492,0x3\nXY,248,0x0\nXY,260,1\n"
    "XY,265,1 1\n",
    "wide.csv": "setting;00;01;10;11\nXX;512;9;11;492\nXY;248;260;0;265\n",
    "tabs.tsv": "setting\t0\t1\t10\t11\nXX\t512\t9\t11\t492\n\nXY\t248\t260\t0\t265\n",
    "headed.csv": "setting,0x0,0x1,0x2,0x3,note\nXX,512,9,11,492,good\nXY,248,260,0,265,\n",
    "twice.csv": "setting,outcome,count\nXX,00,500\nXX,11,492\nXX,01,9\nXX,10,11\nXX,00,12\nXY,00,248\nXY,01,260\n"
    "XY,11,265\n",
    "counts.json": json.dumps(
        {"XX": {"00": 512, "01": 9, "0x2": 11, "1 1": 492}, "XY": {"00": 248, "01": 260, "11": 265}}
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_all_layouts_say_the_same(name, tmp_path):
    (tmp_path / name).write_text(FILES[name])
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(FILES[name].encode()))
    for path in (tmp_path / name, str(tmp_path / f"{name}.gz")):
        settings, table = read_counts(path)
        assert settings == ["XX", "XY"]
        np.testing.assert_array_equal(table, TABLE)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not valid json"),
        ("[1, 2]", "does not hold an object"),
        ("{}", "settings is empty"),
        ('{"XX": {"2": 1}}', "bad.json: counts holds the outcome '2'"),
        ('{"XX": {"00": true}}', "True for the outcome"),
        ('{"XX": {"00": NaN}}', "NaN"),
        ('{"XX": 3}', "shape"),
    ],
)
def test_bad_json_gets_one_sentence(content, message, tmp_path):
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(FileError, match=message):
        read_counts(tmp_path / "bad.json")
