"""`quietbits account` and `quietbits calibrate` for the noise of secure sums: binomial, Poisson-binomial, discrete Gaussian."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

from .account import Delta, Json, Order, Output, Plot, Rounds, check_files, parse_sampling, print_account, show_document
from .console import check_folders, console

Clients = Annotated[int, typer.Option(help="Number of clients whose messages are added up.")]
NoiseTrials = Annotated[int, typer.Option(help="Trials of a coordinate's noise, of all clients together.")]
ClientTrials = Annotated[int, typer.Option(help="Trials of each client for each coordinate.")]
Probability = Annotated[float, typer.Option(help="Probability of success of a trial.")]
Scale = Annotated[float, typer.Option(help="What one success adds; the vectors' coordinates are multiples of it.")]
Dimension = Annotated[int, typer.Option(help="Number of coordinates, after padding.")]
L1 = Annotated[float, typer.Option("--l1", help="L1 sensitivity, in the vectors' units.")]
L2 = Annotated[float, typer.Option("--l2", help="L2 sensitivity, in the vectors' units.")]
LInf = Annotated[float, typer.Option("--linf", help="L-infinity sensitivity, in the vectors' units.")]
NeededDelta = Annotated[float, typer.Option(help="Failure probability of all rounds together, above 0 and below 1.")]
TargetEpsilon = Annotated[float, typer.Option(help="Privacy parameter after all rounds.")]
Clip = Annotated[float, typer.Option(help="L2 norm that vectors are clipped to.")]
SensitivityAdjacency = Annotated[str, typer.Option(help="Neighbours that the sensitivities are for: replace-one or add-or-remove-one.")]
SamplingProbability = Annotated[
    float | None, typer.Option(help="Poisson sampling in secret: probability with which a client's vector is in the sum.")
]
Population = Annotated[int | None, typer.Option(help="Sampling in secret without replacement: number of clients, all of which send.")]
SampleSize = Annotated[int | None, typer.Option(help="Sampling in secret without replacement: number of vectors in the sum.")]
ClientAdjacency = Annotated[
    str | None, typer.Option(help="add-or-remove-one, or replace-one for twice the sensitivity; by default what the sampling asks for.")
]


# What a table calls the accounts of binomial noise; `epsilon` alone would not tell that it is the published theorem's.
BINOMIAL_ACCOUNTS = {
    "epsilon": "epsilon by Theorem 1",
    "epsilon_reason": "no epsilon by Theorem 1",
    "epsilon_doubtful": "Theorem 1 is doubtful",
    "epsilon_exact": "epsilon, exact",
    "epsilon_exact_reason": "no exact epsilon",
    "epsilon_rdp": "epsilon by Rényi divergence",
    "order": "Rényi order",
    "epsilon_gaussian": "epsilon by Gaussian noise",
}


def add_secure_sum_commands(account: typer.Typer, calibrate: typer.Typer) -> None:
    """Add the subcommands for the noise of secure sums.

    Parameters
    ----------
    account, calibrate : typer.Typer
        The groups `quietbits account` and `quietbits calibrate`.
    """
    account.command("binomial")(account_binomial_command)
    account.command("poisson-binomial")(account_poisson_binomial_command)
    account.command("distributed-discrete-gaussian")(account_discrete_gaussian_command)
    calibrate.command("binomial")(calibrate_binomial_command)
    calibrate.command("poisson-binomial")(calibrate_poisson_binomial_command)
    calibrate.command("distributed-discrete-gaussian")(calibrate_discrete_gaussian_command)


def account_binomial_command(
    trials: NoiseTrials,
    probability: Probability,
    scale: Scale,
    dimension: Annotated[int, typer.Option(help="Number of coordinates.")],
    l1: L1,
    l2: L2,
    linf: LInf,
    delta: NeededDelta,
    rounds: Rounds = 1,
    adjacency: SensitivityAdjacency = "replace-one",
    sampling_probability: SamplingProbability = None,
    population: Population = None,
    sample_size: SampleSize = None,
    json: Json = False,
    plot: Plot = None,
    output: Output = None,
) -> None:
    """Account for binomial noise in a secure sum: Theorem 1 of cpSGD, Rényi divergences, and exactly (`binomial_account`)."""
    from ..analysis.accounting.binomial import BinomialAccount, binomial_account

    check_files(plot, output)
    sampling = parse_sampling(sampling_probability, population, sample_size)

    def account_of(rounds: int) -> BinomialAccount:
        return binomial_account(trials, probability, scale, dimension, l1, l2, linf, delta, rounds, adjacency, sampling)

    account = account_of(rounds)
    if plot is not None:
        from ..figures.accounts.binomial_account_plot import write_binomial_plot

        write_binomial_plot(account_of, account, plot)
    _show(account.document(), json, output, BINOMIAL_ACCOUNTS)


def calibrate_binomial_command(
    epsilon: TargetEpsilon,
    delta: NeededDelta,
    probability: Probability,
    scale: Scale,
    dimension: Annotated[int, typer.Option(help="Number of coordinates.")],
    l1: L1,
    l2: L2,
    linf: LInf,
    rounds: Rounds = 1,
    method: Annotated[str, typer.Option(help="Which epsilon: theorem, exact, rdp, gaussian, or smallest.")] = "smallest",
    adjacency: SensitivityAdjacency = "replace-one",
    sampling_probability: SamplingProbability = None,
    population: Population = None,
    sample_size: SampleSize = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Find the fewest trials of binomial noise (`calibrate_binomial`)."""
    from ..analysis.calibration.binomial import calibrate_binomial

    check_folders(output)
    sampling = parse_sampling(sampling_probability, population, sample_size)
    found = calibrate_binomial(epsilon, delta, probability, scale, dimension, l1, l2, linf, rounds, adjacency, method, sampling)
    _show(found.document() | {"target_epsilon": epsilon, "method": method}, json, output, BINOMIAL_ACCOUNTS)


