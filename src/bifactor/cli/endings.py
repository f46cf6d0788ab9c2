"""How a command ends that did not get to its end: Ctrl-C, SIGTERM, and a screen that cannot be written to."""

import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import click

from bifactor.cli.look import ENDED, FAILED, TERMINATED

REFUSED = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
"""What a disk says that takes no more."""


@contextmanager
def ended_by_signal(context: click.Context) -> Iterator[None]:
    """SIGTERM does what Ctrl-C does: what is best so far is written, and nothing else is left behind.

    A process that was told to ignore it, or does something else about it, goes on doing so.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    process = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        if os.getpid() != process:  # a child, which has nothing to write
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        context.meta[ENDED] = TERMINATED
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def answer_written() -> Iterator[None]:
    """Turns what is wrong with the place that stdout leads to into one sentence, while it can be told.

    Letters that it does not know, as in names of files that are not Unicode, are shown by their numbers.
    """
    if sys.stdout is None:  # closed by the shell
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in (*REFUSED, errno.EPIPE):
            raise
        _forget_stdout()
        if error.errno != errno.EPIPE:  # a reader that has gone, such as head, wants to hear nothing
            click.echo(f"Error: The answer was not written: {error.strerror}. Check the free space.", err=True)
        sys.exit(FAILED)


def _forget_stdout() -> None:
    """Leave nothing in its buffer that Python would try to write once more at its end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
