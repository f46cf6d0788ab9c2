"""What may be replaced, and what is left behind: links, pipes, folders of others, long names, full disks."""

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import bifactor as bf
from bifactor.errors import FileError, InputError
from bifactor.running import files
from bifactor.running.files import sweep, temporary_for

LONG = "ü" * 127


@pytest.fixture(scope="module")
def result():
    problem = bf.Problem("squared", bf.operators.Full((4, 3)), np.ones((4, 3)))
    return bf.solve(problem, 1, bf.solvers.BFGD(), rng=0, max_iter=2)


@pytest.fixture(scope="module")
def fit():
    return bf.MatrixCompletion(n_components=1, ridge=1.0, random_state=0).fit(np.arange(12.0).reshape(4, 3)).fit_


def written(target):
    with files.new_file(target, force=True) as temporary:
        temporary.write_text("new")


WRITERS = {
    "Result.save": lambda target, result: result.save(target),
    "new_file": lambda target, result: written(target),
}


@pytest.fixture(params=WRITERS)
def write(request, result):
    return lambda target: WRITERS[request.param](target, result)


# Links


def test_a_link_is_followed(tmp_path, write):
    (tmp_path / "there").mkdir()
    real, link = tmp_path / "there" / "file", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    write(link)
    assert link.is_symlink()
    assert not real.is_symlink()
    assert real.read_bytes() not in (b"", b"old")
    assert os.listdir(tmp_path / "there") == ["file"]
    assert sorted(os.listdir(tmp_path)) == ["link", "there"]


def test_a_link_to_nothing_is_followed(tmp_path, write):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/file")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "file").is_file()


@pytest.mark.parametrize("target", ["nowhere/file", "link"])
def test_a_link_that_leads_nowhere(tmp_path, result, target):
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(FileError, match="link"):
        result.save(tmp_path / "link")
    with pytest.raises(InputError, match="link"):
        files.require_free(tmp_path / "link", True)
    with pytest.raises(FileError, match="link"):
        written(tmp_path / "link")
    assert os.listdir(tmp_path) == ["link"]


