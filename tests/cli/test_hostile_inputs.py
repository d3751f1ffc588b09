"""Tests of hostile inputs.

Points under test: one line on stderr, exit code 2 (1 from `verify`), no traceback, no warning of a library.
"""

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.analysis.simulation import repeated_means
from quietbits.design.contracts.domains import Interval
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.tables.file import table_document, write_table
from quietbits.design.tables.randomised_response import generalised_randomised_response

Fault, Run = Callable[..., str], Callable[..., Result]
SIMULATED = ("--clients", 3, "--epsilon", 1, "--delta", 1e-5)


def npy(shape: str, content: bytes = b"\0" * 80) -> bytes:
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + (len(head) + 1).to_bytes(2, "little") + head + b"\n" + content


def npz() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, values=np.arange(3.0))
    return buffer.getvalue()


ARRAYS = {
    "vast": npy("(1000000000000000,)"),
    "overflowing": npy("(4611686018427387904, 16)"),
    "negative": npy("(-5,)"),
    "cut-short": npy("(10,)")[:20],
    "zip": b"PK\x03\x04 no archive",
    "renamed-npz": npz(),
    "empty": b"",
}


@pytest.mark.parametrize("content", ARRAYS.values(), ids=ARRAYS)
def test_an_array_that_is_none_is_a_line(content: bytes, folder: Path, fault: Fault) -> None:
    (folder / "data.npy").write_bytes(content)
    assert fault("estimate", "mean", "--data", "data.npy", "--epsilon", 1, "--interval", 0, 1).startswith("data.npy: the file ")


@pytest.mark.parametrize(
    "typed",
    [
        ("export", "bad.json", "--format", "npz", "--output", "t.npz"),
        ("account", "table", "bad.json", "--delta", 1e-5),
        ("audit", "table", "bad.json"),
    ],
)
def test_a_damaged_table_is_named(typed: tuple[object, ...], folder: Path, fault: Fault) -> None:
    (folder / "bad.json").write_text("{")
    assert fault(*typed).startswith("bad.json: refused: json: the file is not JSON: ")


@pytest.mark.parametrize("typed", [("mean", "--interval", 0, 1), ("frequencies", "--mechanism", "unary-encoding")], ids=["mean", "items"])
def test_text_of_another_encoding_is_named(typed: tuple[object, ...], folder: Path, fault: Fault) -> None:
    for content, message in ((b"\xff\xfe\n1\n", "the file is UTF-16 or UTF-32"), (b"\xff\n1\n", "the header is not UTF-8 text")):
        (folder / "data.csv").write_bytes(content)
        assert fault("estimate", *typed, "--data", "data.csv", "--column", "x", "--epsilon", 1).startswith(f"data.csv: {message}")


def test_data_beyond_the_cap_is_not_read(folder: Path, fault: Fault) -> None:
    np.save(folder / "data.npy", np.zeros(200_000))
    typed = ("estimate", "mean", "--data", "data.npy", "--epsilon", 1, "--interval", 0, 1, "--most-megabytes", 1)
    assert fault(*typed) == "data.npy: the file has 1.60013 megabytes, 1 are allowed"
    (folder / "items.txt").write_text("x\n" * 600_000)
    typed = ("estimate", "frequencies", "--data", "items.txt", "--mechanism", "hadamard-response", "--most-megabytes", 1)
    assert fault(*typed) == "items.txt: the file has 1.2 megabytes, 1 are allowed"


def test_a_sweep_that_nests_deeply_or_is_long_is_a_line(folder: Path, fault: Fault) -> None:
    spec = folder / "sweep.toml"
    spec.write_text("x = " + "[" * 5000 + "]" * 5000)
    assert fault("sweep", spec, "--output", "out").endswith("sweep.toml: the file nests too deep")
    spec.write_text("#" * 2_000_000)
    assert fault("sweep", spec, "--output", "out").endswith("the file has more than the 1 megabytes that are allowed")


@pytest.mark.parametrize("name", [name for name, entry in REGISTRY.items() if NormBall in entry.domains])
def test_a_vector_of_a_thousand_million_coordinates_is_refused_before_anything_is_built(name: str, fault: Fault) -> None:
    needed = [text for option in REGISTRY[name].options if option.required for text in (f"--{option.name.replace('_', '-')}", 1)]
    assert "dimension must be " in fault("simulate", name, "--dimension", 10**9, *SIMULATED, *needed)


