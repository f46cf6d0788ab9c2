"""Commands that do not get to their end: signals, full disks, and places where nothing may be written."""

import gzip
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bifactor as bf
from bifactor.cli.main import main

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and devices of POSIX")

FILES = {"card.json", "factors.safetensors", "ids.safetensors", "report.html", "seen.safetensors"}
QUICK = ("complete", "data.csv", "--rank", "2", "--ridge", "1")
FULL = Path("/dev/full")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Data, a fit, pairs and a table."""
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    i, j = np.nonzero(rng.random((20, 15)) < 0.6)
    lines = [f"u{a},{b},{c:.3f}\n" for a, b, c in zip(i, j, rng.standard_normal(i.size), strict=True)]
    (folder / "data.csv").write_text("user,item,rating\n" + "".join(lines))
    (folder / "pairs.csv").write_text("user,item\n" + "".join(f"u{a},{b}\n" for a, b in zip(i, j, strict=True)))
    (folder / "table.csv").write_text("a,b,c\n" + "".join(f"{k},{2 * k},{'' if k % 3 else k}\n" for k in range(9)))
    (folder / "counts.csv").write_text("setting,outcome,count\nX,0,90\nX,1,10\nY,0,50\nY,1,50\nZ,0,60\nZ,1,40\n")
    done = CliRunner().invoke(main, ["complete", str(folder / "data.csv"), *QUICK[2:], "-o", str(folder / "fit")])
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("data.csv", "pairs.csv", "table.csv", "counts.csv", "fit"):
        (tmp_path / name).symlink_to(made / name)
    return tmp_path


SERVER = """
import gc, json, os, socket, sys
import bifactor.cli.complete, bifactor.cli.impute, bifactor.cli.predict, bifactor.cli.recommend, bifactor.cli.tomography
import bifactor.applications.completion.workflow, bifactor.applications.imputation.workflow
import bifactor.applications.recommender.workflow, bifactor.applications.tomography.workflow

client = socket.socket(fileno=int(sys.argv[1]))
gc.freeze()  # so that the collector does not copy all memory in each child
while True:
    request, screens, _, _ = socket.recv_fds(client, 1 << 20, 2)
    if not request:
        sys.exit()
    child = os.fork()
    if child == 0:
        break
    for screen in screens:
        os.close(screen)
    client.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
client.close()
folder, script, sys.argv = json.loads(request)
for number, screen in enumerate(screens, 1):
    os.dup2(screen, number)
    os.close(screen)
os.chdir(folder)
exec(compile(script, "-c", "exec"), {"__name__": "__main__"})
"""
"""A process that has imported the commands, from which others are forked: to start one anew takes a second or two. They
end as any process of Python does."""


@pytest.fixture(scope="module")
def server():
    if sys.platform != "linux":  # other systems do not fork safely after these imports
        yield None
        return
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-c", SERVER, str(theirs.fileno())]
    pipe = subprocess.PIPE  # as of the processes that it stands for, since Python asks its screens once what they are
    with ours, subprocess.Popen(command, stdout=pipe, stderr=pipe, pass_fds=[theirs.fileno()]) as process:
        theirs.close()
        ours.settimeout(100)
        yield ours
        ours.close()
        process.wait()


def forked(server, script, arguments, stdout):
    """What `subprocess.run` returns, of a process that is forked."""

    def everything(file):
        with open(file) as opened:
            return opened.read()

    (out, screen), (err, errors) = os.pipe(), os.pipe()
    with ThreadPoolExecutor(2) as readers:
        said = [readers.submit(everything, file) for file in (out, err)]
        request = json.dumps([os.getcwd(), script, ["-c", *map(str, arguments)]]).encode()
        given = stdout if isinstance(stdout, int) or stdout is None else stdout.fileno()
        socket.send_fds(server, [request], [screen if given in (subprocess.PIPE, None) else given, errors])
        os.close(screen)
        os.close(errors)
        code = int(server.recv(100))
    return subprocess.CompletedProcess(arguments, code, *(one.result() for one in said))


@pytest.fixture
def run(server):
    """Runs a command in a process of its own, after some lines of Python."""

    def command(arguments, before="", stdout=subprocess.PIPE, env=None):
        script = f"import os, signal, sys\n{before}\nfrom bifactor.cli.main import main\nmain()\n"
        if server is not None and env is None:
            done = forked(server, script, arguments, stdout)
        else:
            options = {"stdout": stdout, "stderr": subprocess.PIPE, "text": True, "timeout": 100, "env": env}
            done = subprocess.run([sys.executable, "-c", script, *map(str, arguments)], **options)
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr
        return done

    return command


# Signals

WATCHED = """
from contextlib import contextmanager
from bifactor.cli import monitor

