"""What a child of a fork finds."""

import contextlib
import importlib
import os
import signal
import sys
import threading
import time

import pytest

from bifactor import _compat

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]


@pytest.fixture
def lock(monkeypatch):
    """A lock that forks wait for."""
    monkeypatch.setattr(_compat, "_locks", list(_compat._locks))
    lock = threading.RLock()
    _compat.hold_at_fork(lock)
    return lock


def passes_in_child(law):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        with contextlib.suppress(BaseException):
            os._exit(0 if law() else 1)
        os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def held(lock, seconds):
    """A thread that holds the lock for so long."""
    inside = threading.Event()

    def hold():
        with lock:
            inside.set()
            time.sleep(seconds)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(60)
    return thread


def free(lock):
    return lock.acquire(timeout=5)


def test_a_lock_that_another_thread_held_is_free_in_the_child(lock):
    thread = held(lock, 0.2)
    assert passes_in_child(lambda: free(lock))
    assert free(lock)  # and here
    lock.release()
    thread.join()


def test_a_lock_that_is_registered_while_a_fork_waits_is_free_in_the_child(lock):
    late, inside = threading.RLock(), threading.Event()

    def register():
        with lock:
            inside.set()
            time.sleep(0.2)
            _compat.hold_at_fork(late)
            late.acquire()
        time.sleep(0.2)
        late.release()

    thread = threading.Thread(target=register)
    thread.start()
    inside.wait(60)
    assert passes_in_child(lambda: free(late))
    thread.join()


def test_the_forking_thread_keeps_its_own_lock(lock):
    with lock:
        assert passes_in_child(lambda: lock._is_owned() and lock.release() is None and not lock._is_owned())
        assert lock._is_owned()


@pytest.fixture
def often():
    """Threads take turns after every instruction, nearly."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-7)
    yield
    sys.setswitchinterval(before)


def test_several_threads_may_fork(lock, often):
    found = []

    def many():
        found.extend(passes_in_child(lambda: free(lock)) for _ in range(5))

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 20


def test_the_locks_of_the_package_are_held():
    from bifactor.kernels.threading import _LOCK

    assert _LOCK in _compat._locks
    numba = pytest.importorskip("numba.core.compiler_lock")
    importlib.import_module("bifactor.kernels.compile")
    assert numba.global_compiler_lock in _compat._locks


@pytest.fixture
def slow_module(tmp_path, monkeypatch):
    """A module of this package that takes a while to import."""
    (tmp_path / "bifactor_slow.py").write_text("import time\ntime.sleep(0.3)\nready = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "bifactor_slow"
    sys.modules.pop("bifactor_slow", None)


def test_a_fork_waits_for_an_import(slow_module):
    thread = threading.Thread(target=importlib.import_module, args=(slow_module,))
    thread.start()
    while slow_module not in sys.modules:
        time.sleep(0.001)
    assert passes_in_child(lambda: importlib.import_module(slow_module).ready)
    thread.join()


def test_a_module_may_fork_while_it_is_imported(tmp_path, monkeypatch):
    forks = "import os\nchild = os.fork()\nif child == 0: os._exit(0)\nstatus = os.waitpid(child, 0)[1]\n"
    (tmp_path / "bifactor_forks.py").write_text(forks)
    monkeypatch.syspath_prepend(tmp_path)
    assert importlib.import_module("bifactor_forks").status == 0
    del sys.modules["bifactor_forks"]


def test_an_import_that_fails_is_no_obstacle(tmp_path, monkeypatch):
    (tmp_path / "bifactor_broken.py").write_text("import time\ntime.sleep(0.2)\nraise ValueError\n")
    monkeypatch.syspath_prepend(tmp_path)
    failed = []

    def load():
        try:
            importlib.import_module("bifactor_broken")
        except ValueError:
            failed.append(True)

    thread = threading.Thread(target=load)
    thread.start()
    while "bifactor_broken" not in sys.modules:
        time.sleep(0.001)
    assert passes_in_child(lambda: True)
    thread.join()
    assert failed == [True]
