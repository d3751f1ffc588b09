"""`quietbits account cpsgd` and `quietbits calibrate cpsgd`."""

from typing import TYPE_CHECKING, Annotated

import typer

from .account import Json, Output, Rounds, parse_sampling, show_document
from .console import check_folders, console
from .secure_sum import Clients, Clip, NeededDelta, Population, SampleSize, SamplingProbability, TargetEpsilon

if TYPE_CHECKING:
    from ..analysis.accounting.cpsgd import CpsgdAccount

Dimension = Annotated[int, typer.Option(help="Number of coordinates, before padding.")]
Adjacency = Annotated[str, typer.Option(help="replace-one, or add-or-remove-one for half the distance.")]
Rotated = Annotated[bool, typer.Option("--rotated/--plain", help="Whether vectors are rotated before they are quantised.")]


def add_cpsgd_commands(account: typer.Typer, calibrate: typer.Typer) -> None:
    """Add the subcommands for cpSGD.

    Parameters
    ----------
    account, calibrate : typer.Typer
        The groups `quietbits account` and `quietbits calibrate`.
    """
    account.command("cpsgd")(account_cpsgd_command)
    calibrate.command("cpsgd")(calibrate_cpsgd_command)


def account_cpsgd_command(
    clients: Clients,
    dimension: Dimension,
    clip: Clip,
    levels: Annotated[int, typer.Option(help="Number of levels of a coordinate.")],
    trials: Annotated[int, typer.Option(help="Trials of each client's noise for each coordinate.")],
    delta: NeededDelta,
    probability: Annotated[float, typer.Option(help="Probability of success of a trial.")] = 0.5,
    rotated: Rotated = True,
    rounds: Rounds = 1,
    adjacency: Adjacency = "replace-one",
    sampling_probability: SamplingProbability = None,
    population: Population = None,
    sample_size: SampleSize = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Account for cpSGD: its published theorem and two closer accounts, bits and errors (`cpsgd_account`)."""
    from ..analysis.accounting.cpsgd import cpsgd_account
    from ..design.contracts.norm_ball import NormBall
    from ..design.secure_sum.cpsgd_parameters import CpsgdParameters

    check_folders(output)
    ball = NormBall(dimension, 2.0, clip)
    parameters = CpsgdParameters(ball, clients, levels, trials, delta, probability=probability, rotated=rotated, adjacency=adjacency)
    account = cpsgd_account(parameters, rounds, parse_sampling(sampling_probability, population, sample_size))
    show_document(account.document(), json, output)
    if not json:
        _print_account(account)


def calibrate_cpsgd_command(
    clients: Clients,
    dimension: Dimension,
    clip: Clip,
    epsilon: TargetEpsilon,
    delta: NeededDelta,
    bits: Annotated[int | None, typer.Option(help="Bits of a coordinate of the sum; as few as will do, if not given.")] = None,
    rotated: Rotated = True,
    method: Annotated[str, typer.Option(help="Which epsilon keeps the promise: theorem, rdp, gaussian, or the smallest.")] = "smallest",
    rounds: Rounds = 1,
    adjacency: Adjacency = "replace-one",
    json: Json = False,
    output: Output = None,
) -> None:
    """Find the levels and trials of cpSGD with the smallest predicted error for so many bits (`calibrate_cpsgd`)."""
    from ..analysis.calibration.cpsgd import calibrate_cpsgd

    check_folders(output)
    found = calibrate_cpsgd(clients, dimension, clip, bits, epsilon, delta, rounds, rotated=rotated, account=method, adjacency=adjacency)
    show_document(found.document(), json, output)
    if not json:
        _print_account(found.account, ("target epsilon", f"{epsilon:g}, by {method}"), ("bits of a coordinate", str(found.bits)))


def _print_account(account: "CpsgdAccount", *rows: tuple[str, str]) -> None:
    """Print an account as a table; privacy parameters are rounded upward."""
    from rich.table import Table

    from ..figures.drawing.directed_rounding import rounded_up

    padding = "" if account.padded_dimension == account.dimension else f", padded to {account.padded_dimension}"
    rounds = "1 round" if account.rounds == 1 else f"{account.rounds} rounds"
    grid = Table(title=account.mechanism, show_header=False)
    for name, value in (
        (
            "vectors",
            f"{account.dimension} coordinates{padding}, L2 norm up to {account.clip_norm:g}{', rotated' if account.rotated else ''}",
        ),
        *rows,
        ("guarantee", f"{account.adjacency} adjacency, {account.trust_model} trust model, delta {account.delta:g}, {rounds}"),
        ("sampling", account.sampling or "everyone's vector in every round"),
        ("epsilon by Theorem 1", account.epsilon_reason if account.epsilon is None else rounded_up(account.epsilon, 6)),
        ("epsilon by Rényi divergence", "none" if account.epsilon_rdp is None else rounded_up(account.epsilon_rdp, 6)),
        ("epsilon by Gaussian noise", "none" if account.epsilon_gaussian is None else rounded_up(account.epsilon_gaussian, 6)),
        ("log2 of the modulus", f"{account.bits_per_coordinate:.4f}; before aggregation {account.bits_before_aggregation:.4f}"),
        ("squared error of the mean", f"{account.squared_error:.6g}, of one round"),
        ("published bound on it", f"{account.squared_error_bound:.6g}"),
        ("bound on the bias", f"{account.bias_bound:.6g}"),
        (
            "of central Gaussian noise",
            "none" if account.squared_error_gaussian is None else f"{account.squared_error_gaussian:.6g}, same epsilon and delta",
        ),
    ):
        grid.add_row(name, value)
    console().print(grid, markup=False)