class Watched:
    stage = None
    def iterations(self, most):
        return lambda iteration, state: iteration == 3 and os.kill(os.getpid(), signal.SIGTERM)
    def ended(self, status):
        pass

@contextmanager
def fit_progress(what, first, observations=0):
    yield Watched()

monitor.fit_progress = fit_progress
"""

FSYNC = "os.fsync = lambda file: os.kill(os.getpid(), signal.SIGTERM)"


def test_sigterm_keeps_the_best_fit(folder, run):
    done = run([*QUICK, "-o", "new", "--checkpoint", "run", "--json"], WATCHED)
    assert done.returncode == 143, done.stderr
    answer = json.loads(done.stdout)
    assert answer["fit"]["status"] == "INTERRUPTED"
    assert answer["notes"] == ["Interrupted: this is the best fit so far."]
    assert set(os.listdir("new")) == FILES
    assert np.isfinite(bf.load("new").predict("u1", 1)).all()
    assert (folder / "run").is_file()
    assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]


READING = (
    "import bifactor.data\nread = sys.modules['bifactor.data.read']\n"
    "read.require_file = lambda path: os.kill(os.getpid(), signal.SIGTERM)"
)


@pytest.mark.parametrize(
    ("before", "when"),
    [(READING, "before there was a fit"), (FSYNC, "again while the fit was written")],
    ids=["while reading", "while writing"],
)
def test_sigterm_that_leaves_nothing(folder, run, before, when):
    names = set(os.listdir(folder))
    done = run([*QUICK, "-o", "new"], before)
    assert done.returncode == 143
    assert done.stderr.strip().splitlines()[-1] == f"Error: Interrupted {when}. Nothing was written."
    assert set(os.listdir(folder)) == names


AFTER = """
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in the background of a shell
import bifactor.{module} as module
before = module.{name}
def interrupted(*arguments, **options):
    os.kill(os.getpid(), signal.{signal})
    return before(*arguments, **options)
