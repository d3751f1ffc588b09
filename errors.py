"""The named errors of quietbits; all other deliberate errors are a plain ``ValueError``."""


class InfeasibleError(ValueError):
    """The stated problem has no solution; the message states a requirement for a solution."""


class NotFiniteError(ValueError):
    """Numbers that must be finite are not; the message names them."""


class ConvergenceError(RuntimeError):
    """A solver missed its tolerance, or a training diverged; no partial result is returned."""


class DataError(ValueError):
    """Input data cannot be used; the message names the file or column and the fault."""


class DataNotFoundError(DataError):
    """A folder holds none of the requested data; the message names the files and their source."""


class MissingExtraError(ImportError, ValueError):
    """An optional package is not installed; the message names the extra that installs it."""


class PlugInError(ValueError):
    """A package offers an unusable mechanism; the message names the package and the fault."""


class TableError(ValueError):
    """A lookup table, or the file that holds one, was refused.

    Parameters
    ----------
    check : str
        Name of the check that failed, for example ``"row-sums"`` or ``"realised-epsilon"``.
    detail : str
        Actual value, expected value, and their difference.
    file : str or None
        The file that the table was read from; None for a table in memory.
    """

    def __init__(self, check: str, detail: str, file: str | None = None) -> None:
        # Workers send errors as pickles, which need the constructor's arguments.
        super().__init__(check, detail, file)
        self.check = check
        self.detail = detail
        self.file = file

    def __str__(self) -> str:
        """Return the failed check and its detail, after the file's name."""
        fault = f"{self.check}: {self.detail}"
        return fault if self.file is None else f"{self.file}: refused: {fault}"
