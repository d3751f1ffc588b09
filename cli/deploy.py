"""`quietbits deploy`, `encode` and `decode`: clients in other languages, and the server of their messages."""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..files import check_folder, shown_path
from .commands import complain
from .console import check_outputs, grid, progress_bar, say, show_document, typed_command, warn, working
from .options import (
    REQUIRED,
    Dask,
    Epsilon,
    Json,
    Megabytes,
    Output,
    Rounds,
    Workers,
    adjacency_of,
    bytes_of,
    complete_column,
    given,
    registry_group,
    with_options,
)
from .task import Delta, title_of

if TYPE_CHECKING:
    from ..design.deployment.decoder import DecodedEstimate
    from ..design.deployment.deployment import Deployment

Folder = Annotated[Path, typer.Option("--output", help="Folder of the deployment; made if it is not there.")]
Language = Annotated[str, typer.Option(help="Languages of the clients, joined by commas.")]
Name = Annotated[str | None, typer.Option(help="Name in source code; by default the mechanism's and the start of the hash.")]
ValidUntil = Annotated[str | None, typer.Option(metavar="DAY", help="Last day on which clients should send, such as 2027-12-31.")]
Supersedes = Annotated[str | None, typer.Option(help="Hash or folder of the deployment that this one replaces.")]
Deployed = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the deployment.")]
RoundNumber = Annotated[int, typer.Option("--round", help="Number of the round, from 0.")]
TABLE_SUFFIX = ".json"
DEPLOYED: dict[str, tuple[Any, Any]] = {
    "output": (Folder, REQUIRED),
    "language": (Language, "c"),
    "name": (Name, None),
    "valid_until": (ValidUntil, None),
    "supersedes": (Supersedes, None),
    "json": (Json, False),
}


def _is_table(name: str) -> bool:
    return name.endswith(TABLE_SUFFIX)


def _names() -> list[str]:
    from ..analysis.catalogue.registry import REGISTRY

    return [name for name, entry in REGISTRY.items() if entry.private]


def _has(name: str) -> bool:
    return _is_table(name) or name in _names()


def _title(name: str) -> str:
    return "A lookup table, from its file" if _is_table(name) else title_of(name)


def _subcommand(name: str) -> Any:
    return _table_command(name) if _is_table(name) else _mechanism_command(name)


def _mechanism_command(name: str) -> Any:
    from ..analysis.catalogue.accounts import plans_dropouts
    from ..analysis.catalogue.registry import REGISTRY
    from .account import Dropout

    entry = REGISTRY[name]
    options = entry.calibration_options

    def run(**values: Any) -> None:
        from ..analysis.deployed_clients.deploy import deploy

        _write(
            lambda: deploy(
                name,
                epsilon=values["epsilon"],
                delta=values["delta"],
                rounds=values["rounds"],
                adjacency=values["adjacency"],
                dropout=values.get("dropout", 0.0),
                **_labels(values),
                **given(options, values),
            ),
            values,
        )

    budget: dict[str, tuple[Any, Any]] = {"epsilon": (Epsilon, REQUIRED), "delta": (Delta, 0.0), "rounds": (Rounds, 1)}
    if plans_dropouts(name):
        budget["dropout"] = (Dropout, 0.0)
    fixed = {**budget, "adjacency": (adjacency_of(entry.adjacencies), None), **DEPLOYED}
    return with_options(run, options, fixed, f"Write the clients of {name} that keep a budget (`quietbits.deploy`).")


def _table_command(name: str) -> Any:
    def run(**values: Any) -> None:
        from ..analysis.deployed_clients.deploy import deploy_table

        _write(lambda: deploy_table(name, rounds=values["rounds"], **_labels(values)), values)

    return with_options(run, (), {"rounds": (Rounds, 1), **DEPLOYED}, "Write the clients of a lookup table (`quietbits.deploy_table`).")


