import copy
import dataclasses
import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietbits.design.tables.certificate import certified_table, with_lower_bound
from quietbits.design.tables.file import (
    FIRST_FORMAT,
    LETTERS_KEYS,
    checksum,
    read_table,
    read_table_and_format,
    table_document,
    verify_file,
    write_table,
)
from quietbits.design.tables.lookup_table import DualCertificate, LookupTable
from quietbits.design.tables.mvu import design_mvu
from quietbits.design.tables.provenance import record_provenance
from quietbits.design.tables.randomised_response import BITWISE, GENERALISED, bitwise_randomised_response, generalised_randomised_response
from quietbits.design.tables.verification import verify_table
from quietbits.errors import TableError

PRICE = 2 * math.e / (math.e - 1) ** 2


def certified() -> LookupTable:
    return with_lower_bound(generalised_randomised_response(1.0, 1), DualCertificate((0.0, 0.0), (-PRICE, PRICE), (0.5, 0.5)))


def prior_table() -> LookupTable:
    table = generalised_randomised_response(2.0, 1, interval=(-1.0, 3.5))
    return certified_table(
        mechanism="mvu",
        epsilon=2.5,
        metric="l1.5",
        alphabet=table.alphabet,
        total=table.total,
        weights=table.weights,
        interval=table.interval,
        objective="prior",
        prior=(0.25, 0.75),
        dual=DualCertificate((0.0, 0.0), (0.0, 0.0), (0.25, 0.75)),
        provenance=record_provenance("by hand", 7, 0.125),
    )


