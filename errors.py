"""The errors that quietbits names: everything it raises on purpose is one of these, or a plain ``ValueError``."""


class InfeasibleError(ValueError):
    """The problem that was posed has no solution; the message says what would make it solvable."""


class NotFiniteError(ValueError):
    """Numbers that must be finite are not; the message names them."""


class ConvergenceError(RuntimeError):
    """A solver stopped before it reached its tolerance, or a training diverged; nothing half-solved is returned."""


class DataError(ValueError):
    """Input data cannot be used; the message names the file or column and what is wrong with it."""


class DataNotFoundError(DataError):
    """A folder holds none of the data that were asked for; the message says what was looked for, and where it comes from."""


class PlugInError(ValueError):
    """A package offers a mechanism that cannot be used; the message names the package, and what is wrong."""


class TableError(ValueError):
    """A lookup table, or the file that holds one, was refused.

    Parameters
    ----------
    check : str
        Name of the check that failed, for example ``"row-sums"`` or ``"realised-epsilon"``.
    detail : str
        What was found, what was expected, and by how much they differ.
    file : str or None
        The file that the table was read from; None for a table in memory.
    """

    def __init__(self, check: str, detail: str, file: str | None = None) -> None:
        # What a copy is made of, so that workers can send the error back.
        super().__init__(check, detail, file)
        self.check = check
        self.detail = detail
        self.file = file

    def __str__(self) -> str:
        """Return the check and what it found, with the file's name first."""
        fault = f"{self.check}: {self.detail}"
        return fault if self.file is None else f"{self.file}: refused: {fault}"
