"""`quietbits calibrate`: the parameter with which all rounds of a mechanism together stay within (epsilon, delta)."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .account import (
    Adjacency,
    Json,
    Output,
    Population,
    Rounds,
    SampleSize,
    SamplingProbability,
    TrustModel,
    parse_norm,
    parse_sampling,
    print_account,
    show_document,
)
from .console import check_folders

if TYPE_CHECKING:
    from ..analysis.calibration.privacy_calibration import Calibration

calibrate_app = typer.Typer(
    help="Find the parameter with which all rounds together stay within (epsilon, delta), on the safe side.", no_args_is_help=True
)

TargetEpsilon = Annotated[float, typer.Option(help="Privacy parameter after all rounds.")]
TargetDelta = Annotated[float, typer.Option(help="Failure probability of epsilon, above 0 and below 1.")]
Dimension = Annotated[int, typer.Option(help="Number of coordinates.")]
ClipNorm = Annotated[float, typer.Option("--clip", help="Norm that vectors are clipped to.")]


@calibrate_app.command("gaussian")
def calibrate_gaussian_command(
    epsilon: TargetEpsilon,
    delta: TargetDelta,
    rounds: Rounds = 1,
    adjacency: Adjacency = None,
    trust_model: TrustModel = None,
    sampling_probability: SamplingProbability = None,
    population: Population = None,
    sample_size: SampleSize = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Find the smallest noise multiplier of Gaussian noise, also with sampled clients (`calibrate_gaussian`)."""
    from ..analysis.calibration.privacy_calibration import calibrate_gaussian

    check_folders(output)
    sampling = parse_sampling(sampling_probability, population, sample_size)
    found = calibrate_gaussian(epsilon, delta, rounds, adjacency=adjacency, trust_model=trust_model, sampling=sampling)
    _show(found, json, output)


def _pure_command(name: str, label: str) -> Callable[..., None]:
    def command(
        epsilon: TargetEpsilon,
        delta: TargetDelta,
        rounds: Rounds = 1,
        sampling_probability: SamplingProbability = None,
        population: Population = None,
        sample_size: SampleSize = None,
        json: Json = False,
        output: Output = None,
    ) -> None:
        from ..analysis.calibration.privacy_calibration import calibrate_pure

        check_folders(output)
        sampling = parse_sampling(sampling_probability, population, sample_size)
        _show(calibrate_pure(label, epsilon, delta, rounds, sampling=sampling), json, output)

    command.__doc__ = f"Find the largest epsilon of one round of {label} (`calibrate_pure`)."
    return calibrate_app.command(name)(command)


for _name, _label in (("cldp", "CLDP"), ("sqkr", "SQKR"), ("privunit", "PrivUnit")):
    _pure_command(_name, _label)


@calibrate_app.command("laplace")
def calibrate_laplace_command(
    epsilon: TargetEpsilon,
    delta: TargetDelta,
    rounds: Rounds = 1,
    sampling_probability: SamplingProbability = None,
    population: Population = None,
    sample_size: SampleSize = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Find the largest epsilon of one round of Laplace noise (`calibrate_laplace`)."""
    from ..analysis.calibration.privacy_calibration import calibrate_laplace

    check_folders(output)
    sampling = parse_sampling(sampling_probability, population, sample_size)
    _show(calibrate_laplace(epsilon, delta, rounds, sampling=sampling), json, output)


@calibrate_app.command("skellam")
def calibrate_skellam_command(
    epsilon: TargetEpsilon,
    delta: TargetDelta,
    dimension: Dimension,
    bits: Annotated[int, typer.Option(help="Bits per coordinate.")] = 16,
    clip_norm: ClipNorm = 1.0,
    rounds: Rounds = 1,
    json: Json = False,
    output: Output = None,
) -> None:
    """Find granularity and variance of Skellam noise for an L2 ball (`calibrate_skellam`)."""
    from ..analysis.calibration.privacy_calibration import calibrate_skellam
    from ..design.contracts.norm_ball import NormBall

    check_folders(output)
    _, found = calibrate_skellam(epsilon, delta, NormBall(dimension, 2.0, clip_norm), bits, rounds)
    _show(found, json, output)


@calibrate_app.command("vector")
def calibrate_vector_command(
    epsilon: TargetEpsilon,
    delta: TargetDelta,
    dimension: Dimension,
    norm: Annotated[str, typer.Option(help="p of the L_p norm, 1 or more, or inf.")],
    bits_in: Annotated[int, typer.Option(help="Bits of the grid that coordinates are dithered to, 1 to 9.")],
    bits_out: Annotated[int, typer.Option(help="Bits of a coordinate's message, 1 to 9.")],
    metric: Annotated[str | None, typer.Option(help="l1, l2 or l<p>: the table's metric.")] = None,
    dithering: Annotated[str, typer.Option(help="systematic or rejection.")] = "systematic",
    clip_norm: ClipNorm = 1.0,
    rounds: Rounds = 1,
    seed: Annotated[int, typer.Option(help="Root seed of the solver.")] = 0,
    json: Json = False,
    output: Annotated[Path | None, typer.Option(help="Write the table here, as JSON.")] = None,
) -> None:
    """Design a table with which the coordinates of a vector are private together (`calibrate_vector`)."""
    from ..analysis.calibration.privacy_calibration import calibrate_vector
    from ..design.contracts.norm_ball import NormBall
    from ..design.tables.file import write_table

    check_folders(output)
    mechanism, found = calibrate_vector(
        epsilon,
        delta,
        NormBall(dimension, parse_norm(norm), clip_norm),
        bits_in,
        bits_out,
        metric,
        dithering=dithering,
        rounds=rounds,
        seed=seed,
    )
    if output is not None:
        write_table(mechanism.table, output)
    _show(found, json, None)


def _show(found: "Calibration", json: bool, output: Path | None) -> None:
    show_document(found.document(), json, output)
    if not json:
        parameters = ((name.replace("_", " "), f"{value!r}") for name, value in found.parameters)
        print_account(found.account, *parameters, ("target epsilon", f"{found.target_epsilon:g}"))