TABLES = [certified(), prior_table(), generalised_randomised_response(3.0, 3, interval=(-1.0, 1.0)), bitwise_randomised_response(0.5, 4)]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table.mechanism}-{table.bits_in}")
def test_what_is_written_is_read(table: LookupTable, tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    write_table(table, path)
    content = read_table(path)
    assert verify_file(path) == table.certificate
    for field in dataclasses.fields(LookupTable):
        if field.name != "weights":
            assert getattr(content, field.name) == getattr(table, field.name), field.name
    assert (content.weights == table.weights).all()
    assert list(tmp_path.iterdir()) == [path]


def test_the_bytes_say_nothing_of_the_time_it_took(tmp_path: Path) -> None:
    table = design_mvu(1.0, 2, 1)
    assert table.provenance.duration is not None
    slower = dataclasses.replace(table, provenance=dataclasses.replace(table.provenance, duration=table.provenance.duration + 10))
    for name, item in (("first", table), ("slower", slower), ("again", design_mvu(1.0, 2, 1))):
        write_table(item, tmp_path / name)
        assert (tmp_path / name).read_bytes() == (tmp_path / "first").read_bytes()
    assert read_table(tmp_path / "first").provenance.duration is None


def test_a_file_of_an_earlier_version_with_a_duration_still_verifies(tmp_path: Path) -> None:
    document = table_document(certified(), FIRST_FORMAT)
    document["provenance"]["duration"] = 0.25
    assert verify_file(written(tmp_path / "table.json", document, mend_checksum=True)) == certified().certificate
    # The checksum of older files covers the duration.
    document["provenance"]["duration"] = 0.5
    refused = written(tmp_path / "table.json", {**document, "sha256": checksum({**document, "provenance": {}})}, mend_checksum=False)
    assert refusal(refused).check == "checksum"


def test_the_keys_are_those_of_the_format() -> None:
    document = table_document(certified())
    required = ["format", "mechanism", "epsilon", "metric", "bits_in", "bits_out", "interval", "alphabet", "total", "weights", "prior"]
    assert sorted(document) == sorted([*required, "certificate", "adjacency", "trust_model", "provenance", "sha256"])
    assert sorted(document["certificate"]) == sorted(
        [
            *("realised_epsilon", "max_bias", "mean_variance", "worst_variance", "lower_bound", "optimality_gap", "objective", "dual"),
            *("letters_lower_bound", "letters_gap", "letters_proof"),
        ]
    )


def test_a_file_of_the_first_format_is_the_same_table(tmp_path: Path) -> None:
    """The first format has weights as numbers, and no bound for a number of letters, which reading computes."""
    document = table_document(certified(), FIRST_FORMAT)
    assert document["format"] == "quietbits-table/1"
    assert document["weights"] == certified().weights.tolist()
    assert not set(LETTERS_KEYS) & set(document["certificate"])
    path = written(tmp_path / "table.json", document, mend_checksum=True)
    content, table_format = read_table_and_format(path)
    assert table_format == FIRST_FORMAT
    assert table_document(content) == table_document(certified())
    for key in LETTERS_KEYS:
        changed = json.loads(json.dumps(document))
        changed["certificate"][key] = None
        assert refusal(written(path, changed, mend_checksum=True)).check == "schema"


def test_weights_are_strings_that_readers_with_doubles_keep() -> None:
    document = table_document(TABLES[2])
    assert [[int(weight) for weight in row] for row in document["weights"]] == TABLES[2].weights.tolist()
    assert all(isinstance(weight, str) for row in document["weights"] for weight in row)
    # Doubles cannot hold most of the weights.
    assert np.mean(TABLES[2].weights.astype(float).astype(object) == TABLES[2].weights.astype(object)) < 0.5


def refusal(path: Path) -> TableError:
    with pytest.raises(TableError) as caught:
        read_table(path)
    # The message is a printable line that names the file and the failed check, whatever the file contains.
    line = str(caught.value)
    assert line.startswith(f"{path}: refused: {caught.value.check}: ")
    assert line.isprintable()
    assert len(line) <= len(str(path)) + 350
    return caught.value


def written(path: Path, document: dict[str, Any], *, mend_checksum: bool) -> Path:
    path.write_text(json.dumps({**document, "sha256": checksum(document)} if mend_checksum else document), encoding="ascii")
    return path


Change = Callable[[dict[str, Any]], object]


def move_unit(document: dict[str, Any]) -> None:
    """Move one unit of 2**-62 within a row, which keeps privacy."""
    document["weights"][3][2] += 1
    document["weights"][3][3] -= 1


def spread(document: dict[str, Any], letter: int, row: int, weight: int) -> None:
    """Give a letter another weight in one row, and take the difference from the heaviest letter."""
    weights = document["weights"][row]
    heaviest = weights.index(max(weights))
    weights[heaviest] += weights[letter] - weight
    weights[letter] = weight


def sell_privacy(document: dict[str, Any]) -> None:
    for i, row in enumerate(document["weights"]):
        row[i] += 7 * 10**9
        for j in range(8):
            row[j] -= 10**9 if j != i else 0


def add_dust(document: dict[str, Any]) -> None:
    """Add a column of mass 1e-10 whose entries differ by a factor of 1000."""
    for i, row in enumerate(document["weights"]):
        dust = 461168601 if i % 2 else 461168
        row[max(i, 1)] += row[0] - dust
        row[0] = dust


def set_in(*keys: str, value: object) -> Change:
    def change(document: dict[str, Any]) -> None:
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = value

    return change


def scale_certificate(figure: str, factor: float) -> Change:
    return lambda document: document["certificate"].update({figure: document["certificate"][figure] * factor})


# Changes, each with the check that refuses the changed file with a corrected checksum.
TAMPERING: list[tuple[str, Change, str, str]] = [
    ("one-weight", lambda d: d["weights"][3].__setitem__(2, d["weights"][3][2] + 1), "row-sums", r"row 3 sums to \d+, \+1 from the total"),
    ("one-unit-moved", move_unit, "certified-bias", "the certificate says 0.0, the weights say"),
    ("sold-privacy", sell_privacy, "realised-epsilon", "above the declared 3.0"),
    ("dust", add_dust, "realised-epsilon", "the weights realise epsilon 6.9"),
    ("zero", lambda d: spread(d, 4, 2, 0), "zero-beside-nonzero", "letter 4 never occurs for row 2"),
    ("smaller-epsilon", set_in("epsilon", value=2.9), "realised-epsilon", "0.1 above the declared 2.9"),
    ("larger-epsilon", set_in("certificate", "realised_epsilon", value=2.0), "certified-epsilon", "the certificate says 2.0"),
    ("stated-bias", set_in("certificate", "max_bias", value=1e-9), "certified-bias", "off by 1e-09"),
    ("mean-variance", scale_certificate("mean_variance", 0.5), "certified-mean-variance", "off by -"),
    ("worst-variance", scale_certificate("worst_variance", 1 + 1e-15), "certified-worst-variance", "off by"),
    ("unsorted", lambda d: d["alphabet"].reverse(), "alphabet", "letter 0 exceeds letter 1 by"),
    ("distant-letter", lambda d: d["alphabet"].__setitem__(7, "9" * 400 + "/1"), "alphabet", "letters must be from"),
    ("total", set_in("total", value=2**62 - 2), "total", "power of two"),
    ("bits-in", set_in("bits_in", value=4), "shape", "must have 16 rows of 8, got shape"),
    ("few-letters", lambda d: d["alphabet"].pop(), "shape", "alphabet must have 8 letters, got 7"),
    ("ragged", lambda d: d["weights"][1].pop(), "shape", "rows of weights must have equal lengths, got from 7 to 8"),
    ("interval", set_in("interval", value=[1.0, 1.0]), "parameters", "interval must be two finite numbers"),
    ("vast-interval", set_in("interval", value=[0.0, 1e155]), "parameters", "interval must have ends from -1e"),
    ("metric-name", set_in("metric", value="l2.0"), "parameters", "metric must be written 'l2'"),
    ("metric-power", set_in("metric", value="l0.5"), "parameters", "finite p >= 1"),
    ("vast-metric", set_in("metric", value="l1e300"), "parameters", "power must be at most 64"),
    ("metric", set_in("metric", value="l1"), "realised-epsilon", "above the declared"),
    ("prior", set_in("prior", value=[0.125] * 8), "certificate", "prior must be given for the objective 'prior' and for no other"),
    ("bound-alone", set_in("certificate", "lower_bound", value=0.01), "lower-bound", "must be given together"),
    ("gap-alone", set_in("certificate", "optimality_gap", value=0.5), "optimality-gap", "there is no lower bound"),
    ("negative", lambda d: spread(d, 4, 2, -5), "schema", "'-5' does not match"),
    ("text-weight", lambda d: d["weights"][0].__setitem__(0, "0x1"), "schema", "'0x1' does not match"),
    (
        "vast-weight",
        lambda d: d["weights"][0].__setitem__(0, 10**19 - 1),
        "schema",
        r"weights must be at most 2\*\*62, got 9999999999999999999",
    ),
    ("text-letter", lambda d: d["alphabet"].__setitem__(0, "1.5"), "schema", "does not match"),
    ("no-total", lambda d: d.pop("total"), "schema", "'total' is a required property"),
    ("extra-key", set_in("note", value="hello"), "schema", "'note' was unexpected"),
    ("central", set_in("trust_model", value="central"), "schema", "'local' was expected"),
    ("comment", set_in("mechanism", value="*/ int x;"), "schema", "does not match"),
    ("another-name", set_in("mechanism", value="laplace"), "mechanism", "a lookup table is mvu, .*, got 'laplace'"),
    ("bitwise-name", set_in("mechanism", value=BITWISE), "mechanism", "the weights and letters are not those of bitwise"),
    (
        "next-format",
        set_in("format", value="quietbits-table/3"),
        "format",
        "expected 'quietbits-table/2' or 'quietbits-table/1', got 'quietbits-table/3'",
    ),
]


@pytest.mark.parametrize(("change", "check", "detail"), [case[1:] for case in TAMPERING], ids=[case[0] for case in TAMPERING])
def test_a_changed_file_is_refused_even_with_a_recomputed_checksum(change: Change, check: str, detail: str, tmp_path: Path) -> None:
    document = json.loads(json.dumps(table_document(TABLES[2])))
    # Changes compute with weights, which are strings in the file.
    document["weights"] = [[int(weight) for weight in row] for row in document["weights"]]
    change(document)
    document["weights"] = [[str(weight) for weight in row] for row in document["weights"]]
    mended = refusal(written(tmp_path / "mended.json", document, mend_checksum=True))
    assert mended.check == check
    with pytest.raises(TableError, match=detail):
        raise mended
    plain = refusal(written(tmp_path / "plain.json", document, mend_checksum=False))
    assert plain.check in {"checksum", "schema", "format"}


def renamed(table: LookupTable, name: str) -> str | None:
    """Return the check that refuses a table under another name, or None if the name fits."""
    try:
        verify_table(dataclasses.replace(table, mechanism=name))
    except TableError as error:
        return error.check
    return None


@pytest.mark.parametrize(
    ("table", "names"),
    [
        (bitwise_randomised_response(2.0, 1), {"mvu", GENERALISED, BITWISE}),
        (bitwise_randomised_response(2.0, 2), {BITWISE}),
        (bitwise_randomised_response(0.001, 9), {BITWISE}),
        (bitwise_randomised_response(20.0, 5), {BITWISE}),
        # A design for least variance may end with such a table.
        (generalised_randomised_response(2.0, 2), {"mvu", GENERALISED}),
        (generalised_randomised_response(0.001, 8), {"mvu", GENERALISED}),
        (generalised_randomised_response(20.0, 6), {"mvu", GENERALISED}),
        (design_mvu(2.0, 2, 2), {"mvu"}),
        (design_mvu(1.0, 3, 1), {"mvu"}),
        (design_mvu(1.0, 1, 3, metric="l1"), {"mvu"}),
    ],
    ids=lambda value: value.summary if isinstance(value, LookupTable) else "",
)
def test_a_table_is_named_for_what_its_weights_and_letters_are(table: LookupTable, names: set[str]) -> None:
    assert {name for name in ("mvu", GENERALISED, BITWISE, "laplace") if renamed(table, name) is None} == names
    assert {renamed(table, name) for name in ("mvu", GENERALISED, BITWISE, "laplace")} <= {None, "mechanism"}


def test_letters_and_metric_are_part_of_what_a_table_is() -> None:
    table = generalised_randomised_response(2.0, 2)
    doubled = certified_table(
        mechanism=GENERALISED,
        epsilon=2.0,
        metric=None,
        alphabet=tuple(2 * letter for letter in table.alphabet),
        total=table.total,
        weights=table.weights,
        provenance=table.provenance,
    )
    assert renamed(doubled, GENERALISED) == renamed(doubled, "mvu") == "mechanism"
    of_a_metric = certified_table(
        mechanism=GENERALISED,
        epsilon=6.0,
        metric="l1",
        alphabet=table.alphabet,
        total=table.total,
        weights=table.weights,
        provenance=table.provenance,
    )
    assert (renamed(of_a_metric, GENERALISED), renamed(of_a_metric, "mvu")) == ("mechanism", None)


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    write_table(TABLES[2], path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert verify_file(path) == TABLES[2].certificate
    path.write_bytes(path.read_text(encoding="utf-8-sig").encode("utf-16"))
    assert (error := refusal(path)).check == "json"
    assert "the file is UTF-16 or UTF-32: save it in UTF-8" in error.detail


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (scale_certificate("lower_bound", 1 + 1e-6), "lower-bound"),
        (scale_certificate("lower_bound", 1 - 1e-6), "optimality-gap"),
        (set_in("certificate", "optimality_gap", value=0.001), "optimality-gap"),
        (set_in("certificate", "optimality_gap", value=None), "optimality-gap"),
        (set_in("certificate", "lower_bound", value=None), "lower-bound"),
        (set_in("certificate", "dual", value=None), "lower-bound"),
        (set_in("certificate", "dual", "unbiasedness", value=[-1.0, 1.0]), "lower-bound"),
        (set_in("certificate", "dual", "input_weights", value=[0.4, 0.6]), "certificate"),
        (set_in("certificate", "dual", "normalisation", value=[0.0, 0.0, 0.0, 0.0]), "certificate"),
        (set_in("epsilon", value=1000.0), "certificate"),
        # With these dual values pricing would overflow, and miss every violation.
        (set_in("certificate", "dual", "unbiasedness", value=[-1e308, -1e308]), "certificate"),
        (set_in("certificate", "dual", "normalisation", value=[1e308, 1e308]), "certificate"),
    ],
)
def test_a_bound_that_its_dual_values_do_not_prove_is_refused(change: Change, check: str, tmp_path: Path) -> None:
    document = table_document(certified())
    change(document)
    assert refusal(written(tmp_path / "table.json", document, mend_checksum=True)).check == check


