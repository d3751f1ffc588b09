import json
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

CASES = {
    "one-bit": generalised_randomised_response(1.0, 1, interval=(-1.0, 1.0)),
    "generalised": generalised_randomised_response(0.5, 3, interval=(-0.1, 123.456)),
    "bitwise": bitwise_randomised_response(5.0, 5, interval=(1e-3, 1e-2)),
    "large": generalised_randomised_response(20.0, 9),
}


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
    with pytest.raises(ValueError, match="file_format must be one of npz, csv, parquet, got 'xlsx'"):
        export_table(CASES["one-bit"], tmp_path / "table.xlsx", "xlsx")
