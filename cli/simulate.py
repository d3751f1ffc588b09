"""`quietbits simulate`: rounds of a mechanism on synthetic inputs, with error bounds."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import check_outputs, console, grid, or_none, progress_bar, show_document, warn, working
from .options import Json, Output, Seed, registry_group, with_options
from .task import built, domain_of, entries_of, entry_names, options_of, task_options, title_of

if TYPE_CHECKING:
    from ..analysis.simulation.repeated_means import MeanSummary
    from ..design.contracts.registry import Entry

POPULATION_HELP = (
    "sphere, positive-sphere, uniform-l1, uniform-cube, sparse, sparse-mean, digits-gradients (of a network with as many parameters as "
    "there are coordinates); for numbers uniform, rising or ends; for items uniform, zipf or geometric."
)
SIMULATION: dict[str, tuple[Any, Any]] = {
    "population": (
        Annotated[str | None, typer.Option(help=POPULATION_HELP)],
        None,
    ),
    "nonzero": (
        Annotated[int | None, typer.Option(help="Coordinates of sparse and sparse-mean that are not zero; one in 16 by default.")],
        None,
    ),
    "repetitions": (Annotated[int, typer.Option(help="Number of rounds that are simulated.")], 1),
    "masked": (
        Annotated[bool, typer.Option("--masked", help="Send messages of a secure sum through masks: the same result takes longer.")],
        False,
    ),
    "seed": (Seed, 0),
    "json": (Json, False),
    "output": (Output, None),
}


def _subcommand(name: str) -> Any:
    entries = entries_of(name)
    options = options_of(entries)

    def run(**values: Any) -> None:
        check_outputs(values["output"])
        if len(entries) > 1 and values["adjacency"] is None:
            raise ValueError("adjacency must be given where mechanisms are compared: replace-one or add-or-remove-one")
        results = {entry.name: _simulated(entry, values) for entry in entries}
        documents: list[dict[str, Any]] = [{"mechanism": name, **simulated.document()} for name, simulated in results.items()]
        show_document(documents[0] if len(documents) == 1 else {"mechanisms": documents}, values["json"], values["output"])
        if not values["json"]:
            _print(results)

    return with_options(
        run, options, task_options(entries) | SIMULATION, f"Simulate {name}: rounds on synthetic inputs (`build_mechanism`, `repeat_mean`)."
    )


simulate_app = typer.Typer(
    cls=registry_group(entry_names, _subcommand, title_of, several=True),
    help="Run rounds of one or more mechanisms (NAME,NAME) on synthetic inputs; measure the error (`quietbits.repeat_mean`).",
    no_args_is_help=True,
)


@simulate_app.callback()
def _simulate_group() -> None:
    """Run rounds of one or more mechanisms (NAME,NAME) on synthetic inputs; measure the error."""


@dataclass(frozen=True)
class Simulated:
    """Summary of simulated rounds, with the least worst-case error proven for the task.

    `lower_bound` is None without a proven bound, and for mechanisms that state their error only for some populations, because the bound is
    about the worst inputs.
    """

    summary: "MeanSummary"
    lower_bound: float | None
    populations: tuple[str, ...] | None = None
    on_real_numbers: bool = False

    @property
    def ratio_to_bound(self) -> float | None:
        """Ratio of the domain's largest error to the bound."""
        return self.summary.worst_squared_error / self.lower_bound if self.lower_bound else None

    def document(self) -> dict[str, Any]:
        """Return all results as JSON values."""
        bound = {"lower_bound": self.lower_bound, "ratio_to_bound": self.ratio_to_bound}
        return {**self.summary.document(), **bound, "on_real_numbers": self.on_real_numbers}


def _simulated(entry: "Entry", values: dict[str, Any]) -> Simulated:
    from ..analysis.planner.bound import largest_bound
    from ..analysis.simulation.populations import check_inputs
    from ..analysis.simulation.repeated_means import repeat_mean, summarise_means
    from ..design.contracts.guarantee import Guarantee
    from ..design.contracts.norm_ball import NormBall

    domain, nonzero = domain_of(values, entry), values["nonzero"]
    population = values["population"] or ("sphere" if isinstance(domain, NormBall) else "uniform")
    # Building the mechanism may take long, so check the inputs first.
    check_inputs(population, domain, nonzero)
    with working(f"building {entry.name}"):
        task, mechanism = built(entry, values)
    asked = Guarantee(task.epsilon, task.adjacency, entry.trust_model, delta=task.delta) if entry.private else None
    shared = {name: values[name] for name in ("nonzero", "seed", "masked")}
    shared |= {"clients": task.clients, "asked": asked, "rounds": task.rounds}
    with progress_bar(f"simulating {entry.name}") as on_step:
        rounds = repeat_mean(mechanism, population, values["repetitions"], on_step=on_step, **shared)
    return Simulated(summarise_means(rounds), largest_bound(entry, task, mechanism), entry.populations, entry.on_real_numbers)