def test_a_modest_bound_with_its_own_gap_is_accepted(tmp_path: Path) -> None:
    document = table_document(certified())
    stated = document["certificate"]
    stated["lower_bound"] *= 0.9
    stated["optimality_gap"] = 1 - stated["lower_bound"] / stated["mean_variance"]
    assert verify_file(written(tmp_path / "table.json", document, mend_checksum=True)).lower_bound == stated["lower_bound"]


def test_what_a_mended_file_holds_is_not_dumped(tmp_path: Path) -> None:
    # A biased table has no bound. The error must not print all dual values, 1,937 characters and more.
    document = table_document(certified())
    # The change makes the table more private, and biased.
    first, *others, last = map(int, document["weights"][0])
    document["weights"][0] = list(map(str, (first - 1, *others, last + 1)))
    fault = refusal(written(tmp_path / "table.json", document, mend_checksum=True))
    assert fault.detail == "dual must be left out for a table with bias: the lower bound is one on unbiased tables"
    document = table_document(certified()) | {"mechanism": "a\n" * 2000, "metric": "l" + "1" * 2000}
    refusal(written(tmp_path / "table.json", document, mend_checksum=True))


def test_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    document = {**table_document(certified()), "sha256": "0" * 64}
    error = refusal(written(tmp_path / "table.json", document, mend_checksum=False))
    assert (error.check, "it states 000" in error.detail) == ("checksum", True)