def test_items_and_plans_have_the_same_limit(fault: Fault) -> None:
    assert fault("simulate", "hadamard-response", "--categories", 10**9, *SIMULATED).startswith("categories must be at most 16777216 ")
    planned = fault("plan", "--dimension", 10**9, "--adjacency", "replace-one", *SIMULATED)
    assert planned == "dimension must be at most 16777216 where inputs are drawn, got 1000000000"
    assert "dimension must be at most " in fault("audit", "laplace", "--dimension", 10**9, "--epsilon", 1, "--repetitions", 1000)


@pytest.mark.parametrize("name", [name for name, entry in REGISTRY.items() if Interval in entry.domains])
@pytest.mark.parametrize("ends", [(0, 1e155), (-1e308, 1e308), (0, 1e-200)])
def test_an_interval_whose_squares_are_no_numbers_is_refused(name: str, ends: tuple[float, float], fault: Fault) -> None:
    low, high = (float(end) for end in ends)
    message = fault("simulate", name, "--interval", ends[0], ends[1], *SIMULATED)
    assert message == f"interval must have ends from -1e+100 to 1e+100, at least 1e-100 apart, got ({low}, {high})"


def test_memory_that_is_not_there_is_a_line(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 1 TiB")

    monkeypatch.setattr(repeated_means, "repeat_mean", exhausted)
    assert fault("simulate", "laplace", *SIMULATED) == "there is not enough memory for inputs of this size: Unable to allocate 1 TiB"


@pytest.mark.filterwarnings("error")
def test_verify_refuses_in_one_line_what_overflows(folder: Path, run: Run) -> None:
    document = table_document(generalised_randomised_response(1.0, 1))
    for key, value in (("epsilon", 10**400), ("interval", [0, 1e155]), ("interval", [0, 10**400])):
        (folder / "table.json").write_text(json.dumps({**document, key: value}))
        result = run("verify", "table.json")
        assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1), result.output
        assert result.stderr.startswith("quietbits: table.json: refused: ")


# Tests of outputs


@pytest.fixture
def table(folder: Path) -> Path:
    path = folder / "table.json"
    write_table(generalised_randomised_response(1.0, 1), path)
    return path


@pytest.mark.parametrize("kind", ["parquet", "csv", "npz"])
def test_a_dash_writes_the_file_alone_to_standard_output(kind: str, table: Path, run: Run) -> None:
    beside = table.with_name("exported")
    assert run("export", table, "--format", kind, "--output", beside).exit_code == 0
    result = run("export", table, "--format", kind, "--output", "-")
    assert (result.exit_code, result.stderr) == (0, "")
    if kind == "npz":
        assert result.stdout_bytes[:4] == beside.read_bytes()[:4] == b"PK\x03\x04"
    else:
        assert result.stdout_bytes == beside.read_bytes()
    assert sorted(path.name for path in table.parent.iterdir()) == ["exported", "table.json"]


@pytest.mark.parametrize(
    "typed",
    [
        ("account", "gaussian", "--noise-multiplier", 1, "--delta", 1e-5),
        ("calibrate", "gaussian", "--epsilon", 1, "--delta", 1e-5),
        ("simulate", "laplace", *SIMULATED),
        ("audit", "laplace", "--epsilon", 1, "--repetitions", 1000),
        ("design", "mvu", "--epsilon", 2, "--bits-in", 1, "--bits-out", 1),
    ],
    ids=lambda typed: typed[0],
)
def test_what_people_read_makes_way_for_a_document_on_standard_output(typed: tuple[object, ...], run: Run) -> None:
    result = run(*typed, "--output", "-")
    assert result.exit_code == 0, result.output
    assert isinstance(json.loads(result.stdout), dict)
    assert "┌" in result.stderr
    # The next command prints normally.
    assert "┌" in run(*typed).stdout


@pytest.mark.parametrize(
    "typed", [("export", "table.json", "--format", "csv"), ("account", "gaussian", "--noise-multiplier", 1, "--delta", 0.1)]
)
def test_a_folder_is_refused_as_an_output(typed: tuple[object, ...], table: Path, fault: Fault) -> None:
    assert fault(*typed, "--output", ".") == ".: this is a folder: name a file"
    assert fault(*typed, "--output", "none/file") == "none: there is no such folder"
    assert [path.name for path in table.parent.iterdir()] == ["table.json"]