def account_poisson_binomial_command(
    clients: Clients,
    trials: ClientTrials,
    theta: Annotated[float, typer.Option(help="Largest distance of a trial's probability from 1/2.")],
    order: Order = None,
    delta: Delta = None,
    dimension: Annotated[int, typer.Option(help="Number of coordinates that a client sends.")] = 1,
    rounds: Rounds = 1,
    sampling_probability: SamplingProbability = None,
    population: Population = None,
    sample_size: SampleSize = None,
    json: Json = False,
    plot: Plot = None,
    output: Output = None,
) -> None:
    """Account for the Poisson-binomial mechanism, in the worst case over the other clients (`poisson_binomial_document`)."""
    from ..analysis.accounting.poisson_binomial import poisson_binomial_accounting, poisson_binomial_document

    check_files(plot, output)
    if plot is not None and delta is None:
        raise ValueError("delta must be given for a plot of epsilon: a number above 0 and below 1")
    sampling = parse_sampling(sampling_probability, population, sample_size)
    document = poisson_binomial_document(
        clients, trials, theta, order=order, dimension=dimension, delta=delta, rounds=rounds, sampling=sampling
    )
    if plot is not None:
        from ..figures.accounts.account_plots import write_account_plot

        mechanism = poisson_binomial_accounting(clients, trials, theta, dimension, sampling)
        write_account_plot(mechanism, mechanism.account(rounds, delta), plot)
    _show(document, json, output)