GARBAGE = {
    "empty": b"",
    "binary": b"\x93NUMPY\xff\xfe",
    "text": b"letters, weights",
    "list": b"[1, 2]",
    "null": b"null",
    "nan": b'{"format": NaN}',
    "infinity": b'{"format": -Infinity}',
    "vast-number": b'{"format": 1e999}',
    "vast-integer": b'{"format": ' + b"9" * 5000 + b"}",
    "vast-float": b'{"format": ' + b"9" * 400 + b"}",
    "twice": b'{"format": "quietbits-table/1", "format": "quietbits-table/1"}',
    "deep": b"[" * 100_000,
    "only-format": b'{"format": "quietbits-table/1"}',
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_refused_as_a_table_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    path.write_bytes(content)
    assert refusal(path).check in {"json", "format", "schema"}


TEXT = json.dumps(table_document(certified()))


@given(st.data())
def test_no_edit_of_the_text_gets_through(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(TEXT) - 1))
    changed = TEXT[:place] + data.draw(st.text(max_size=2)) + TEXT[place + data.draw(st.integers(0, 2)) :]
    path = tmp_path_factory.getbasetemp() / "edited.json"
    path.write_text(changed, encoding="utf-8", errors="surrogatepass")
    try:
        content = read_table(path)
    except TableError:
        return
    # An accepted file states the same table in other notation, such as white space, or 1.0 for 1.
    assert table_document(content) == json.loads(TEXT)