module.{name} = interrupted
"""
VALUES, CHOICES = "applications.completion.workflow", "applications.recommender.workflow"
HELD = ("--holdout", "0.2")
CLICKS = ("--implicit", "--unobserved", "0.3", "--ridge", "0.1", "--rank", "2")
REPORT, TEST = "Interrupted, without the report.", "Interrupted, without the score at --test, the report."
STAGES = {
    "held-out scores": (
        VALUES,
        "held_out_scores",
        ("--rank", "2", "--ridge", "1", *HELD, "--test", "data.csv"),
        "Interrupted, without the score at held-out entries, the baseline, the fit to all entries, "
        "the score at --test, the report.",
    ),
    "the score of a test": (VALUES, "score_file", (*QUICK[2:], "--test", "data.csv"), TEST),
    "the card": (VALUES, "about_fit", QUICK[2:], REPORT),
    "the report": (VALUES, "report", QUICK[2:], REPORT),
    "the check of clicks": (
        CHOICES,
        "evaluate_fit",
        CLICKS,
        "Interrupted, without the check, the fit to all choices, the report.",
    ),
    "the report of clicks": (CHOICES, "report", CLICKS, REPORT),
}


@pytest.mark.parametrize(
    ("stage", "number"), [*((stage, "SIGINT") for stage in STAGES), ("the check of clicks", "SIGTERM")]
)
def test_signals_after_a_fit_leave_out_the_rest_but_not_the_fit(folder, run, stage, number):
    module, name, options, note = STAGES[stage]
    before = AFTER.format(module=module, name=name, signal=number)
    done = run(["complete", "data.csv", *options, "-o", "new", "--json"], before)
    assert done.returncode == (130 if number == "SIGINT" else 143), done.stderr
    answer = json.loads(done.stdout)
    assert note in answer["notes"]
    assert (answer["scores"] == {}) == (stage != "the report of clicks")
    assert set(os.listdir("new")) - {"posterior.safetensors", "side.safetensors"} == FILES - {"report.html"}
    assert bf.load("new").recommend(n=1)[0].size


@pytest.mark.parametrize("options", [QUICK[2:], CLICKS], ids=["values", "clicks"])
def test_a_signal_while_the_summary_is_printed_leaves_the_fit(folder, run, options):
    before = AFTER.format(module="cli.complete", name="print_result", signal="SIGINT")
    done = run(["complete", "data.csv", *options, "-o", "new"], before)
    assert done.returncode == 130
    assert done.stderr.strip().splitlines()[-1] == "Error: Interrupted after the fit was written."
    assert bf.load("new").recommend(n=1)[0].size


def test_a_signal_while_the_fit_is_written_lets_it_be_written(folder, run):
    done = run(
        [*QUICK, "-o", "new"],
        AFTER.format(module=VALUES, name="about_machine", signal="SIGTERM"),
    )
    assert done.returncode == 143
    assert REPORT in done.stdout
    assert "report.html" not in done.stdout
    once = FSYNC.replace("os.kill(os.getpid(), signal.SIGTERM)", "said or said.append(os.kill(os.getpid(), 15))")
    done = run([*QUICK, "-o", "again"], f"said = []\n{once}")
    assert done.returncode == 143
    assert set(os.listdir("again")) == FILES


def test_sigterm_leaves_the_old_fit(folder, run):
    assert run([*QUICK, "-o", "new"]).returncode == 0
    before = {path.name: path.read_bytes() for path in Path("new").iterdir()}
    assert run([*QUICK, "-o", "new", "--force"], FSYNC).returncode == 143
    assert {path.name: path.read_bytes() for path in Path("new").iterdir()} == before
    assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "fit", "pairs.csv", "-o", "x.csv"),
        ("predict", "fit", "pairs.csv", "-o", "x.csv.gz"),
        ("impute", "table.csv", "-o", "x.csv"),
        ("tomography", "counts.csv", "--rank", "1", "-o", "x.npz"),
    ],
    ids=lambda words: f"{words[0]} {words[-1]}",
)
def test_sigterm_while_a_file_is_written_leaves_nothing(folder, run, arguments):
    names = set(os.listdir(folder))
    assert run(arguments, FSYNC).returncode == 143
    assert set(os.listdir(folder)) == names


def test_what_ignores_sigterm_goes_on_ignoring_it(folder, run):
    done = run([*QUICK, "-o", "new"], "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WATCHED)
    assert done.returncode == 0, done.stderr


def test_the_handler_goes_with_the_command(folder):
    before = signal.getsignal(signal.SIGTERM)
    CliRunner().invoke(main, ["recommend", "fit", "--user", "u1"])
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_of_a_command_ends_as_any_process(folder, run):
    before = (
        "import bifactor.cli.recommend as r\n"
        "def load(path):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        os._exit(0)\n"
        "    raise SystemExit(20 - os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "r.open_fit = load\n"
    )
    assert run(["recommend", "fit", "--user", "u1"], before).returncode == 20 + signal.SIGTERM


# Full disks


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "fit", "pairs.csv"),
        ("predict", "fit", "pairs.csv", "--json"),
        ("predict", "none", "pairs.csv", "--json"),
        ("recommend", "fit", "--user", "u1"),
        ("recommend", "fit", "--user", "u1", "--json"),
        (*QUICK, "-o", "new"),
        (*QUICK, "-o", "new", "--json"),
        ("impute", "table.csv", "-o", "x.csv"),
        ("tomography", "counts.csv", "--rank", "1"),
        ("--help",),
    ],
    ids=" ".join,
)
def test_a_full_disk_behind_the_screen_is_told_in_a_sentence(folder, run, arguments):
    with FULL.open("w") as full:
        done = run(arguments, stdout=full)
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert "Error: The answer was not written: No space left on device. Check the free space." in said


@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.parametrize("many", [1, 20_000])
def test_a_reader_that_has_gone(folder, run, more, many):
    """As in `bifactor predict fit pairs.csv | head`."""
    (folder / "more.csv").write_text("user,item\n" + "u1,2\n" * many)
    reader, writer = os.pipe()
    os.close(reader)
    done = run(["predict", "fit", "more.csv", *more], stdout=writer)
    os.close(writer)
    assert done.returncode in (0, 1)
    assert "Error" not in done.stderr


def test_a_screen_that_is_closed(folder, run):
    for arguments in (["recommend", "fit", "--user", "u1"], ["predict", "fit", "pairs.csv"], [*QUICK, "-o", "new"]):
        for more in ([], ["--json"]):
            done = run([*arguments, *more], "os.close(1)\nsys.stdout = None", stdout=None)
            assert done.returncode == (1 if arguments[0] == "complete" and more else 0), done.stderr
    assert set(os.listdir("new")) == FILES


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((*QUICK, "-o", "new"), "new"),
        (("predict", "fit", "pairs.csv", "-o", "x.csv"), "x.csv"),
        (("predict", "fit", "pairs.csv", "-o", "x.csv.gz"), "x.csv.gz"),
        (("impute", "table.csv", "-o", "x.csv"), "x.csv"),
        (("tomography", "counts.csv", "--rank", "1", "-o", "x.npz"), "x.npz"),
    ],
    ids=lambda words: words if isinstance(words, str) else words[0],
)
def test_a_full_disk_is_told_in_a_sentence(folder, run, arguments, name):
    """Of files that may have 20 bytes, which is a disk that is full in the middle of a write."""
    names = set(os.listdir(folder))
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))"
    done = run(arguments, limit)
    assert done.returncode == 1
    assert name in done.stderr
    assert "File too large" in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("Error: ")
    assert set(os.listdir(folder)) == names


def test_a_full_disk_costs_the_checkpoint_and_not_the_fit(folder, run):
    """The fit is written where there is room."""
    before = (
        "import errno\nfrom bifactor.running import files\nwrite = files.write_atomically\n"
        "def full(path, *parts):\n"
        "    if path.name == 'run':\n"
        "        raise files.FileError(f'Cannot write {path}: No space left on device.')\n"
        "    write(path, *parts)\n"
        "files.write_atomically = full\n"
    )
    done = run([*QUICK, "-o", "new", "--checkpoint", "run", "--json"], before)
    assert done.returncode == 0, done.stderr
    assert any("not in the checkpoint" in note for note in json.loads(done.stdout)["notes"])


# Where nothing may be written

WRITERS = {
    "complete": lambda target: (*QUICK, "-o", target, "--force"),
    "checkpoint": lambda target: (*QUICK, "-o", "new", "--checkpoint", target),
    "predict": lambda target: ("predict", "fit", "pairs.csv", "-o", target, "--force"),
    "impute": lambda target: ("impute", "table.csv", "-o", target, "--force"),
    "tomography": lambda target: ("tomography", "counts.csv", "--rank", "1", "-o", f"{target}.npz", "--force"),
    "demo": lambda target: ("demo", "--output", f"{target}.html"),
}


@pytest.mark.parametrize("command", WRITERS)
@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_is_never_replaced(folder, command, linked):
    end = {"tomography": ".npz", "demo": ".html"}.get(command, "")
    os.mkfifo("pipe" + end)
    if linked:
        Path("link" + end).symlink_to("pipe" + end)
    done = CliRunner().invoke(main, WRITERS[command]("link" if linked else "pipe"))
    assert done.exit_code == 1, done.output
    assert "Choose another name" in done.stderr
    assert stat.S_ISFIFO(os.stat("pipe" + end).st_mode)


@pytest.mark.parametrize("command", [name for name in WRITERS if name != "demo"])
def test_links_are_followed(folder, command):
    end = {"tomography": ".npz"}.get(command, "")
    (folder / "there").mkdir()
    Path("link" + end).symlink_to("there/x" + end)
    done = CliRunner().invoke(main, WRITERS[command]("link"))
    assert done.exit_code == 0, done.output
    assert Path("link" + end).is_symlink()
    assert os.listdir("there") == ["x" + end]


@pytest.mark.parametrize("command", WRITERS)
def test_long_names(folder, command):
    end = {"tomography": ".npz", "demo": ".html"}.get(command, "")
    name = "x" * (250 - len(end))
    if command != "demo":
        done = CliRunner().invoke(main, WRITERS[command](name))
        assert done.exit_code == 0, done.output
        assert Path(name + end).exists()
    done = CliRunner().invoke(main, WRITERS[command](name + "y" * 6))
    assert done.exit_code == 1
    assert "has more than 255 bytes" in done.stderr
    assert not [left for left in os.listdir(folder) if left.endswith(".tmp")]


def test_a_gzipped_answer_is_whole(folder):
    assert CliRunner().invoke(main, ["predict", "fit", "pairs.csv", "-o", "x.csv.gz"]).exit_code == 0
    assert gzip.decompress(Path("x.csv.gz").read_bytes()).startswith(b"user,item,prediction,known\n")


def test_folders_of_others_are_never_replaced(folder):
    (folder / "mine").mkdir()
    (folder / "mine" / "card.json").write_text("a card to somebody")
    done = CliRunner().invoke(main, [*QUICK, "-o", "mine", "--force"])
    assert done.exit_code == 1
    assert "mine contains no card.json of a fit. Choose another name." in done.stderr
    assert (folder / "mine" / "card.json").read_text() == "a card to somebody"


def test_names_of_files_that_are_not_unicode(folder, run):
    """Nor is the screen."""
    strange = os.fsdecode(b"\xff")
    for more in ([], ["--json"]):
        for environment in (None, {**os.environ, "PYTHONIOENCODING": "ascii"}):
            output = strange + "x" * (1 + len(more) + 2 * (environment is None))
            done = run([*QUICK, "-o", output, *more], env=environment)
            assert done.returncode == 0, done.stderr
            assert not more or json.loads(done.stdout)["output"] == output
            done = run(["predict", output + "y", "pairs.csv", *more], env=environment)
            assert done.returncode == 1
            assert not more or "not the folder of a fit" in json.loads(done.stdout)["error"]


SEARCH = """
from bifactor.models.completion import noise_selection
before = noise_selection._fitted
counts = []
def interrupted(*arguments):
    counts.append(1)
    if len(counts) == 2:
        raise KeyboardInterrupt
    return before(*arguments)
noise_selection._fitted = interrupted
"""


def test_a_choice_that_was_interrupted_leaves_no_checkpoint_that_is_refused(folder, run):
    """The whole choice may be another one, so the same command would not resume the fit."""
    command = ["complete", "data.csv", "-o", "new", "--checkpoint", "run", "--force"]
    done = run(command, SEARCH)
    assert done.returncode == 0, done.stderr
    assert "Ctrl-C ended the search for the noise model early" in " ".join(done.stdout.split())
    assert run(command).returncode == 0
    assert run([*command[:3], "whole"]).returncode == 0
    np.testing.assert_array_equal(bf.load("new").model.U, bf.load("whole").model.U)
