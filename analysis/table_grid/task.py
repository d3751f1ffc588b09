"""A table of a grid with its design, certificate, files and row of the index."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ...design.contracts.privacy import Scalar
from ...design.tables.file import FIRST_FORMAT, FORMAT, table_document, table_json
from ...design.tables.letter_certification import certify_letters
from ...design.tables.lookup_table import LookupTable
from ...design.tables.mvu import design_mvu
from ...design.tables.verification import verify_table
from ...progress import silent
from ...shown import results_first

# Columns of a task's row with the contents of files, and columns with the files' names.
CONTENTS = {"table_text": "file"}


@dataclass(frozen=True)
class TableDesign:
    """The design of a table; tables of the same design differ only in their interval."""

    epsilon: float
    bits_in: int
    bits_out: int
    metric: str | None
    objective: str
    seed: int
    certify_seconds: float | None


@dataclass(frozen=True)
class TableTask:
    """A table of a grid; arguments are those of `design_mvu`.

    Attributes
    ----------
    certify_seconds : float or None
        Duration of the search for a bound among tables of as many letters, and for a better table; None without a search.
    shared : bool
        Whether some tasks differ only in the interval, and so share a design.
    """

    epsilon: float
    bits_in: int
    bits_out: int
    metric: str | None = None
    objective: str = "mean"
    interval: tuple[float, float] = (0.0, 1.0)
    seed: int = 0
    certify_seconds: float | None = None
    shared: bool = False

    @property
    def design(self) -> TableDesign | None:
        """Key of tasks that share a design."""
        return self._design if self.shared else None

    @property
    def name(self) -> str:
        """The task in canonical JSON, without the seed, which `TableDesign` has, and without a search that was not asked for."""
        left_out = {"seed"} | ({"certify_seconds"} if self.certify_seconds is None else set())
        record = {key: value for key, value in asdict(self._design).items() if key not in left_out}
        return json.dumps({"table": record | {"interval": self.interval}}, sort_keys=True, separators=(",", ":"))

    @property
    def setting(self) -> str:
        """The table in words."""
        metric = "" if self.metric is None else f", metric {self.metric}"
        low, high = self.interval
        asked = f"epsilon {self.epsilon:g}, {self.bits_in} bits in, {self.bits_out} out{metric}"
        return f"{asked}, objective {self.objective}, from {low:g} to {high:g}"

    @property
    def stem(self) -> str:
        """Name of the table's files without suffix, unique in a grid."""
        parts = [f"epsilon_{_number(self.epsilon)}", f"bits_{self.bits_in}_{self.bits_out}"]
        parts += [] if self.metric is None else [self.metric]
        parts += [] if self.objective == "mean" else [self.objective]
        parts += [] if self.interval == (0.0, 1.0) else [f"from_{_number(self.interval[0])}_to_{_number(self.interval[1])}"]
        return "_".join(parts)

    def prepare(self, _: Path | None) -> LookupTable:
        """Design the table, on the unit interval."""
        table = design_mvu(self.epsilon, self.bits_in, self.bits_out, metric=self.metric, objective=self.objective, seed=self.seed)
        return table if self.certify_seconds is None else certify_letters(table, seconds=self.certify_seconds, on_step=silent).best

    def run(self, prepared: LookupTable) -> list[dict[str, Scalar]]:
        """Return a row of the request, the certificate's numbers, and the contents of the files."""
        table = prepared.with_interval(*self.interval)
        verify_table(table)
        text = table_json(table)
        row = {"file": f"{self.stem}.json"} | index_columns(table, len(text)) | {"table_text": text.decode("ascii")}
        return [{name: row[name] for name in results_first(row)}]

    @property
    def _design(self) -> TableDesign:
        return TableDesign(self.epsilon, self.bits_in, self.bits_out, self.metric, self.objective, self.seed, self.certify_seconds)


def index_columns(table: LookupTable, size: int, table_format: str = FORMAT) -> dict[str, Scalar]:
    """Return a table's columns of the index except its file names; its file has `size` bytes and the given format."""
    certificate = table.certificate
    letters = {"letters_lower_bound": certificate.letters_lower_bound, "letters_gap": certificate.letters_gap}
    return {
        "epsilon": table.epsilon,
        "bits_in": table.bits_in,
        "bits_out": table.bits_out,
        "metric": table.metric,
        "objective": certificate.objective,
        "low": table.interval[0],
        "high": table.interval[1],
        "adjacency": table.adjacency,
        "trust_model": table.trust_model,
        "realised_epsilon": certificate.realised_epsilon,
        "max_bias": certificate.max_bias,
        "mean_variance": certificate.mean_variance,
        "worst_variance": certificate.worst_variance,
        "lower_bound": certificate.lower_bound,
        "optimality_gap": certificate.optimality_gap,
        **({} if table_format == FIRST_FORMAT else letters),
        "solver": table.provenance.solver,
        "size": size,
        "checksum": table_document(table, table_format)["sha256"],
    }


def _number(value: float) -> str:
    return repr(value).removesuffix(".0")