def test_a_link_to_a_fit_is_followed(tmp_path, fit):
    fit.save(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(InputError, match="already exists"):
        fit.save(tmp_path / "link")
    fit.save(tmp_path / "link", force=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").is_dir()
    assert bf.load(tmp_path / "link")
    assert sorted(os.listdir(tmp_path)) == ["link", "real"]


# What is no file


def special(path, kind):
    """A pipe, a socket or, for root, a device, in a folder of the test."""
    if os.name != "posix":
        pytest.skip("needs POSIX")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        import socket

        place = os.open(path.parent, os.O_RDONLY)  # names of sockets must be short
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{place}/{path.name}")
        os.close(place)
    else:
        import stat

        try:
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root makes devices")


@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
@pytest.mark.parametrize("linked", [False, True])
def test_what_is_no_file_is_never_replaced(tmp_path, result, fit, make_problem, kind, linked):
    target = real = tmp_path / "x"
    special(real, kind)
    if linked:
        target = tmp_path / "link"
        target.symlink_to(real)
    before = os.stat(real)
    for call in (
        lambda: files.require_free(target, True),
        lambda: files.require_writable(target),
        lambda: bf.solve(make_problem(), 2, rng=0, checkpoint=target),
    ):
        with pytest.raises(InputError, match=rf"is a {kind}, and only files are replaced"):
            call()
    with pytest.raises(FileError, match=rf"it is a {kind}, and only files are replaced"):
        result.save(target)
    with pytest.raises(InputError, match="is a file, but the output is a folder"):
        fit.save(target, force=True)
    with pytest.raises(FileError, match="was not written"):
        written(target)
    after = os.stat(real)
    assert (before.st_mode, before.st_rdev, before.st_ino) == (after.st_mode, after.st_rdev, after.st_ino)


def test_a_folder_is_no_file(tmp_path, result):
    (tmp_path / "x").mkdir()
    for call in (lambda: files.require_free(tmp_path / "x", True), lambda: files.require_writable(tmp_path / "x")):
        with pytest.raises(InputError, match="is a folder"):
            call()
    for call in (lambda: result.save(tmp_path / "x"), lambda: written(tmp_path / "x")):
        with pytest.raises(FileError, match=r"x|folder"):
            call()
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize(
    "content", [{"card.json": "mine"}, {"card.json": "[]"}, {"report.html": "mine"}, {"a": "mine"}]
)
def test_folders_of_others_are_never_replaced(tmp_path, fit, content):
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, text in content.items():
        (folder / name).write_text(text)
    with pytest.raises(InputError, match=r"folder contains .*\. Choose another name"):
        fit.save(folder, force=True)
    assert {path.name: path.read_text() for path in folder.iterdir()} == content


def test_a_fit_with_a_folder_or_link_in_it_is_never_replaced(tmp_path, fit):
    fit.save(tmp_path / "fit")
    (tmp_path / "fit" / "report.html").mkdir()
    with pytest.raises(InputError, match=r"contains report\.html, which is not part of a fit"):
        fit.save(tmp_path / "fit", force=True)
    (tmp_path / "fit" / "report.html").rmdir()
    (tmp_path / "thesis").write_text("years of work")
    (tmp_path / "fit" / "report.html").symlink_to(tmp_path / "thesis")
    with pytest.raises(InputError, match=r"contains report\.html, which is not part of a fit"):
        fit.save(tmp_path / "fit", force=True)
    assert (tmp_path / "thesis").read_text() == "years of work"


# Names


def test_long_names(tmp_path, write, fit):
    assert len(LONG.encode()) == 254
    write(tmp_path / LONG)
    fit.save(tmp_path / LONG[:-1])
    fit.save(tmp_path / LONG[:-1], force=True)
    assert sorted(os.listdir(tmp_path)) == sorted([LONG, LONG[:-1]])
    files.require_writable(tmp_path / LONG)


def test_names_that_are_too_long(tmp_path, result, fit):
    for name in ("x" * 256, LONG + "ü"):
        with pytest.raises(InputError, match="has more than 255 bytes"):
            files.require_free(tmp_path / name, False)
        with pytest.raises(InputError, match="has more than 255 bytes"):
            fit.save(tmp_path / name)
        with pytest.raises(FileError, match="Cannot write"):
            result.save(tmp_path / name)
        with pytest.raises(InputError, match="does not exist"):
            files.require_writable(tmp_path / name / "x")
    assert os.listdir(tmp_path) == []


# What is left behind


def dead():
    """The number of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def left_behind(target, process):
    return target.with_name(temporary_for(target).name.replace(f"{os.getpid():010d}", f"{process:010d}"))


@pytest.mark.parametrize("name", ["fit", LONG, ".hidden", "a.b[c]*"])
def test_what_the_dead_have_left_is_swept(tmp_path, name, result):
    target = tmp_path / name
    stale = left_behind(target, dead())
    folder = left_behind(target, dead())
    folder.mkdir()
    (folder / "card.json").write_text("half")
    living = left_behind(target, os.getppid())
    mine = temporary_for(target)
    others = [tmp_path / ".other.tmp", left_behind(tmp_path / "other", dead()), tmp_path / f"{stale.name[:-1]}q"]
    for path in (stale, living, mine, *others):
        path.write_text("half")
    result.save(target)
    left = {target, living, mine, *others}
    assert set(tmp_path.iterdir()) == left
    stale.write_text("half")
    files.require_writable(target)
    assert set(tmp_path.iterdir()) == left


def test_what_other_machines_write_is_left_alone(tmp_path, monkeypatch):
    theirs = left_behind(tmp_path / "fit", dead())
    theirs.write_text("half")
    monkeypatch.setattr(files.platform, "node", lambda: "elsewhere")
    sweep(tmp_path / "fit")
    assert theirs.exists()


def test_what_was_put_aside_is_put_back(tmp_path, fit, result):
    fit.save(tmp_path / "fit")
    aside = tmp_path / files.aside_of(tmp_path / "fit").name.replace(f"{os.getpid():010d}", f"{dead():010d}")
    (tmp_path / "fit").rename(aside)
    with pytest.raises(InputError, match="already exists"):
        fit.save(tmp_path / "fit")
    assert bf.load(tmp_path / "fit")
    assert os.listdir(tmp_path) == ["fit"]
    (tmp_path / "fit").rename(aside)
    fit.save(tmp_path / "fit", force=True)
    assert os.listdir(tmp_path) == ["fit"]


# What appears in the meantime


def write_late(new, target, force, *theirs):
    """Make something appear at `target` while something else is written for it."""
    with new(target, force) as temporary:
        (temporary / "mine" if new is files.new_folder else temporary).write_text("mine")
        for path in theirs:
            path.parent.mkdir(exist_ok=True)
            path.write_text("theirs")


def test_what_appears_in_the_meantime_is_not_replaced_unasked(tmp_path):
    target = tmp_path / "x"
    with pytest.raises(FileError, match=r"x was not written: File exists\. .*; choose another name\."):
        write_late(files.new_file, target, False, target)
    assert target.read_text() == "theirs"
    write_late(files.new_file, target, True, target)
    assert target.read_text() == "mine"
    with pytest.raises(FileError, match=r"y was not written: Directory not empty\. .*; choose another name\."):
        write_late(files.new_folder, tmp_path / "y", False, tmp_path / "y" / "a")
    assert os.listdir(tmp_path / "y") == ["a"]
    write_late(files.new_folder, tmp_path / "y", True, tmp_path / "y" / "a")
    assert os.listdir(tmp_path / "y") == ["mine"]
    assert sorted(os.listdir(tmp_path)) == ["x", "y"]


# Disks that are full


@pytest.mark.parametrize("what", ["fsync", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
def test_what_the_disk_refuses_is_told_in_a_sentence(tmp_path, write, monkeypatch, what, number):
    (tmp_path / "x").write_text("old")

    def refuse(*arguments, **options):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, what, refuse)
        with pytest.raises(FileError, match=os.strerror(number)):
            write(tmp_path / "x")
    assert os.listdir(tmp_path) == ["x"]
    assert (tmp_path / "x").read_text() == "old"


# Folders that change places


@pytest.mark.parametrize("atomic", [True, False])
def test_folders_change_places(tmp_path, monkeypatch, atomic):
    if not atomic:
        monkeypatch.setattr(files, "_exchanged", lambda new, old: False)
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    files.exchange(tmp_path / "a", tmp_path / "b")
    assert (os.listdir(tmp_path / "a"), os.listdir(tmp_path / "b")) == (["b"], ["a"])
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere it takes three steps")
def test_linux_does_it_in_one_step(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
    assert files._exchanged(tmp_path / "a", tmp_path / "b")
    assert not files._exchanged(tmp_path / "a", tmp_path / "none")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere it takes three steps")
def test_a_fit_is_there_at_every_moment_of_a_replacement(tmp_path, fit):
    """Seen by another thread that never stops looking."""
    fit.save(tmp_path / "fit")
    missing, done = [], threading.Event()

    def look():
        while not done.is_set():
            if not (tmp_path / "fit").is_dir():
                missing.append(1)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for _ in range(30):
            fit.save(tmp_path / "fit", force=True)
    finally:
        done.set()
        watcher.join()
    assert missing == []


# Kills

WORK = """
import os, sys
import numpy as np
import bifactor as bf
from pathlib import Path
from bifactor.running import files
from bifactor.running.files import sweep

operation, folder = sys.argv[1:3]
count = at = 0

def counted(*_):
    global count
    count += 1
    if count == at:
        os._exit(9)

def before(function):
    def wrapped(*arguments, **options):
        counted()
        return function(*arguments, **options)
    return wrapped

def heard(event, arguments):
    if event in EVENTS and at and any(isinstance(a, (str, bytes)) and folder in os.fsdecode(a) for a in arguments):
        counted()

EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.listdir", "os.scandir", "shutil.rmtree"}
sys.addaudithook(heard)
os.fsync = before(os.fsync)
files.exchange = before(files.exchange)
if len(sys.argv) > 3:
    files._exchanged = lambda new, old: False

def fit(level):
    table = level + np.arange(12.0).reshape(4, 3)
    return bf.MatrixCompletion(n_components=1, ridge=1.0, random_state=0).fit(table).fit_

problem = bf.Problem("squared", bf.operators.Full((4, 3)), np.ones((4, 3)))
def solved(iterations, **more):
    return bf.solve(problem, 1, bf.solvers.BFGD(), rng=0, max_iter=iterations, tol=0, **more)

path = os.path.join(folder, "x")
def begun():
    if os.path.exists(path):
        os.remove(path)
    solved(1, checkpoint=path)

old, new = fit(0.0), fit(100.0)
first, second = solved(1), solved(2)
from click.testing import CliRunner
from bifactor.cli.main import main

def complete(level):
    lines = [f"{i},{j},{level + i * j}" for i in range(4) for j in range(3)]
    data = os.path.join(os.path.dirname(folder), "data.csv")
    with open(data, "w") as file:
        file.write("\\n".join(lines))
    done = CliRunner().invoke(main, ["complete", data, "-o", path, "--rank", "1", "--ridge", "1", "--force"])
    assert done.exit_code == 0, done.output

WRITE = {
    "complete": (lambda: complete(0), lambda: complete(100)),
    "fit": (lambda: old.save(path, force=True), lambda: new.save(path, force=True)),
    "result": (lambda: first.save(path), lambda: second.save(path)),
    "checkpoint": (begun, lambda: solved(2, checkpoint=path)),
}
READ = {
    "complete": lambda: READ["fit"](),
    "fit": lambda: "old" if bf.load(path).model.link.intercept < 50 else "new",
    "result": lambda: {1: "old", 2: "new"}[bf.Result.load(path).n_iter],
    "checkpoint": lambda: {1: "old", 2: "new"}[solved(1, checkpoint=path).n_iter],
}
begin, write = WRITE[operation]
kills, seen = 0, set()
while True:
    begin()
    child = os.fork()
    if child == 0:
        at = kills + 1
        count = 0
        write()
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 0:
        assert READ[operation]() == "new"
        break
    assert status == 9, status
    kills += 1
    if len(sys.argv) > 3:
        sweep(Path(path))  # brings back what was put aside; in one step there is nothing to bring back
    seen.add(READ[operation]())  # an error ends it all
begin()  # sweeps what the dead have left
assert os.listdir(folder) == ["x"], os.listdir(folder)
print(kills, *sorted(seen))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    ("operation", "least", "more"),
    [("complete", 20, []), ("fit", 20, []), ("fit", 20, ["in three steps"]), ("result", 4, []), ("checkpoint", 4, [])],
    ids=str,
)
def test_a_kill_at_any_file_operation_leaves_the_old_or_the_new(tmp_path, operation, least, more):
    (tmp_path / "folder").mkdir()
    command = [sys.executable, "-W", "ignore", "-c", WORK, operation, str(tmp_path / "folder"), *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    kills, *seen = done.stdout.split()
    assert int(kills) >= least
    assert "old" in seen
    assert set(seen) <= {"old", "new"}


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
def test_signals_end_a_process_that_writes(tmp_path):
    """What SIGKILL leaves is the old file and one temporary, which the next write sweeps."""
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom bifactor.running import files\n"
        "os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)\n"
        "files.write_atomically(Path(sys.argv[1]), b'new')\n"
    )
    path = tmp_path / "x"
    path.write_text("old")
    done = subprocess.run([sys.executable, "-c", script, str(path)], timeout=100)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    assert len(os.listdir(tmp_path)) == 2
    files.require_writable(path)
    assert os.listdir(tmp_path) == ["x"]
    files.write_atomically(Path(path), b"newer")
    assert path.read_text() == "newer"
