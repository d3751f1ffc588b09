import json
import struct
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from quietbits.design.tables.export import EXPORTS, export_table, tidy_frame
from quietbits.design.tables.file import table_document
from quietbits.design.tables.lookup_table import LookupTable
from quietbits.design.tables.randomised_response import bitwise_randomised_response, generalised_randomised_response
from quietbits.errors import TableError

# The C program reads records of (value, dither word, table word), and writes records of (letter, decoded value).
DRIVER = r"""
#include <stdio.h>
#include "table.h"

int main(void)
{
    struct { double value; uint64_t dither_word, table_word; } in;
    struct { double decoded; uint64_t letter; } out;
    double looked_at = 0;
    while (fread(&in, sizeof in, 1, stdin) == 1) {
        out.letter = qb_encode(in.value, in.dither_word, in.table_word);
        out.decoded = qb_decode((uint32_t)out.letter);
        /* As often as time allows: it looks at the whole table. */
        looked_at += (double)QB_ROWS * QB_LETTERS;
        if (looked_at < 5e7 && qb_encode_constant_time(in.value, in.dither_word, in.table_word) != out.letter)
            return 2;
        if (fwrite(&out, sizeof out, 1, stdout) != 1)
            return 1;
    }
    printf("%s %.17g %s %s %s %d %d", QB_MECHANISM, QB_EPSILON, QB_ADJACENCY, QB_TRUST_MODEL, QB_SHA256, QB_BITS_IN, QB_BITS_OUT);
    return 0;
}
"""

CASES = {
    "one-bit": generalised_randomised_response(1.0, 1, interval=(-1.0, 1.0)),
    "generalised": generalised_randomised_response(0.5, 3, interval=(-0.1, 123.456)),
    "bitwise": bitwise_randomised_response(5.0, 5, interval=(1e-3, 1e-2)),
    "large": generalised_randomised_response(20.0, 9),
}


def draws(table: LookupTable, count: int) -> np.ndarray:
    """Return values on, off and outside the grid, each with two random words."""
    rng = np.random.default_rng(0)
    low, high = table.interval
    rows = len(table.weights)
    records = np.empty(count, dtype=[("value", "f8"), ("dither", "u8"), ("table", "u8")])
    on_grid = low + (high - low) * rng.integers(0, rows, count) / (rows - 1)
    off_grid = rng.uniform(low - 0.1 * (high - low), high + 0.1 * (high - low), count)
    records["value"] = np.where(rng.random(count) < 0.5, on_grid, off_grid)
    records["value"][:6] = [low, high, np.nextafter(low, high), np.nextafter(high, low), -1e308, 1e308]
    for name in ("dither", "table"):
        records[name] = rng.integers(0, 2**64, count, dtype=np.uint64)
    records["dither"][:4], records["table"][:4] = [0, 2**64 - 1, 0, 2**64 - 1], [2**64 - 1, 0, 0, 2**64 - 1]
    return records


# Compiling the large table takes most of a second at any optimisation. Only one table is compiled without optimisation, since the tables
# differ only in size.
@pytest.mark.parametrize(
    ("case", "optimised"), [("one-bit", False), ("one-bit", True), ("generalised", True), ("bitwise", True), ("large", True)]
)
def test_the_c_header_draws_as_python_does(case: str, optimised: bool, tmp_path: Path) -> None:
    table, flags = CASES[case], ["-O3", "-march=native", "-ffp-contract=fast"] if optimised else ["-O0"]
    export_table(table, tmp_path / "table.h", "c")
    (tmp_path / "driver.c").write_text(DRIVER)
    command = ["cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", *flags, "driver.c", "-o", "driver"]
    subprocess.run(command, cwd=tmp_path, check=True)
    records = draws(table, 30_000)
    output = subprocess.run([tmp_path / "driver"], input=records.tobytes(), capture_output=True, check=True).stdout
    size = 16 * len(records)
    result = np.frombuffer(output[:size], dtype=[("decoded", "f8"), ("letter", "u8")])
    letters = table.letters_from_words(records["value"], records["dither"], records["table"])
    assert (result["letter"] == letters).all()
    assert result["decoded"].tobytes() == table.decode(letters).tobytes()
    sha256 = table_document(table)["sha256"]
    bits = f"{table.bits_in} {table.bits_out}"
    assert output[size:].decode() == f"{table.mechanism} {table.epsilon:.17g} replace-one local {sha256} {bits}"


