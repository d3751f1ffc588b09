"""`quietbits simulate` and `quietbits audit`: a secure sum's mechanism by name, run on synthetic vectors, or against its own promise."""

from typing import TYPE_CHECKING, Annotated

import typer

from .account import Json, Output, show_document
from .console import check_folders, console

if TYPE_CHECKING:
    from ..design.contracts.mechanism import SecureSumMechanism

Mechanism = Annotated[str, typer.Argument(help="distributed-discrete-gaussian, distributed-skellam, cpsgd or poisson-binomial.")]
Clients = Annotated[int, typer.Option(help="Number of clients in the sum.")]
Dimension = Annotated[int, typer.Option(help="Number of coordinates of a vector.")]
Clip = Annotated[float, typer.Option(help="L2 norm that vectors are clipped to.")]
Bits = Annotated[int, typer.Option(help="Bits per coordinate of a message.")]
Epsilon = Annotated[float, typer.Option(help="Privacy parameter of one sum.")]
Delta = Annotated[float, typer.Option(help="Failure probability of epsilon, above 0 and below 1.")]
Adjacency = Annotated[str | None, typer.Option(help="replace-one or add-or-remove-one, where the mechanism offers both.")]
RotationSeed = Annotated[int, typer.Option(help="Public seed of the random rotation.")]
Seed = Annotated[int, typer.Option(help="Root seed of everything else that is random.")]


def simulate_command(
    mechanism: Mechanism,
    clients: Clients,
    dimension: Dimension,
    bits: Bits,
    epsilon: Epsilon,
    delta: Delta,
    clip: Clip = 1.0,
    population: Annotated[
        str, typer.Option(help="uniform-l1, positive-sphere, sphere, uniform-cube or sparse; scaled by clip.")
    ] = "sphere",
    repetitions: Annotated[int, typer.Option(help="Number of rounds.")] = 1,
    masked: Annotated[
        bool, typer.Option("--masked", help="Send messages through masks; the result is the same, and takes longer.")
    ] = False,
    adjacency: Adjacency = None,
    rotation_seed: RotationSeed = 0,
    seed: Seed = 0,
    json: Json = False,
    output: Output = None,
) -> None:
    """Simulate rounds of a secure sum on synthetic vectors, with its error and its wrapping measured (`repeat_secure_sum`)."""
    from ..analysis.simulation.secure_sum import repeat_secure_sum
    from ..analysis.simulation.secure_sum_summary import summarise_secure_sum

    check_folders(output)
    protocol = _build(mechanism, clients, dimension, clip, bits, epsilon, delta, adjacency, rotation_seed)
    summary = summarise_secure_sum(repeat_secure_sum(protocol, population, repetitions, seed=seed, masked=masked))
    show_document(dict(mechanism=mechanism, **summary.document()), json, output)
    if json:
        return
    error = f"{summary.squared_error:.6g}" + ("" if summary.standard_error is None else f" (s.e. {summary.standard_error:.2g})")
    central = summary.central_gaussian_squared_error
    rounds = "one round" if repetitions == 1 else f"{repetitions} rounds"
    _show(
        f"{mechanism}: {_size(clients, dimension)}, {population}, {rounds}",
        ("squared error, measured", error),
        ("predicted for these vectors", f"{summary.predicted_squared_error:.6g}"),
        ("worst over the ball", f"{summary.worst_squared_error:.6g}"),
        ("central Gaussian noise", "none" if central is None else f"{central:.6g}"),
        ("measured over central", "none" if summary.ratio_to_central is None else f"{summary.ratio_to_central:.4g}"),
        ("vectors clipped", f"{100 * summary.clipped_share:.3g} %"),
        ("wrapped coordinates, measured", f"{summary.wrapped_coordinates:g} of {summary.padded_dimension} a round"),
        ("expected at most", f"{summary.wrapped_coordinates_bound:.3g}"),
        ("probability that any wraps", f"at most {summary.wrap_probability:.3g}"),
        ("bits per coordinate", f"{summary.bits_per_coordinate:g}, modulus {summary.modulus}"),
        ("bits per client", f"{summary.bits_per_client:g}"),
        ("guarantee", str(protocol.guarantee)),
    )


def audit_command(
    mechanism: Mechanism,
    bits: Bits,
    epsilon: Epsilon,
    delta: Annotated[float, typer.Option(help="Failure probability of epsilon. An audit needs many times 1/delta repetitions.")],
    clients: Clients = 2,
    dimension: Dimension = 1,
    clip: Clip = 1.0,
    repetitions: Annotated[int, typer.Option(help="Rounds with each of two neighbouring populations.")] = 1_000_000,
    others: Annotated[str, typer.Option(help="Vectors of the other clients: zero, or same as the first one's.")] = "zero",
    confidence: Annotated[float, typer.Option(help="Probability with which the bound holds.")] = 0.999,
    adjacency: Adjacency = None,
    rotation_seed: RotationSeed = 0,
    seed: Seed = 0,
    json: Json = False,
    output: Output = None,
) -> None:
    """Run a secure sum's mechanism on neighbours, and bound its epsilon from below; exit code 1 if that refutes it (`audit_secure_sum`)."""
    from dataclasses import asdict

    from ..analysis.audits.secure_sum_audit import audit_secure_sum
    from ..analysis.random_streams import named_stream

    check_folders(output)
    protocol = _build(mechanism, clients, dimension, clip, bits, epsilon, delta, adjacency, rotation_seed)
    promise = protocol.guarantee
    result = audit_secure_sum(protocol, repetitions, named_stream(seed, "audit"), others=others, confidence=confidence)
    refuted = result.refutes(promise.epsilon)
    document: dict[str, str | float | bool | None] = {
        "mechanism": mechanism,
        "clients": clients,
        "dimension": dimension,
        "bits": bits,
        "others": others,
        "seed": seed,
        "claimed_epsilon": promise.epsilon,
        "adjacency": promise.adjacency,
        "trust_model": promise.trust_model,
        "refuted": refuted,
    }
    document |= asdict(result)
    show_document(document, json, output)
    if not json:
        _show(
            f"Audit of {mechanism}: {_size(clients, dimension)}",
            ("promise", str(promise)),
            ("epsilon is at least", f"{result.epsilon_lower_bound:.4g}, with confidence {confidence:g}"),
            ("refuted", "yes" if refuted else "no"),
            ("event", f"{result.event.replace('threshold', f'{result.threshold:.6g}')}, likelier for the {result.likelier} population"),
            ("counted", f"{result.likely_count} beside {result.unlikely_count} in {result.draws} draws each"),
        )
    if refuted:
        raise typer.Exit(1)


def _build(
    mechanism: str,
    clients: int,
    dimension: int,
    clip: float,
    bits: int,
    epsilon: float,
    delta: float,
    adjacency: str | None,
    rotation_seed: int,
) -> "SecureSumMechanism":
    from ..analysis.catalogue.secure_sum_mechanisms import build_secure_sum_mechanism
    from ..design.contracts.norm_ball import NormBall

    ball = NormBall(dimension, 2.0, clip)
    return build_secure_sum_mechanism(mechanism, ball, clients, bits, epsilon, delta, adjacency=adjacency, rotation_seed=rotation_seed)


def _size(clients: int, dimension: int) -> str:
    return f"{clients} client{'' if clients == 1 else 's'}, {dimension} coordinate{'' if dimension == 1 else 's'}"


def _show(title: str, *rows: tuple[str, str]) -> None:
    from rich.table import Table

    grid = Table(title=title, show_header=False)
    for name, value in rows:
        grid.add_row(name, value)
    console().print(grid, markup=False)
