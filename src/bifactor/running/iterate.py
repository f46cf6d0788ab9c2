"""The loop over the iterations of `solve` and of factor analysis."""

from collections.abc import Callable

import numpy as np

from bifactor.running.result import Status

TOO_LARGE = (np.linalg.LinAlgError, OverflowError)
"""What is raised if factors are so large that their Gram matrices are not finite."""


def iterate(
    turn: Callable[[], Status | None],
    status: Status | None = None,
    prove: Callable[[Status], Status] = lambda status: status,
    save: Callable[[Status], None] = lambda status: None,
) -> Status:
    """Call `turn` until it returns the status with which the fit ends. Ctrl-C and overflow end it, too.

    The caller keeps the state, so that what the last complete turn left is the answer, whatever happened in the next.

    Parameters
    ----------
    turn : callable () -> Status or None
        One iteration; None continues.
    status : Status, optional
        That of the start, if there is nothing to do.
    prove : callable (Status) -> Status
        Tests the status of the last turn. Ctrl-C ends this test, too.
    save : callable (Status) -> None
        Called if Ctrl-C or an overflow has ended a turn.
    """
    try:
        while status is None:
            status = turn()
        return prove(status)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    except TOO_LARGE:
        status = Status.DIVERGED
    save(status)
    return status