def calibrate_poisson_binomial_command(
    clients: Clients,
    trials: ClientTrials,
    epsilon: TargetEpsilon,
    delta: NeededDelta,
    dimension: Annotated[int, typer.Option(help="Number of coordinates that a client sends.")] = 1,
    rounds: Rounds = 1,
    sampling_probability: SamplingProbability = None,
    population: Population = None,
    sample_size: SampleSize = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Find the largest theta of the Poisson-binomial mechanism (`calibrate_poisson_binomial`)."""
    from ..analysis.accounting.poisson_binomial import calibrate_poisson_binomial

    check_folders(output)
    sampling = parse_sampling(sampling_probability, population, sample_size)
    _show(calibrate_poisson_binomial(clients, trials, epsilon, delta, dimension, rounds, sampling).document(), json, output)


def account_discrete_gaussian_command(
    clients: Clients,
    dimension: Dimension,
    clip: Clip,
    local_sigma: Annotated[float, typer.Option(help="Parameter of each client's noise, in the vectors' units.")],
    granularity: Annotated[float, typer.Option(help="What a whole number stands for, in the vectors' units.")],
    delta: NeededDelta,
    rounds: Rounds = 1,
    adjacency: ClientAdjacency = None,
    sampling_probability: SamplingProbability = None,
    population: Population = None,
    sample_size: SampleSize = None,
    json: Json = False,
    plot: Plot = None,
    output: Output = None,
) -> None:
    """Account for the distributed discrete Gaussian mechanism (`discrete_gaussian_accounting`)."""
    from ..analysis.accounting.discrete_gaussian import discrete_gaussian_accounting, discrete_gaussian_details

    check_files(plot, output)
    sampling = parse_sampling(sampling_probability, population, sample_size)
    mechanism = discrete_gaussian_accounting(clients, dimension, clip, local_sigma, granularity, adjacency=adjacency, sampling=sampling)
    account = mechanism.account(rounds, delta)
    if plot is not None:
        from ..figures.accounts.account_plots import write_account_plot

        write_account_plot(mechanism, account, plot)
    details = discrete_gaussian_details(clients, dimension, clip, local_sigma, granularity)
    show_document(account.document() | details, json, output)
    if not json:
        print_account(account, *document_rows(details))


def calibrate_discrete_gaussian_command(
    clients: Clients,
    dimension: Dimension,
    clip: Clip,
    bits: Annotated[int, typer.Option(help="Bits of a coordinate: sums are taken modulo 2**bits.")],
    epsilon: TargetEpsilon,
    delta: NeededDelta,
    rounds: Rounds = 1,
    deviations: Annotated[float, typer.Option(help="Standard deviations of a coordinate of the sum in half the modulus.")] = 4.0,
    adjacency: ClientAdjacency = None,
    sampling_probability: SamplingProbability = None,
    population: Population = None,
    sample_size: SampleSize = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Find noise and granularity of the distributed discrete Gaussian mechanism for so many bits (`calibrate_discrete_gaussian`)."""
    from ..analysis.accounting.discrete_gaussian import calibrate_discrete_gaussian, discrete_gaussian_details

    check_folders(output)
    found = calibrate_discrete_gaussian(
        clients,
        dimension,
        clip,
        bits,
        epsilon,
        delta,
        rounds,
        deviations=deviations,
        adjacency=adjacency,
        sampling=parse_sampling(sampling_probability, population, sample_size),
    )
    details = discrete_gaussian_details(clients, dimension, clip, **dict(found.parameters)) | {"bits": bits, "deviations": deviations}
    show_document(found.document() | details, json, output)
    if not json:
        print_account(found.account, *document_rows(details), ("target epsilon", f"{epsilon:g}"))


def _show(
    document: dict[str, str | float | bool | None], json: bool, output: Path | None, labels: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Print a document as JSON, or as a table of what is not null, and write it to a file if there is one."""
    from rich.table import Table

    show_document(document, json, output)
    if json:
        return
    grid = Table(title=str(document["mechanism"]), show_header=False)
    for name, value in document_rows(document, labels):
        grid.add_row(name, value)
    console().print(grid, markup=False)


def document_rows(
    document: dict[str, str | float | bool | None], labels: Mapping[str, str] = MappingProxyType({})
) -> list[tuple[str, str]]:
    """Return what is not null as a table shows it; privacy parameters are rounded upward.

    Parameters
    ----------
    document : dict
        What JSON holds, by name.
    labels : mapping of str to str
        What to call a name; by default the name itself, with spaces.

    Returns
    -------
    list of tuple of str
        Labels and texts.
    """
    from ..figures.drawing.directed_rounding import rounded_up

    rows = []
    for name, value in document.items():
        if value is None or name == "mechanism":
            continue
        private = name.startswith(("epsilon", "pure", "rdp")) and isinstance(value, float)
        text = rounded_up(value, 6) if private and isinstance(value, float) else f"{value:.9g}" if isinstance(value, float) else str(value)
        rows.append((labels.get(name, name.replace("_", " ")), text))
    return rows