def _labels(values: dict[str, Any]) -> dict[str, Any]:
    from ..design.deployment.folder import load_deployment

    supersedes = values["supersedes"]
    if supersedes is not None and Path(supersedes).is_dir():
        supersedes = load_deployment(supersedes).hash
    return {"name": values["name"], "valid_until": values["valid_until"], "supersedes": supersedes}


def _write(make: Any, values: dict[str, Any]) -> None:
    from ..arguments import check_choice
    from ..design.deployment.folder import LANGUAGES, write_deployment
    from ..progress import reporting

    check_folder(values["output"])
    languages = [check_choice("language", language.strip(), LANGUAGES) for language in values["language"].split(",")]
    with progress_bar("deploying") as on_step, reporting(on_step):
        deployment = make()
        files = write_deployment(deployment, values["output"], languages)
    if values["json"]:
        show_document({"folder": str(values["output"]), "name": deployment.full_name, **deployment.document()}, True, None)
    else:
        print_deployment(deployment, f"written to {shown_path(values['output'])}, {len(files)} files")


deploy_app = typer.Typer(
    cls=registry_group(_names, _subcommand, _title, _has),
    help="Write a folder with a mechanism's clients in other languages; NAME is a mechanism, or a table's file (`quietbits.deploy`).",
    no_args_is_help=True,
)


@deploy_app.callback()
def _deploy_group() -> None:
    """Write a folder with a mechanism's clients in other languages; NAME is a mechanism, or a table's file."""


def _realised(deployment: "Deployment") -> str:
    realised = deployment.program.realised_epsilon
    if realised is not None:
        return repr(realised)
    secure_sum = deployment.mechanism.guarantee.trust_model == "secure-sum"
    return "none: only the sum of all messages is private" if secure_sum else "that of the table"


def print_deployment(deployment: "Deployment", title: str) -> None:
    """Print a deployment as a table."""
    from ..shown import counted

    program = deployment.program
    grid(
        f"{deployment.full_name}: {title}",
        (
            ("mechanism", deployment.mechanism_name),
            ("guarantee", deployment.privacy_words),
            ("realised epsilon of a message", _realised(deployment)),
            (
                "message",
                f"{counted(program.fields, 'field')} of {counted(program.field_bits, 'bit')}, {counted(program.message_bytes, 'byte')}",
            ),
            ("client's index", "stands beside each message" if deployment.carries_index else "is not sent"),
            ("valid until", deployment.valid_until or "no end is stated"),
            ("hash", deployment.hash),
        ),
    )


def verify_deployed(folder: Path, json: bool) -> None:
    """Verify a deployment's folder, and print what was compared; exit code 1 if anything differs."""
    from ..design.deployment.folder import verify_deployment
    from ..errors import DataError
    from ..progress import reporting

    try:
        with progress_bar(f"verifying {shown_path(folder)}") as on_step, reporting(on_step):
            verification = verify_deployment(folder)
    except DataError as error:
        if json:
            show_document({"folder": shown_path(folder), "verified": False, "detail": str(error)}, True, None)
        else:
            complain(str(error))
        raise typer.Exit(1) from None
    deployment = verification.deployment
    if json:
        compared = {"compared": list(verification.files), "not_compared": list(verification.uncompared)}
        show_document({"folder": shown_path(folder), "verified": True, "sha256": deployment.hash, **compared}, True, None)
        return
    print_deployment(deployment, f"verified, {len(verification.files)} files")
    if verification.uncompared:
        warn(f"Source code by quietbits {deployment.version} was not compared: {', '.join(verification.uncompared)}.")


