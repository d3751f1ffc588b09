"""Folders of deployments: written whole, with the clients' code and known answers, and verified from the files alone."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ...arguments import check_choice
from ...errors import DataError, TableError
from ...files import decode_text, read_limited, shown_path, write_atomically
from ...version import __version__
from ..tables.file import MOST_BYTES, read_table, table_document
from .deployment import TABLE_FILE, Deployment, deployment_of
from .known_answers import known_answers
from .translation.c_client import c_client, template
from .translation.client_description import ClientDescription
from .translation.java_client import java_client
from .translation.rust_client import rust_client
from .translation.typescript_client import typescript_client

DEPLOYMENT_FILE, VECTORS_FILE, README_FILE = "deployment.json", "vectors.json", "README.md"
LANGUAGES: Mapping[str, Callable[[ClientDescription], dict[str, str]]] = MappingProxyType(
    {"c": c_client, "typescript": typescript_client, "rust": rust_client, "java": java_client}
)
# Paths that a build of a Rust client makes in its folder.
BUILT = ("rust/Cargo.lock", "rust/target/")


@dataclass(frozen=True)
class Verification:
    """Result of `verify_deployment`.

    Attributes
    ----------
    deployment : Deployment
        The deployment.
    files : tuple of str
        Paths of the files whose bytes were recomputed, in the folder.
    uncompared : tuple of str
        Paths of source code by another version of quietbits, which was not compared.
    """

    deployment: Deployment
    files: tuple[str, ...]
    uncompared: tuple[str, ...]


def deployment_files(deployment: Deployment, languages: Sequence[str]) -> dict[str, bytes]:
    """Return the files of a deployment's folder, by path, for clients of some languages."""
    for language in languages:
        check_choice("language", language, LANGUAGES)
    files = {DEPLOYMENT_FILE: _json(deployment.document())}
    if deployment.table is not None:
        files[TABLE_FILE] = _json(table_document(deployment.table))
    files[VECTORS_FILE] = known_answers(deployment)
    return files | _code(deployment, languages)


def _code(deployment: Deployment, languages: Sequence[str]) -> dict[str, bytes]:
    description = deployment.description()
    sources = {language: LANGUAGES[language](description) for language in languages}
    files = {f"{language}/{path}": text.encode("ascii") for language, paths in sources.items() for path, text in paths.items()}
    readme = template("README.md.jinja").render(
        **description.facts(),
        identifier=deployment.identifier,
        languages=languages,
        rounds=deployment.rounds,
        valid_until=deployment.valid_until,
        supersedes=deployment.supersedes,
        table=deployment.table is not None,
        bits_per_client=f"{deployment.mechanism.bits_per_client:g}",
    )
    return {README_FILE: readme.encode("ascii"), **files}


def write_deployment(deployment: Deployment, folder: str | os.PathLike[str], languages: Sequence[str] = tuple(LANGUAGES)) -> list[Path]:
    """Write a deployment's folder, which must not have another deployment.

    The same deployment and languages give the same bytes.

    Parameters
    ----------
    deployment : Deployment
        The deployment.
    folder : path
        The folder, which is made if it is missing.
    languages : sequence of str
        Languages of the clients.

    Returns
    -------
    list of Path
        Paths of the files.

    Raises
    ------
    DataError
        If the folder has files of something else; nothing is written then.
    """
    folder = Path(folder)
    files = deployment_files(deployment, languages)
    if folder.exists():
        stated = folder / DEPLOYMENT_FILE
        if not folder.is_dir() or (any(folder.iterdir()) and not (stated.is_file() and stated.read_bytes() == files[DEPLOYMENT_FILE])):
            raise DataError(f"output must be a new or empty folder, or one of this very deployment, got {shown_path(folder)}")
    # The deployment's own file comes last: a folder with it is complete.
    for path in sorted(files, key=lambda path: path == DEPLOYMENT_FILE):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / path, files[path])
    return [folder / path for path in files]


def load_deployment(folder: str | os.PathLike[str]) -> Deployment:
    """Return the deployment of a folder, recomputed from its parameters and its table.

    Raises
    ------
    DataError
        If a file is missing or was changed, so that it differs from what the parameters give.
    """
    folder = Path(folder)
    path = folder / DEPLOYMENT_FILE
    document = _read_json(path)
    table = None
    try:
        if (folder / TABLE_FILE).exists():
            table = read_table(folder / TABLE_FILE)
        return deployment_of(document, table)
    except TableError as error:
        raise DataError(str(error)) from None
    except (ValueError, DataError) as error:
        raise DataError(f"{shown_path(path)}: {error}") from None


def verify_deployment(folder: str | os.PathLike[str]) -> Verification:
    """Recompute a deployment's folder without a solver: parameters, guarantee, constants, known answers and source code.

    Source code by another version of quietbits is not compared, as its text may differ; its known answers are. What a build of a Rust
    client leaves in its folder is ignored.

    Raises
    ------
    DataError
        For the first file that is missing or differs.
    """
    folder = Path(folder)
    deployment = load_deployment(folder)
    languages = [language for language in LANGUAGES if (folder / language).is_dir()]
    expected = deployment_files(deployment, languages)
    other_version = deployment.version != __version__
    every = (str(path.relative_to(folder).as_posix()) for path in folder.rglob("*") if path.is_file())
    present = sorted(path for path in every if not path.startswith(BUILT))
    uncompared = []
    for path in sorted({*expected, *present}):
        code = path not in (DEPLOYMENT_FILE, TABLE_FILE, VECTORS_FILE)
        if code and other_version:
            uncompared.append(path)
        elif path not in expected:
            raise DataError(f"{shown_path(folder / path)}: the folder must hold the deployment's files only")
        elif path not in present:
            raise DataError(f"{shown_path(folder / path)}: the file is missing")
        elif (folder / path).read_bytes() != expected[path]:
            raise DataError(f"{shown_path(folder / path)}: the file was changed: it differs from what the deployment's parameters give")
    return Verification(deployment, tuple(path for path in sorted(expected) if path not in uncompared), tuple(uncompared))


def _json(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, indent=1) + "\n").encode("ascii")


def _read_json(path: Path) -> Any:
    try:
        return json.loads(decode_text(read_limited(path, MOST_BYTES)))
    except RecursionError:
        raise DataError(f"{shown_path(path)}: the file nests deeper than any deployment") from None
    except ValueError as error:
        raise DataError(f"{shown_path(path)}: the file is not JSON: {str(error)[:200]}") from None
