"""`quietbits account dp-rec` and `quietbits calibrate dp-rec`: relative entropy coding with sampled clients."""

from typing import TYPE_CHECKING, Annotated

import typer

from .account import Json, Output, show_document
from .console import check_folders, console

if TYPE_CHECKING:
    from ..analysis.accounting.dp_rec import DpRecAccount

Population = Annotated[int, typer.Option(help="Number of clients.")]
ClientsPerRound = Annotated[int, typer.Option(help="Number of clients of a round, drawn with replacement.")]
TrainingRounds = Annotated[int, typer.Option(help="Number of rounds.")]
Bits = Annotated[int, typer.Option(help="Bits of a message, all groups together.")]
Delta = Annotated[float, typer.Option(help="Failure probability of all rounds together, above 0 and below 1.")]
Variant = Annotated[
    str, typer.Option(help="published: the theorem as printed; conservative: with Hölder's inequality; any-bits: for any bits and groups.")
]


def add_dp_rec_commands(account: typer.Typer, calibrate: typer.Typer) -> None:
    """Add the subcommands for DP-REC.

    Parameters
    ----------
    account, calibrate : typer.Typer
        The groups `quietbits account` and `quietbits calibrate`.
    """
    account.command("dp-rec")(account_dp_rec_command)
    calibrate.command("dp-rec")(calibrate_dp_rec_command)


def account_dp_rec_command(
    clip_ratio: Annotated[float, typer.Option(help="Clip norm of an update over the standard deviation of the prior.")],
    population: Population,
    clients_per_round: ClientsPerRound,
    rounds: TrainingRounds,
    bits: Bits,
    delta: Delta,
    variant: Variant = "published",
    json: Json = False,
    output: Output = None,
) -> None:
    """Account for DP-REC, and say how many bits it needs (`dp_rec_account`)."""
    from ..analysis.accounting.dp_rec import dp_rec_account

    check_folders(output)
    account = dp_rec_account(clip_ratio, population, clients_per_round, rounds, bits, delta, variant)
    show_document(account.document(), json, output)
    if not json:
        _print(account)


def calibrate_dp_rec_command(
    epsilon: Annotated[float, typer.Option(help="Privacy parameter after all rounds.")],
    population: Population,
    clients_per_round: ClientsPerRound,
    rounds: TrainingRounds,
    bits: Bits,
    delta: Delta,
    variant: Variant = "published",
    json: Json = False,
    output: Output = None,
) -> None:
    """Find the largest clip ratio of DP-REC (`calibrate_dp_rec`)."""
    from ..analysis.accounting.dp_rec import calibrate_dp_rec

    check_folders(output)
    found = calibrate_dp_rec(epsilon, population, clients_per_round, rounds, bits, delta, variant)
    show_document(found.document(), json, output)
    if not json:
        _print(found.account, ("target epsilon", f"{epsilon:g}"))


def _print(account: "DpRecAccount", *rows: tuple[str, str]) -> None:
    """Print an account as a table, and a warning if the best Rényi order is at the edge of those that were tried."""
    from rich.table import Table

    from ..figures.drawing.directed_rounding import rounded_up

    grid = Table(title=account.mechanism, show_header=False)
    for name, value in (
        *rows,
        ("clip ratio", repr(account.clip_ratio)),
        ("epsilon", f"{rounded_up(account.epsilon, 6)} at delta {account.delta:g}, all {account.rounds} rounds together"),
        ("Rényi order", str(account.order)),
        ("bits", f"{account.bits}; epsilon is finite from {account.minimum_bits} on"),
        ("delta lost to few bits", rounded_up(account.lost_delta, 3)),
        ("sampling", account.sampling),
        ("adjacency", account.adjacency),
        ("trust model", account.trust_model),
        ("assumption", account.assumption),
    ):
        grid.add_row(name, value)
    screen = console()
    screen.print(grid, markup=False)
    if account.order_at_edge:
        screen.print(f"WARNING: order {account.order} is at the edge of the orders tried; others might prove less.", style="yellow")
