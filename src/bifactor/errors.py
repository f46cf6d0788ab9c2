"""The errors that bifactor raises.

::

    BifactorError
    ├── InputError (also ValueError)      a user's mistake, found before any work starts
    │   ├── SmoothnessError               a rule needs an L that the problem does not have
    │   └── KindError (also TypeError)    a cell of a table that is neither a number nor text
    ├── FileError (also OSError)          a file that cannot be read, or is not of the right kind
    ├── LostError (also ConnectionError)  workers of a cluster are lost, or do not answer
    └── CheckError (also AssertionError)  `bifactor.testing` found a law that does not hold

Numerical outcomes (divergence, a stall, an interrupt) are never raised as errors: they are a `Result.status`.
"""


class BifactorError(Exception):
    """The base class of all errors that bifactor raises on purpose."""


class InputError(BifactorError, ValueError):
    """An argument is not valid: one sentence of fact, one of advice."""


class SmoothnessError(InputError):
    """A step rule or an initialisation needs a smoothness constant that does not exist."""


class KindError(InputError, TypeError):
    """A cell of a table is neither a number nor text; scikit-learn requires a `TypeError` in this case."""


class FileError(BifactorError, OSError):
    """A file is missing, truncated, of another kind, or belongs to another run."""


class LostError(BifactorError, ConnectionError):
    """Results computed on workers are lost and could not be recovered."""


class CheckError(BifactorError, AssertionError):
    """A loss, operator, function or solver violates a law that it must obey."""
