"""A client's privacy budget over the tasks of all servers, recorded in a file."""

import math
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from ...design.contracts.guarantee import Guarantee
from ...errors import DataError, InfeasibleError

# The ledger's `PRAGMA user_version`; a new file has 0.
VERSION = 1
TABLE = """CREATE TABLE IF NOT EXISTS spent (
    entry INTEGER PRIMARY KEY, task TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, adjacency TEXT NOT NULL,
    trust_model TEXT NOT NULL, rounds INTEGER NOT NULL, messages INTEGER NOT NULL
)"""
# Time in seconds that a process waits for another process that writes the same ledger.
SECONDS = 60.0


@dataclass(frozen=True)
class PrivacyLedger:
    """The privacy budget of a client, and its spending in an SQLite file.

    The client pays for a task once, when its first message leaves, with an entry for the guarantee of all the task's rounds. Entries add up
    by basic composition, in which epsilons and deltas are summed. An add-or-remove-one guarantee counts towards a replace-one budget by
    `Guarantee.towards`.

    Attributes
    ----------
    path : Path
        The file, created with the first entry in an existing folder. Clients that share the file share the budget.
    epsilon, delta : float
        Largest sums of the entries' epsilons and deltas.
    adjacency : str
        Adjacency of the budget.
    """

    path: Path
    epsilon: float
    delta: float
    adjacency: str

    def check(self, task: str, guarantee: Guarantee, rounds: int) -> None:
        """Raise InfeasibleError if another message of a task would exceed the budget.

        `guarantee` is the guarantee of all rounds of the task.
        """
        with self._opened() as database:
            self._charge(database, task, guarantee, rounds)
            database.rollback()

    def record(self, task: str, guarantee: Guarantee, rounds: int) -> int:
        """Record another message of a task and return its entry's number, or raise InfeasibleError.

        The entry is on the disk when the method returns. A message beyond the rounds of a task opens a new entry, and the client pays
        again.
        """
        with self._opened() as database:
            entry = self._charge(database, task, guarantee, rounds)
            database.commit()
        return entry

    def weaken(self, entry: int, guarantee: Guarantee) -> None:
        """Raise an entry's epsilon to a weaker guarantee's, or raise InfeasibleError."""
        with self._opened() as database:
            changed = database.execute("UPDATE spent SET epsilon = max(epsilon, ?) WHERE entry = ?", (guarantee.epsilon, entry))
            if not changed.rowcount:
                raise DataError(f"{self.path}: ledger must have the entry {entry} of this round: the file is an earlier or another one")
            self._check_total(database)
            database.commit()

    def spent(self) -> tuple[Guarantee, ...]:
        """Return the guarantee of every entry."""
        with self._opened() as database:
            return tuple(_guarantees(database))

    def _charge(self, database: sqlite3.Connection, task: str, guarantee: Guarantee, rounds: int) -> int:
        stated = (task, guarantee.delta, guarantee.adjacency, guarantee.trust_model, rounds)
        open_entry = database.execute(
            "SELECT entry FROM spent WHERE (task, delta, adjacency, trust_model, rounds) = (?, ?, ?, ?, ?) AND messages < rounds", stated
        ).fetchone()
        if open_entry is None:
            entry = database.execute(
                "INSERT INTO spent (task, delta, adjacency, trust_model, rounds, epsilon, messages) VALUES (?, ?, ?, ?, ?, ?, 1)",
                (*stated, guarantee.epsilon),
            ).lastrowid
        else:
            (entry,) = open_entry
            database.execute(
                "UPDATE spent SET messages = messages + 1, epsilon = max(epsilon, ?) WHERE entry = ?", (guarantee.epsilon, entry)
            )
        self._check_total(database)
        return int(entry or 0)

    def _check_total(self, database: sqlite3.Connection) -> None:
        """Raise InfeasibleError if the entries exceed the budget.

        Sums are exact, and `Guarantee.towards` rounds conversions up.
        """
        entries = [entry.towards(self.adjacency) for entry in _guarantees(database)]
        for name, allowed in (("epsilon", self.epsilon), ("delta", self.delta)):
            values = [getattr(entry, name) for entry in entries]
            if math.inf in values or sum(map(Fraction, values)) > Fraction(allowed):
                raise InfeasibleError(
                    f"{name} must be at most {allowed:g} for this client over all its tasks, {self.adjacency} adjacency, got "
                    f"{math.fsum(values):.6g} with this message"
                )

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Open the file in an exclusive transaction; roll back uncommitted changes."""
        try:
            # SQLite opens a file for every absolute path; the relative path `:memory:` would be an unsaved database.
            with closing(sqlite3.connect(self.path.absolute(), timeout=SECONDS, isolation_level=None)) as database:
                # An EXTRA commit returns once the file and its folder are on the disk.
                database.execute("PRAGMA synchronous = EXTRA")
                database.execute("BEGIN IMMEDIATE")
                (version,) = database.execute("PRAGMA user_version").fetchone()
                if version not in (0, VERSION):
                    raise DataError(f"{self.path}: ledger must be of version {VERSION}, got {version}")
                (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
                if version == 0 and tables:
                    raise DataError(f"{self.path}: ledger must be a file of its own, got the database of another program")
                database.execute(TABLE)
                database.execute(f"PRAGMA user_version = {VERSION}")
                yield database
        except sqlite3.Error as error:
            raise DataError(f"{self.path}: ledger must be a file that can be read and written, in a folder that exists: {error}") from error


def _guarantees(database: sqlite3.Connection) -> Iterable[Guarantee]:
    rows = database.execute("SELECT epsilon, adjacency, trust_model, delta FROM spent ORDER BY entry")
    for epsilon, adjacency, trust_model, delta in rows:
        try:
            yield Guarantee(float(epsilon), adjacency, trust_model, delta=float(delta))
        except (TypeError, ValueError) as error:
            raise DataError(f"ledger must have entries as they were written: {error}") from error