@pytest.mark.parametrize(("key", "number"), [("realised_epsilon", 10**400), ("lower_bound", -(10**309)), ("mean_variance", 10**400)])
def test_a_number_beyond_floats_is_refused_as_json(key: str, number: int, tmp_path: Path) -> None:
    document = table_document(certified())
    document["certificate"][key] = number
    error = refusal(written(tmp_path / "table.json", document, mend_checksum=True))
    assert (error.check, "is too large" in error.detail) == ("json", True)


def test_dual_values_that_overflow_prove_nothing(tmp_path: Path) -> None:
    # Such dual values once turned the sum of the normalisation prices into a bound, so that any certificate could be forged.
    document = table_document(certified())
    stated = document["certificate"]
    stated["dual"]["unbiasedness"], stated["dual"]["normalisation"] = [-1e308, -1e308], [0.46, 0.46]
    stated["lower_bound"], stated["optimality_gap"] = 0.92, 1 - 0.92 / stated["mean_variance"]
    assert refusal(written(tmp_path / "table.json", document, mend_checksum=True)).check == "certificate"


def test_many_keys_take_linear_time(tmp_path: Path) -> None:
    # A quadratic search for duplicate keys takes 12 minutes.
    path = tmp_path / "table.json"
    path.write_text("{" + ",".join(f'"{key}":0' for key in range(100_000)) + ', "7": 1}')
    assert "the key '7' occurs twice" in refusal(path).detail


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    write_table(certified(), path)
    assert read_table(path, most_bytes=path.stat().st_size).epsilon == 1.0
    with pytest.raises(TableError, match=r"table\.json: refused: size: the file has more than the 0\.001 megabytes"):
        read_table(path, most_bytes=1000)


