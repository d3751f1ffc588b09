"""Estimates from files of messages of a deployment, on one machine or several."""

from collections.abc import Sequence
from pathlib import Path

from ...design.contracts.mechanism import SecureSumMechanism
from ...design.deployment.decoder import DecodedEstimate, Decoder
from ...design.deployment.deployment import Deployment
from ...design.deployment.message_files import ARROW_SUFFIXES, decode_file, read_sum
from ...design.deployment.secure_sums import decode_sum
from ...errors import DataError
from ...files import shown_path
from ...progress import OnStep, silent
from ..sweeps.run import check_workers
from ..sweeps.workers import WorkerLostError, open_workers

RECORD_SUFFIX = ".qbm"


def decode_messages(
    deployment: Deployment,
    paths: Sequence[Path],
    round_number: int = 0,
    id_column: str | None = None,
    clients: int | None = None,
    workers: int = 1,
    dask: str | None = None,
    on_step: OnStep = silent,
) -> DecodedEstimate:
    """Return the estimate from files of messages, or folders of such files.

    Parameters
    ----------
    deployment : Deployment
        The deployment.
    paths : sequence of Path
        Files, and folders whose files with the suffixes ``.qbm``, ``.parquet``, ``.arrow`` and ``.feather`` are read.
    round_number : int
        Number of the round.
    id_column : str or None
        Column that names the client of a row, for tables.
    clients : int or None
        Number of clients of a secure sum, whose single path is the npy file of the modular sum; None for messages.
    workers : int
        Number of processes that decode the files, each file by one of them. With several, or with Dask, clients that have sent to two files
        are an error; a single process refuses their later messages by row.
    dask : str or None
        Address of a Dask scheduler, whose workers decode the files instead; they must see the files under the same paths.
    on_step : callable
        Progress, in records of a file, or in files with several workers.

    Raises
    ------
    DataError
        If a file as a whole is no file of messages of this deployment and round, or no message is accepted.
    """
    if isinstance(deployment.mechanism, SecureSumMechanism):
        if clients is None or len(paths) != 1:
            raise ValueError(f"clients must be given with the file of the modular sum, got {clients} clients and {len(paths)} files")
        return decode_sum(deployment, read_sum(paths[0]), clients, round_number)
    if clients is not None:
        raise ValueError(f"clients must be left out for messages, which are counted, got {clients}")
    check_workers(workers, dask)
    decoder, files = deployment.decoder(round_number), message_paths(paths)
    if workers == 1 and dask is None:
        for path in files:
            decode_file(decoder, path, id_column, on_step)
        return decoder.estimate()
    with open_workers(workers, dask) as pool:
        calls = [pool.submit(_decoded, deployment, path.absolute(), round_number, id_column) for path in files]
        # In the order of the files, so that sums of floating-point numbers do not depend on which worker is first.
        for done, (path, call) in enumerate(zip(files, calls, strict=True)):
            on_step(done, len(files), f"decoding {path.name}")
            try:
                decoder.merge(pool.result(call))
            except WorkerLostError as error:
                raise DataError(f"{shown_path(path)}: the file must be decoded again: {error}") from None
        on_step(len(files), len(files), "decoding files")
    return decoder.estimate()


def _decoded(deployment: Deployment, path: Path, round_number: int, id_column: str | None) -> Decoder:
    return decode_file(deployment.decoder(round_number), path, id_column)


def message_paths(paths: Sequence[Path]) -> list[Path]:
    """Return files, and the files of messages of folders, each once."""
    files: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            inside = sorted(file for file in path.iterdir() if file.suffix in (RECORD_SUFFIX, *ARROW_SUFFIXES))
            if not inside:
                raise DataError(
                    f"{shown_path(path)}: the folder must have a file of messages, {RECORD_SUFFIX} or {', '.join(ARROW_SUFFIXES)}"
                )
            files |= dict.fromkeys(inside)
        else:
            files[path] = None
    return list(files)
