"""The errors that quietbits names: everything it raises on purpose is one of these, or a plain ``ValueError``."""


class InfeasibleError(ValueError):
    """The problem that was posed has no solution; the message says what would make it solvable."""


class ConvergenceError(RuntimeError):
    """A solver stopped before it reached its tolerance; nothing half-solved is returned."""


class DataError(ValueError):
    """Input data cannot be used; the message names the file or column and what is wrong with it."""


class TableError(ValueError):
    """A lookup table, or the file that holds one, was refused.

    Parameters
    ----------
    check : str
        Name of the check that failed, for example ``"row-sums"`` or ``"realised-epsilon"``.
    detail : str
        What was found, what was expected, and by how much they differ.
    file : str or None
        Name of the file, which the message then begins with.
    """

    def __init__(self, check: str, detail: str, file: str | None = None) -> None:
        super().__init__(f"{check}: {detail}" if file is None else f"{file}: {check}: {detail}")
        self.check = check
        self.detail = detail
        self.file = file

    def __reduce__(self) -> tuple[type["TableError"], tuple[str, str, str | None]]:
        """Return how a copy is made, so that workers can send the error back."""
        return type(self), (self.check, self.detail, self.file)
