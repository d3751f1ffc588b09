"""`quietbits account`: what privacy a mechanism leaves after so many rounds, for tables, pure mechanisms and noise."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .console import check_folders, console

if TYPE_CHECKING:
    from ..analysis.accounting.privacy_account import AccountedMechanism, PrivacyAccount
    from ..analysis.accounting.subsampling import Sampling
    from ..solvers.divergences.vector_composition import VectorBounds

account_app = typer.Typer(
    help="Compute the privacy that is left after so many rounds, with the assumptions it rests on.", no_args_is_help=True
)

TablePath = Annotated[Path, typer.Argument(metavar="TABLE", help="Lookup table, as JSON; it is verified first.")]
Delta = Annotated[float | None, typer.Option(help="Failure probability of epsilon, above 0 and below 1.")]
Rounds = Annotated[int, typer.Option(help="Rounds in which the same client takes part.")]
Order = Annotated[float | None, typer.Option(help="Rényi order above 1: show the divergence of one round there.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Plot = Annotated[Path | None, typer.Option(help="Draw epsilon against rounds here: .svg, .pdf or .png.")]
Output = Annotated[Path | None, typer.Option(help="Write the JSON object here.")]
PureEpsilon = Annotated[float, typer.Option(help="Pure privacy parameter of one round.")]
Adjacency = Annotated[str | None, typer.Option(help="replace-one or add-or-remove-one.")]
TrustModel = Annotated[str | None, typer.Option(help="local, secure-sum or central.")]
SamplingProbability = Annotated[float | None, typer.Option(help="Poisson sampling: probability with which a client takes part.")]
Population = Annotated[int | None, typer.Option(help="Sampling without replacement: number of clients there are.")]
SampleSize = Annotated[int | None, typer.Option(help="Sampling without replacement: number of clients in a round.")]


@account_app.command("vector")
def account_vector_command(
    table: TablePath,
    dimension: Annotated[int, typer.Option(help="Number of coordinates.")],
    norm: Annotated[str, typer.Option(help="p of the L_p norm, 1 or more, or inf.")],
    radius: Annotated[float, typer.Option(help="Largest L_p distance between two inputs, on the table's unit scale.")],
    order: Order = None,
    delta: Delta = None,
    rounds: Rounds = 1,
    json: Json = False,
    plot: Plot = None,
    output: Output = None,
) -> None:
    """Account for a vector whose coordinates go through the same table (`table_accounting`, `vector_bounds`)."""
    _account_table(table, dimension, parse_norm(norm), radius, order, delta, rounds, json, plot, output)


@account_app.command("table")
def account_table_command(
    table: TablePath,
    order: Order = None,
    delta: Delta = None,
    rounds: Rounds = 1,
    json: Json = False,
    plot: Plot = None,
    output: Output = None,
) -> None:
    """Account for one number that goes through a table (`table_accounting`)."""
    _account_table(table, 1, 1.0, 1.0, order, delta, rounds, json, plot, output)


def _account_table(
    path: Path,
    dimension: int,
    norm: float,
    radius: float,
    order: float | None,
    delta: float | None,
    rounds: int,
    json: bool,
    plot: Path | None,
    output: Path | None,
) -> None:
    import math

    from ..analysis.accounting.mechanism_accounting import table_accounting
    from ..design.tables.file import read_table
    from ..solvers.divergences.vector_composition import vector_bounds

    if order is None and delta is None:
        raise ValueError("order or delta must be given: --order for the divergence of one round, --delta for epsilon after all rounds")
    if order is not None and not order > 1:
        raise ValueError(f"order must be a number above 1, got {order!r}")
    check_files(plot, output)
    table = read_table(path)
    mechanism = table_accounting(table, dimension=dimension, norm=norm, radius=radius)
    bounds = None if order is None else vector_bounds(table.weights, order, dimension, norm, radius)
    account = mechanism.account(rounds, delta)
    _draw(mechanism, account, plot)
    document = {
        "rdp_order": order,
        "rdp_lp": None if bounds is None else bounds.linear_program,
        "rdp_greedy": None if bounds is None else bounds.greedy,
        "rdp_integer": None if bounds is None else bounds.integer,
        "dimension": dimension,
        "norm": "inf" if math.isinf(norm) else norm,
        "radius": radius,
    }
    show_document(account.document() | document, json, output)
    if not json:
        print_account(account, *_divergence_rows(order, bounds))


def _pure_command(name: str, label: str) -> Callable[..., None]:
    def command(
        epsilon: PureEpsilon,
        delta: Delta = None,
        rounds: Rounds = 1,
        sampling_probability: SamplingProbability = None,
        population: Population = None,
        sample_size: SampleSize = None,
        json: Json = False,
        plot: Plot = None,
        output: Output = None,
    ) -> None:
        from ..analysis.accounting.mechanism_accounting import pure_accounting

        sampling = parse_sampling(sampling_probability, population, sample_size)
        _account(pure_accounting(label, epsilon, sampling), rounds, delta, json, plot, output)

    command.__doc__ = f"Account for {label}, a local mechanism that is known by its pure epsilon (`pure_accounting`)."
    return account_app.command(name)(command)


for _name, _label in (("cldp", "CLDP"), ("sqkr", "SQKR"), ("privunit", "PrivUnit")):
    _pure_command(_name, _label)


@account_app.command("laplace")
def account_laplace_command(
    epsilon: PureEpsilon,
    delta: Delta = None,
    rounds: Rounds = 1,
    sampling_probability: SamplingProbability = None,
    population: Population = None,
    sample_size: SampleSize = None,
    json: Json = False,
    plot: Plot = None,
    output: Output = None,
) -> None:
    """Account for Laplace noise, its scale the L1 sensitivity over epsilon (`laplace_accounting`)."""
    from ..analysis.accounting.mechanism_accounting import laplace_accounting

    sampling = parse_sampling(sampling_probability, population, sample_size)
    _account(laplace_accounting(epsilon, sampling), rounds, delta, json, plot, output)


@account_app.command("gaussian")
def account_gaussian_command(
    noise_multiplier: Annotated[float, typer.Option(help="Standard deviation over the L2 sensitivity for the adjacency.")],
    delta: Delta = None,
    rounds: Rounds = 1,
    adjacency: Adjacency = None,
    trust_model: TrustModel = None,
    sampling_probability: SamplingProbability = None,
    population: Population = None,
    sample_size: SampleSize = None,
    json: Json = False,
    plot: Plot = None,
    output: Output = None,
) -> None:
    """Account for Gaussian noise, also with sampled clients (`gaussian_accounting`)."""
    from ..analysis.accounting.mechanism_accounting import gaussian_accounting

    sampling = parse_sampling(sampling_probability, population, sample_size)
    mechanism = gaussian_accounting(noise_multiplier, adjacency=adjacency, trust_model=trust_model, sampling=sampling)
    _account(mechanism, rounds, delta, json, plot, output)


@account_app.command("skellam")
def account_skellam_command(
    variance: Annotated[float, typer.Option(help="Variance of a coordinate's noise, in squared steps.")],
    l1: Annotated[float, typer.Option(help="L1 sensitivity, in steps.")],
    l2: Annotated[float, typer.Option(help="L2 sensitivity, in steps.")],
    delta: Delta = None,
    rounds: Rounds = 1,
    trust_model: Annotated[str, typer.Option(help="local, secure-sum or central.")] = "local",
    json: Json = False,
    plot: Plot = None,
    output: Output = None,
) -> None:
    """Account for Skellam noise on whole numbers (`skellam_accounting`)."""
    from ..analysis.accounting.mechanism_accounting import skellam_accounting

    _account(skellam_accounting(variance, l1, l2, trust_model=trust_model), rounds, delta, json, plot, output)


def parse_norm(text: str) -> float:
    """Return p of an L_p norm as it was typed.

    Parameters
    ----------
    text : str
        A number of at least 1, or ``"inf"``.

    Returns
    -------
    float
        The number.

    Raises
    ------
    ValueError
        If it is none.
    """
    from ..design.contracts.norm_ball import check_norm

    try:
        norm = float(text.removeprefix("l"))
    except ValueError:
        raise ValueError(f"norm must be a number of at least 1, or inf, got {text!r}") from None
    return check_norm(norm)


def parse_sampling(probability: float | None, population: int | None, sample_size: int | None) -> "Sampling | None":
    """Return how clients are chosen, from the options that were typed.

    Parameters
    ----------
    probability : float or None
        Of Poisson sampling.
    population, sample_size : int or None
        Of sampling without replacement; both or neither.

    Returns
    -------
    PoissonSampling, FixedSizeSampling or None
        The sampling; None if there are no options.

    Raises
    ------
    ValueError
        If options of both ways are there, or one of two that belong together, or a number is out of range.
    """
    from ..analysis.accounting.subsampling import FixedSizeSampling, PoissonSampling

    if probability is not None:
        if population is not None or sample_size is not None:
            raise ValueError("sampling_probability must stand without population and sample_size: it is another way of sampling")
        return PoissonSampling(probability)
    if population is None and sample_size is None:
        return None
    if population is None or sample_size is None:
        raise ValueError("population and sample_size must be given together: how many clients there are, and how many take part in a round")
    return FixedSizeSampling(population, sample_size)


def show_document(document: dict[str, str | float | bool | None], json: bool, output: Path | None) -> None:
    """Print a JSON object if it is asked for, and write it to a file if there is one.

    Parameters
    ----------
    document : dict
        The object; numbers that are infinite become null.
    json : bool
        Whether to print it.
    output : Path or None
        The file.
    """
    import math
    from json import dumps

    from ..files import write_atomically

    document = {name: None if isinstance(value, float) and math.isinf(value) else value for name, value in document.items()}
    if output is not None:
        write_atomically(output, (dumps(document, indent=2, allow_nan=False) + "\n").encode())
    if json:
        typer.echo(dumps(document, allow_nan=False))


def check_files(plot: Path | None, output: Path | None) -> None:
    """Check that all files can be written, before anything is computed.

    Parameters
    ----------
    plot, output : Path or None
        The files of `--plot` and `--output`; None is passed over.

    Raises
    ------
    FileNotFoundError
        If a file's folder is not there.
    ValueError
        If the plot's name does not end in one of the formats.
    """
    check_folders(plot, output)
    if plot is not None:
        from ..figures.accounts.account_plots import check_plot_file

        check_plot_file(plot)


def print_account(account: "PrivacyAccount", *rows: tuple[str, str]) -> None:
    """Print an account as a table, and a warning if the best Rényi order is at the edge of those that were tried.

    Parameters
    ----------
    account : PrivacyAccount
        The account.
    *rows : tuple of (str, str)
        What comes before it: names and values.
    """
    import math

    from rich.table import Table

    grid = Table(title=account.mechanism, show_header=False)
    for name, value in rows:
        grid.add_row(name, value)
    if account.delta is not None and account.order is not None:
        order = "the pure guarantee" if math.isinf(account.order) else f"order {account.order:g}"
        way = "privacy loss" if account.method == "pld" else "Rényi divergence"
        grid.add_row("epsilon", f"{_upward(account.epsilon)} at delta {account.delta:g}, {_rounds(account.rounds)}, by {way}")
        grid.add_row("by Rényi divergence", f"{_upward(account.epsilon_rdp)}, by {order}")
        grid.add_row("by privacy loss", _upward(account.epsilon_pld) if account.epsilon_pld is not None else "not computed")
    if account.pure_epsilon is not None:
        grid.add_row("pure epsilon", f"{_upward(account.pure_epsilon)} at delta 0, {_rounds(account.rounds)}")
    grid.add_row("sampling", account.sampling or "every client takes part in every round")
    grid.add_row("adjacency", account.adjacency)
    grid.add_row("trust model", account.trust_model)
    screen = console()
    screen.print(grid, markup=False)
    if account.order_at_edge:
        screen.print(f"WARNING: order {account.order:g} is at the edge of the orders tried; others might prove less.", style="yellow")


def _account(mechanism: "AccountedMechanism", rounds: int, delta: float | None, json: bool, plot: Path | None, output: Path | None) -> None:
    """Account for a mechanism other than a table."""
    check_files(plot, output)
    account = mechanism.account(rounds, delta)
    if account.epsilon is None and account.pure_epsilon is None:
        raise ValueError("delta must be given for a mechanism that has no pure guarantee: a number above 0 and below 1")
    _draw(mechanism, account, plot)
    show_document(account.document(), json, output)
    if not json:
        print_account(account)


def _draw(mechanism: "AccountedMechanism", account: "PrivacyAccount", plot: Path | None) -> None:
    """Write the plot, if there is to be one."""
    if plot is not None:
        from ..figures.accounts.account_plots import write_account_plot

        if account.delta is None:
            raise ValueError("delta must be given for a plot of epsilon: a number above 0 and below 1")
        write_account_plot(mechanism, account, plot)


def _divergence_rows(order: float | None, bounds: "VectorBounds | None") -> list[tuple[str, str]]:
    if order is None or bounds is None:
        return []
    named = (("linear relaxation", bounds.linear_program), ("greedy bound", bounds.greedy), ("integer optimum", bounds.integer))
    title = f"divergence of one round at order {order:g}"
    return [(f"{title}, {name}", "not computed" if value is None else _upward(value)) for name, value in named]


def _rounds(rounds: int) -> str:
    return "one round" if rounds == 1 else f"all {rounds} rounds together"


def _upward(value: float | None) -> str:
    from ..figures.drawing.directed_rounding import rounded_up

    return "none" if value is None else rounded_up(value, 6)
