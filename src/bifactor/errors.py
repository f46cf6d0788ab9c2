"""Everything bifactor raises.

::

    BifactorError
    ├── InputError (also ValueError)      a user's mistake, found before any work starts
    │   ├── SmoothnessError               a rule needs an L that the problem does not have
    │   └── KindError (also TypeError)    a cell of a table that is neither a number nor text
    ├── FileError (also OSError)          a file that cannot be read, or is not what it should be
    ├── LostError (also ConnectionError)  workers of a cluster are gone, or do not answer
    └── CheckError (also AssertionError)  `bifactor.testing` found a broken law

Numerical outcomes (divergence, a stall, an interrupt) are never raised: they are a `Result.status`.
"""


class BifactorError(Exception):
    """Root of every error that bifactor raises on purpose."""


class InputError(BifactorError, ValueError):
    """An argument is not what it must be: one sentence of fact, one of advice."""


class SmoothnessError(InputError):
    """A step rule or an initialisation asks for a smoothness constant that does not exist."""


class KindError(InputError, TypeError):
    """A cell of a table is neither a number nor text: scikit-learn's rules ask for a `TypeError` then."""


class FileError(BifactorError, OSError):
    """A file is missing, truncated, of another kind, or belongs to another run."""


class LostError(BifactorError, ConnectionError):
    """What was computed elsewhere is lost, and was not recovered."""


class CheckError(BifactorError, AssertionError):
    """A loss, operator, function or solver breaks a law that it must obey."""