def encode_command(
    folder: Deployed,
    data: Annotated[Path, typer.Option(help="File of the clients' inputs: csv, parquet or npy; an npy array for vectors.")],
    output: Annotated[
        Path, typer.Option(help="File of messages: .parquet, or records after a header. Of a secure sum: npy file of the modular sum.")
    ],
    column: Annotated[str | None, typer.Option(help="Column of the inputs.", autocompletion=complete_column)] = None,
    domain: Annotated[Path | None, typer.Option(help="txt file with the public list of items, for a column of texts.")] = None,
    round_number: RoundNumber = 0,
    first_client: Annotated[int, typer.Option(help="Index of the first client, for deployments with public words.")] = 0,
    most_megabytes: Megabytes = None,
) -> None:
    """Encode the inputs of a file as a deployment's clients do, with secure randomness (`encode_inputs`).

    This is the reference client. It releases messages: encode the same inputs once for each round.
    """
    from ..analysis.deployed_clients.encode_data import encode_inputs, read_inputs
    from ..analysis.study.column_file import MOST_BYTES
    from ..design.deployment.folder import load_deployment
    from ..design.deployment.message_files import write_messages, write_sum
    from ..design.deployment.secure_sums import sum_of_messages

    check_outputs(output, inputs=[data, domain])
    deployment = load_deployment(folder)
    deployment.check_round(round_number)
    if deployment.is_expired(date.today()):
        complain(f"WARNING: the deployment was valid until {deployment.valid_until}: clients should send no more messages of it")
    with working(f"reading {shown_path(data)}"):
        inputs = read_inputs(deployment, data, column, domain, bytes_of(most_megabytes, MOST_BYTES))
    with progress_bar("encoding") as on_step:
        chunks = encode_inputs(deployment, inputs, round_number, first_client, on_step=on_step)
        if deployment.mechanism.guarantee.trust_model == "secure-sum":
            write_sum(output, sum_of_messages(deployment, (messages for messages, _ in chunks)))
            say(f"Sum of {len(inputs)} messages: {shown_path(output)}")
            return
        count = write_messages(deployment, output, chunks, round_number)
    say(f"Messages: {shown_path(output)}, {count} of round {round_number}")


def decode_command(
    folder: Deployed,
    messages: Annotated[list[Path], typer.Argument(help="Files of messages, or folders of them; the npy file of a secure sum.")],
    round_number: RoundNumber = 0,
    id_column: Annotated[
        str | None, typer.Option(help="Column that names the client, of which only the first message counts; for parquet and Arrow.")
    ] = None,
    clients: Annotated[int | None, typer.Option(help="Number of clients in a secure sum.")] = None,
    workers: Workers = 1,
    dask: Dask = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report here.")] = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Estimate from the messages of a deployment's clients (`decode_messages`).

    Messages with a fault are refused by row, counted by the reason, and never change the estimate.
    """
    from ..analysis.deployed_clients.decode_messages import decode_messages
    from ..design.deployment.folder import load_deployment

    check_outputs(report, output, inputs=messages)
    deployment = load_deployment(folder)
    deployment.check_round(round_number)
    with progress_bar("decoding") as on_step:
        estimate = decode_messages(deployment, messages, round_number, id_column, clients, workers, dask, on_step=on_step)
    if report is not None:
        from ..figures.report.deployment_report import write_deployment_report

        write_deployment_report(deployment, estimate, report, command=typed_command())
    show_document(estimate.document(), json, output)
    if not json:
        _print_estimate(deployment, estimate)
        if report is not None:
            say(f"Report: {shown_path(report)}")


def _print_estimate(deployment: "Deployment", estimate: "DecodedEstimate") -> None:
    refused = [(f"refused: {reason}", str(count)) for reason, count in estimate.refused.items()]
    grid(
        f"Estimate from {deployment.full_name}, round {estimate.round_number}",
        (
            *estimate.lines(),
            ("accepted messages", str(estimate.accepted)),
            *(refused or [("refused messages", "0")]),
            ("guarantee of each client", estimate.guarantee),
            ("left of the clients' budget", f"{estimate.rounds_left} rounds, epsilon {estimate.epsilon_left:.6g}"),
        ),
    )