def test_the_c_header_takes_no_number_for_the_lower_end(tmp_path: Path) -> None:
    export_table(CASES["one-bit"], tmp_path / "table.h", "c")
    # C requires a line break at the end of a file.
    assert (tmp_path / "table.h").read_text().endswith("\n")
    (tmp_path / "driver.c").write_text(DRIVER)
    subprocess.run(["cc", "-std=c99", "driver.c", "-o", "driver"], cwd=tmp_path, check=True)
    words = (2**40, 2**62)
    records = b"".join(struct.pack("=dQQ", value, *words) for value in (float("nan"), -1.0))
    output = subprocess.run([tmp_path / "driver"], input=records, capture_output=True, check=True).stdout
    assert output[:16] == output[16:32]


def test_npz_holds_the_exact_table(tmp_path: Path) -> None:
    table = CASES["generalised"]
    export_table(table, tmp_path / "table.npz", "npz")
    with np.load(tmp_path / "table.npz", allow_pickle=False) as archive:
        assert (archive["weights"] == table.weights).all()
        assert archive["alphabet"].tolist() == table_document(table)["alphabet"]
        assert (archive["letters"] == table.letters).all()
        assert (int(archive["total"]), float(archive["epsilon"])) == (table.total, table.epsilon)
        assert archive["interval"].tolist() == list(table.interval)
        assert json.loads(str(archive["document"]))["sha256"] == table_document(table)["sha256"]


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_tidy_exports_hold_the_exact_table(file_format: str, tmp_path: Path) -> None:
    table = CASES["generalised"]
    path = tmp_path / f"table.{file_format}"
    export_table(table, path, file_format)
    expected = tidy_frame(table)
    # The frame is read as text and converted: older readers of csv round floats in the last place.
    frame = pd.read_csv(path, dtype=str).astype(expected.dtypes) if file_format == "csv" else pd.read_parquet(path)
    pd.testing.assert_frame_equal(frame, expected, check_exact=True)
    assert frame["weight"].tolist() == table.weights.ravel().tolist()
    assert frame["alphabet"].tolist() == table_document(table)["alphabet"] * 8
    assert frame["row"].tolist() == np.repeat(np.arange(8), 8).tolist()
    assert frame["letter"].tolist() == np.tile(np.arange(8), 8).tolist()
    assert frame["decoded"].tolist() == np.tile(table.letters, 8).tolist()
    assert frame["input"].iloc[[0, -1]].tolist() == pytest.approx(list(table.interval))
    assert (frame["weight"] / frame["total"]).tolist() == frame["probability"].tolist()
    if file_format == "parquet":
        document = json.loads(pq.read_metadata(path).metadata[b"quietbits-table"])
        assert document["certificate"]["realised_epsilon"] == table.certificate.realised_epsilon


@pytest.mark.parametrize("file_format", EXPORTS)
def test_a_table_that_does_not_verify_is_not_exported(file_format: str, tmp_path: Path) -> None:
    table = CASES["one-bit"]
    wrong = np.array(table.weights)
    wrong[0] += [1, -1]
    fields = {name: getattr(table, name) for name in table.__dataclass_fields__}
    with pytest.raises(TableError, match=r"realised-epsilon|certified-bias"):
        export_table(LookupTable(**{**fields, "weights": wrong}), tmp_path / "table", file_format)
    assert list(tmp_path.iterdir()) == []


def test_unknown_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="file_format must be one of c, npz, csv, parquet, got 'xlsx'"):
        export_table(CASES["one-bit"], tmp_path / "table.xlsx", "xlsx")