def test_a_refusal_names_the_file_and_a_copy_of_it_does(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    path.write_text("{")
    result = refusal(path)
    assert str(copy.copy(result)) == str(result) == f"{path}: refused: json: {result.detail}"


def test_a_missing_file_is_not_a_table_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.json")


def test_a_table_that_does_not_verify_is_not_written(tmp_path: Path) -> None:
    table = certified()
    path = tmp_path / "table.json"
    write_table(table, path)
    before = path.read_bytes()
    with pytest.raises(TableError, match=r"realised-epsilon: the weights realise epsilon 1\.0, 0\.5 above the declared 0\.5"):
        write_table(dataclasses.replace(table, epsilon=0.5), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({"weights": np.array([[2**62 + 1, -1], [1, 2**62 - 1]])}, "negative-weights"),
        ({"weights": np.array([[2**62, 2**62], [2**62, 2**62]])}, "row-sums"),
        ({"total": 2**63}, "total"),
        ({"total": 0}, "total"),
        ({"bits_out": 10}, "shape"),
        ({"epsilon": math.inf}, "parameters"),
        ({"epsilon": math.nan}, "parameters"),
        ({"adjacency": "add-or-remove-one"}, "parameters"),
        ({"alphabet": (Fraction(2), Fraction(1))}, "alphabet"),
    ],
)
def test_tables_in_memory_are_checked_too(changes: dict[str, Any], check: str) -> None:
    with pytest.raises(TableError) as caught:
        verify_table(dataclasses.replace(certified(), **changes))
    assert caught.value.check == check


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_table(certified(), tmp_path / "none" / "table.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_table(certified(), tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("place", [b'"worst_variance": ', b'"lower_bound": ', b'"epsilon": '])
def test_numbers_beyond_floats_are_no_json(tmp_path: Path, place: bytes) -> None:
    path = tmp_path / "table.json"
    write_table(certified(), path)
    before, after = path.read_bytes().split(place, 1)
    path.write_bytes(before + place + b"1e400" + after[after.index(b",") :])
    with pytest.raises(TableError, match="1e400 is too large"):
        read_table(path)


def test_the_checksum_does_not_depend_on_the_order_of_keys() -> None:
    document = table_document(design_mvu(1.0, 1, 1))
    assert checksum(dict(reversed(document.items()))) == document["sha256"]
