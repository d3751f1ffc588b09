"""`quietbits account` and `quietbits calibrate` for Skellam noise that clients of a secure sum share."""

from typing import Annotated

import typer

from .account import Json, Output, Plot, Rounds, check_files, parse_sampling, print_account, show_document
from .console import check_folders
from .secure_sum import (
    ClientAdjacency,
    Clients,
    Clip,
    Dimension,
    NeededDelta,
    Population,
    SampleSize,
    SamplingProbability,
    TargetEpsilon,
    document_rows,
)


def add_skellam_commands(account: typer.Typer, calibrate: typer.Typer) -> None:
    """Add the subcommands for shared Skellam noise.

    Parameters
    ----------
    account, calibrate : typer.Typer
        The groups `quietbits account` and `quietbits calibrate`.
    """
    account.command("distributed-skellam")(account_distributed_skellam_command)
    calibrate.command("distributed-skellam")(calibrate_distributed_skellam_command)


def account_distributed_skellam_command(
    clients: Clients,
    dimension: Dimension,
    clip: Clip,
    local_variance: Annotated[float, typer.Option(help="Variance of each client's noise on a coordinate, in the vectors' units squared.")],
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
    """Account for the distributed Skellam mechanism (`distributed_skellam_accounting`)."""
    from ..analysis.accounting.distributed_skellam import distributed_skellam_accounting, distributed_skellam_details

    check_files(plot, output)
    sampling = parse_sampling(sampling_probability, population, sample_size)
    accounted = distributed_skellam_accounting(
        clients, dimension, clip, local_variance, granularity, adjacency=adjacency, sampling=sampling
    )
    account = accounted.account(rounds, delta)
    if plot is not None:
        from ..figures.accounts.account_plots import write_account_plot

        write_account_plot(accounted, account, plot)
    details = distributed_skellam_details(clients, dimension, clip, local_variance, granularity)
    show_document(account.document() | details, json, output)
    if not json:
        print_account(account, *document_rows(details))


def calibrate_distributed_skellam_command(
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
    """Find noise and granularity of the distributed Skellam mechanism for so many bits (`calibrate_distributed_skellam`)."""
    from ..analysis.accounting.distributed_skellam import calibrate_distributed_skellam, distributed_skellam_details

    check_folders(output)
    found = calibrate_distributed_skellam(
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
    details = distributed_skellam_details(clients, dimension, clip, **dict(found.parameters)) | {"bits": bits, "deviations": deviations}
    show_document(found.document() | details, json, output)
    if not json:
        print_account(found.account, *document_rows(details), ("target epsilon", f"{epsilon:g}"))