def _print(results: dict[str, Simulated]) -> None:
    if len(results) == 1:
        ((name, simulated),) = results.items()
        summary = simulated.summary
        coordinates = "1 coordinate" if summary.dimension == 1 else f"{summary.dimension} coordinates"
        grid(f"{name}: {summary.clients} clients, {coordinates}, {summary.population}", _rows(simulated))
        _warn(results)
        return
    from rich.table import Table

    table = Table(title="Squared error of the estimated mean")
    table.add_column("mechanism", no_wrap=True)
    for heading in (
        "trust model",
        "bits per client",
        "epsilon",
        "delta",
        "measured",
        "predicted",
        "answer zero",
        "central",
        "over central",
    ):
        table.add_column(heading, justify="right")
    for name, simulated in results.items():
        summary = simulated.summary
        numbers = (f"{summary.bits_per_client:g}", f"{summary.epsilon:g}", f"{summary.delta:g}", f"{summary.squared_error:.4g}")
        central = (or_none(summary.central_squared_error, 6), or_none(summary.ratio_to_central, 6))
        references = (f"{summary.predicted_squared_error:.4g}", f"{summary.zero_squared_error:.4g}", *central)
        table.add_row(name, summary.trust_model, *numbers, *references)
    console().print(table)
    first = next(iter(results.values())).summary
    console().print(f"Guarantees: {first.adjacency} adjacency. Vectors and numbers of {first.clients} clients.")
    _warn(results)


def _warn(results: dict[str, Simulated]) -> None:
    """Warn of guarantees on real numbers, and of mechanisms worse than answering zero."""
    from ..design.contracts.registry import REAL_NUMBERS

    if references := [name for name, simulated in results.items() if simulated.on_real_numbers]:
        console().print(f"{', '.join(references)}: {REAL_NUMBERS}.")
    worse = [name for name, simulated in results.items() if simulated.summary.squared_error > simulated.summary.zero_squared_error]
    if worse:
        warn(f"WARNING: answering zero, or the middle, is closer here than {', '.join(worse)}: more clients or epsilon are needed.")


def _rows(simulated: Simulated) -> list[tuple[str, str]]:
    summary = simulated.summary
    error = f"{summary.squared_error:.6g}" + ("" if summary.standard_error is None else f" (s.e. {summary.standard_error:.2g})")
    rows = [
        ("rounds", str(summary.repetitions)),
        ("squared error, measured", error),
        ("predicted for these inputs", f"{summary.predicted_squared_error:.6g}"),
        (
            "worst of the domain"
            if simulated.populations is None
            else f"of {' or '.join(simulated.populations)}, as the mechanism expects it",
            f"{summary.worst_squared_error:.6g}",
        ),
        ("proven least worst error", or_none(simulated.lower_bound, 6)),
        ("worst over proven least", or_none(simulated.ratio_to_bound, 6)),
        ("bias, at most", f"{summary.bias_bound:.3g}"),
        ("of answering zero, or the middle", f"{summary.zero_squared_error:.6g}"),
        ("trusted server, epsilon asked", or_none(summary.central_squared_error, 6)),
        ("measured over central", or_none(summary.ratio_to_central, 6)),
        ("inputs clipped", f"{100 * summary.clipped_share:.3g} %"),
        ("bits per client", f"{summary.bits_per_client:g}, {summary.bits_per_coordinate:.4g} a coordinate"),
    ]
    if summary.modulus is not None:
        rows += [
            ("modulus", str(summary.modulus)),
            ("wrapped coordinates, measured", f"{summary.wrapped_coordinates:g} of {summary.padded_dimension} a round"),
            ("expected at most", f"{summary.wrapped_coordinates_bound:.3g}"),
            ("probability that any wraps", f"at most {summary.wrap_probability:.3g}"),
        ]
    return [
        *rows,
        ("guarantee, realised", f"epsilon = {summary.epsilon:.6g}, delta = {summary.delta:g}"),
        ("adjacency", summary.adjacency),
        ("trust model", summary.trust_model),
    ]
