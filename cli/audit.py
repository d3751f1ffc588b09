"""`quietbits audit`: runs of a mechanism or table on neighbours, against its guarantee."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import check_outputs, grid, or_none, progress_bar, show_document, working
from .options import Json, Output, Seed, registry_group, with_options
from .task import Clients, Delta, built, entries_of, entry_names, options_of, size_of, task_options, title_of

if TYPE_CHECKING:
    from ..analysis.audits.mechanism_audit import MechanismAudit
    from ..analysis.planner.stated_error import StatedError
    from ..design.contracts.mechanism import Mechanism

TABLE = "table"
REPETITIONS = Annotated[int, typer.Option(help="Runs on each of two neighbouring inputs. Many times 1/delta are needed to see anything.")]
OTHERS = Annotated[str, typer.Option(help="Vectors of the other clients of a secure sum: zero, or same as the first one's.")]
CONFIDENCE = Annotated[float, typer.Option(help="Probability with which the bound holds.")]
AUDIT: dict[str, tuple[Any, Any]] = {
    "repetitions": (REPETITIONS, 1_000_000),
    "others": (OTHERS, "zero"),
    "confidence": (CONFIDENCE, 0.999),
    "seed": (Seed, 0),
    "json": (Json, False),
    "output": (Output, None),
}
HELP = "Bound the epsilon of {} from below; exit code 1 if that refutes its guarantee. Not refuted is no proof (`quietbits.audit`)."


def _names() -> list[str]:
    return [*entry_names(), TABLE]


def _title(name: str) -> str:
    return "A lookup table, from its file" if name == TABLE else title_of(name)


def _subcommand(name: str) -> Any:
    if name == TABLE:
        return _audit_table
    (entry,) = entries_of(name)

    def run(**values: Any) -> None:
        from ..analysis.planner.stated_error import stated_error

        size = size_of(entry)
        if size is not None and values[size] is None:
            values[size] = {"categories": 2, "dimension": 1}[size]
        check_outputs(values["output"])
        with working(f"building {name}"):
            task, mechanism = built(entry, values)
            stated = stated_error(entry, task, mechanism)
        head = {"mechanism": name, "clients": task.clients, "dimension": task.dimension}
        _audit(mechanism, stated, head | {bits: values[bits] for bits in ("bits", "message_bits") if bits in values}, values)

    fixed = task_options([entry]) | {"clients": (Clients, 2), "delta": (Delta, 0.0)} | AUDIT
    return with_options(run, options_of([entry]), fixed, HELP.format(name))


def _audit_table(
    table: Annotated[Path, typer.Argument(help="Lookup table, as JSON; it is verified first.")],
    repetitions: REPETITIONS = 1_000_000,
    confidence: CONFIDENCE = 0.999,
    seed: Seed = 0,
    json: Json = False,
    output: Output = None,
) -> None:
    """Draw from a table for neighbouring inputs, and bound its epsilon from below (`audit`).

    The exit code is 1 if the lower bound refutes the table's epsilon.
    """
    from ..analysis.catalogue.tables import MVU
    from ..analysis.planner.stated_error import stated_error
    from ..design.contracts.task import LARGEST_TARGET, SMALLEST_TARGET, Task
    from ..design.tables.file import read_table
    from ..design.tables.table_mean import TableMeanMechanism

    check_outputs(output, inputs=[table])
    with working(f"verifying {table}"):
        mechanism = TableMeanMechanism(read_table(table))
        guarantee = mechanism.guarantee
        # Tasks limit epsilon to a range: above it no bound is known, and below it the bound for the larger epsilon still holds.
        epsilon = min(max(guarantee.epsilon, SMALLEST_TARGET), LARGEST_TARGET)
        task = Task(mechanism.domain, 1, epsilon, guarantee.delta, guarantee.adjacency)
        stated = stated_error(MVU, task, mechanism)
    values = {"repetitions": repetitions, "others": "zero", "confidence": confidence, "seed": seed, "json": json, "output": output}
    _audit(mechanism, stated, {"mechanism": str(table)}, values)


audit_app = typer.Typer(
    cls=registry_group(_names, _subcommand, _title),
    help="Run a mechanism on neighbours and test its guarantee (`quietbits.audit`). Passing is not a proof of privacy.",
    no_args_is_help=True,
)


@audit_app.callback()
def _audit_group() -> None:
    """Run a mechanism on neighbours and test its guarantee. Passing is not a proof of privacy."""


def _audit(mechanism: "Mechanism", stated: "StatedError", head: dict[str, Any], values: dict[str, Any]) -> None:
    from ..analysis.audits.mechanism_audit import audit
    from ..analysis.random_streams import named_stream

    with progress_bar(f"running {head['mechanism']} on neighbours") as on_step:
        audited = audit(
            mechanism,
            values["repetitions"],
            named_stream(values["seed"], "audit"),
            others=values["others"],
            confidence=values["confidence"],
            on_step=on_step,
        )
    document = head | {"others": values["others"], "seed": values["seed"]} | audited.document() | stated.document()
    show_document(document, values["json"], values["output"])
    if not values["json"]:
        _print(str(head["mechanism"]), audited, stated)
    if audited.refuted:
        raise typer.Exit(1)


def _print(name: str, audited: "MechanismAudit", stated: "StatedError") -> None:
    finding = audited.measured
    least = stated.bound_reason or or_none(stated.lower_bound, 6)
    grid(
        f"Audit of {name}",
        (
            ("guarantee", str(audited.claim)),
            ("epsilon is at least", f"{finding.epsilon_lower_bound:.4g}, with confidence {finding.confidence:g}"),
            ("refuted", "yes" if audited.refuted else "no, but passing is not a proof"),
            ("event", f"{finding.event.replace('threshold', f'{finding.threshold:.6g}')}, likelier for the {finding.likelier} input"),
            ("counted", f"{finding.likely_count} beside {finding.unlikely_count} in {finding.draws} draws each"),
            ("worst squared error, as stated", f"{stated.worst_squared_error:.6g}"),
            ("proven least worst error", least),
            ("trusted server, epsilon asked", or_none(stated.central_squared_error, 6)),
            ("bits per client", f"{stated.bits_per_client:g}"),
        ),
    )
