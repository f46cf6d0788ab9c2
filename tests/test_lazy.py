"""Rooms that are imported when they are first used."""

import subprocess
import sys

import pytest

import bifactor as bf

THREADS = """
import threading
import bifactor as bf

names = ["solve", "MatrixCompletion", "Problem", "losses", "data", "load", "StateTomography", "testing"]
begin, failed = threading.Barrier(len(names)), []

def use(name):
    begin.wait()
    try:
        getattr(bf, name)
    except BaseException as error:
        failed.append((name, error))

workers = [threading.Thread(target=use, args=(name,)) for name in names]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print(failed)
"""


def test_threads_may_begin_at_the_same_time():
    """Each imports packages from another end."""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, timeout=60)
        assert done.stdout.strip() == "[]", done.stdout + done.stderr


@pytest.mark.parametrize("package", [bf, bf.estimators])
def test_a_name_that_is_not_there_is_missed_like_any_other(package):
    with pytest.raises(AttributeError, match="has no attribute 'solv'"):
        _ = package.solv
    assert not hasattr(package, "solv")
    assert sorted(package.__all__) == dir(package)
