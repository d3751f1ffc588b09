"""Changed table files: accepted tables are as private and precise as they claim."""

import json
import math
import random
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..design.tables.file import FIRST_FORMAT, checksum, read_table, table_document
from ..design.tables.letter_certification import certify_letters
from ..design.tables.mvu import design_mvu
from ..design.tables.randomised_response import generalised_randomised_response
from ..design.tables.table_facts import realised_epsilon, rounded_up, row_moments
from ..errors import TableError
from ..progress import silent
from .cases import Arguments, Attack, refusal
from .damage import damaged, odd_value, paths

# Logarithms and exponentials in floating point have this relative error, against the exact ratios.
ROUNDING = 1e-12


@cache
def _bases() -> tuple[str, ...]:
    tables = [generalised_randomised_response(epsilon, bits) for epsilon, bits in ((0.001, 1), (1.0, 2), (20.0, 3))]
    tables += [design_mvu(1.0, 2, 1), design_mvu(2.0, 2, 2, metric="l1"), design_mvu(1.5, 2, 2, metric="l2")]
    documents = [table_document(table) for table in tables] + [table_document(tables[-1], FIRST_FORMAT)]
    return tuple(map(json.dumps, documents))


@cache
def _proven() -> tuple[str, ...]:
    """Return tables with a proof among tables of as many letters, for each kind of objective and privacy."""
    tables = [
        design_mvu(5.0, 3, 3),
        design_mvu(2.0, 3, 2, objective="worst"),
        design_mvu(3.0, 3, 2, metric="l1"),
        design_mvu(2.0, 3, 2, objective=[1, 2, 3, 4, 0, 0, 1, 1]),
    ]
    return tuple(json.dumps(table_document(certify_letters(table, tolerance=5e-3, on_step=silent).table)) for table in tables)


def draw(rng: random.Random) -> Arguments:
    """Draw a file with true facts, with a false claim, with an odd value, or with damage."""
    if rng.random() < 0.15:
        return {"content": _in_file(_changed_proof(rng, json.loads(rng.choice(_proven()))))}
    document: dict[str, Any] = json.loads(rng.choice(_bases()))
    # Changes compute with weights, which are strings in the file.
    document["weights"] = [list(map(int, row)) for row in document["weights"]]
    kind = rng.random()
    if kind < 0.08:
        return {"content": damaged(rng, json.dumps(document).encode())}
    if kind > 0.9:
        # This case is a designed table with its lower bound, unchanged or with another claim.
        if kind > 0.93:
            _scale(rng, document)
        return {"content": _in_file(document)}
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        rng.choice((_move_weight, _swap_columns, _swap_rows, _redraw_row))(rng, document)
    if rng.random() < 0.8:
        _redraw(rng, document)
    _state_as_it_is(rng, document)
    if kind < 0.16:
        _state_as_it_is(rng, document, share=rng.choice((1 - 1e-15, 1 - 1e-9, 0.9)))
    elif kind < 0.25:
        rng.choice((_scale, _replace_anywhere, _restate))(rng, document)
    return {"content": _in_file(document, mend=rng.random() < 0.98)}


def _changed_proof(rng: random.Random, document: dict[str, Any]) -> dict[str, Any]:
    """Change a proof among tables of as many letters, the bound that it proves, or the task that it is about."""
    certificate = document["certificate"]
    proof = certificate["letters_proof"]
    factor = rng.choice((1.0, 1 + 1e-15, 1 + 1e-9, 1.0005, 1.002, 1.5, 0.9))
    if rng.random() < 0.5:
        certificate["letters_lower_bound"] *= factor
        proof["target"] *= rng.choice((1.0, factor))
        if certificate["objective"] == "mean":
            certificate["letters_gap"] = 1 - certificate["letters_lower_bound"] / certificate["mean_variance"]
    # Each key is changed at most once: another change could not compute with an odd value.
    for key in rng.sample(list(proof), rng.choice((0, 1, 1, 3))):
        kind = rng.random()
        if not isinstance(proof[key], list) or not proof[key] or kind < 0.2:
            proof[key] = odd_value(rng, proof[key])
        elif kind < 0.4:
            rng.shuffle(proof[key])
        elif kind < 0.6:
            del proof[key][rng.randrange(len(proof[key])) :]
        elif isinstance(proof[key][0], list):
            row = rng.choice(proof[key])
            row[rng.randrange(len(row))] *= rng.choice((0.0, -1.0, 0.999, 1.001, 1e60, 1e200))
        else:
            proof[key][rng.randrange(len(proof[key]))] += rng.choice((-1, 1, 10**6))
    if rng.random() < 0.3:
        document["epsilon"] = rng.choice((5.0000001, 5.5, 6.0, 8.0, 10.0, 20.0))
        certificate |= {"lower_bound": None, "dual": None, "optimality_gap": None}
    return document


def _in_file(document: dict[str, Any], *, mend: bool = True) -> bytes:
    """Return the file of a document, with weights as its format has them."""
    if document.get("format") != FIRST_FORMAT and (rows := _rows(document)):
        document = document | {"weights": [list(map(str, row)) for row in rows]}
    return json.dumps(document | ({"sha256": _sum_of(document)} if mend else {})).encode()


def _sum_of(document: dict[str, Any]) -> str:
    try:
        return checksum({key: value for key, value in document.items() if key != "sha256"})
    except (TypeError, ValueError, OverflowError):
        return "0" * 64


def _rows(document: dict[str, Any]) -> list[list[int]]:
    rows = document.get("weights")
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) > 1 for row in rows):
        return []
    return rows if all(type(weight) is int for row in rows for weight in row) else []


def _move_weight(rng: random.Random, document: dict[str, Any]) -> None:
    """Move units from one letter of a row to another, so that the row's sum stays.

    The first letter usually stays possible.
    """
    if rows := _rows(document):
        row = rng.choice(rows)
        source, target = rng.sample(range(len(row)), 2)
        moved = rng.choice((1, 1, 7, row[source] // 2, row[source] - 1, row[source] if rng.random() < 0.1 else 1))
        moved = min(moved, row[source])
        row[source] -= moved
        row[target] += moved


def _swap_columns(rng: random.Random, document: dict[str, Any]) -> None:
    if rows := _rows(document):
        row = rng.choice(rows)
        first, second = rng.sample(range(len(row)), 2)
        row[first], row[second] = row[second], row[first]


def _swap_rows(rng: random.Random, document: dict[str, Any]) -> None:
    if rows := _rows(document):
        first, second = rng.sample(range(len(rows)), 2)
        rows[first], rows[second] = rows[second], rows[first]


def _redraw_row(rng: random.Random, document: dict[str, Any]) -> None:
    """Draw other weights for an input."""
    if rows := _rows(document):
        rng.choice(rows)[:] = _weights(rng, len(rows[0]), document["total"])


def _redraw(rng: random.Random, document: dict[str, Any]) -> None:
    """Draw a table of another size, with any letters, metric, interval and total."""
    inputs, letters, total = (2 ** rng.randint(1, bits) for bits in (4, 4, 62))
    total = max(total, letters)
    document["bits_in"], document["bits_out"], document["total"] = inputs.bit_length() - 1, letters.bit_length() - 1, total
    rows = _straight_rows(rng, inputs, letters, total)
    if rng.random() < 0.3:
        # One letter never occurs.
        unused = rng.randrange(letters)
        for row in rows:
            row[(unused + 1) % letters] += row[unused]
            row[unused] = 0
    document["mechanism"], document["weights"] = "mvu", rows
    document["metric"] = rng.choice((None, "l1", "l2", "l1.5", "l3"))
    document["interval"] = sorted((rng.uniform(-10, 10), rng.uniform(-10, 10)))
    size = rng.choice((1, 3, 10**6, 2**60))
    alphabet = sorted(Fraction(rng.randint(-3 * size, 4 * size), rng.randint(1, size)) for _ in range(letters))
    alphabet = _unbiased(rows, alphabet, total)
    document["alphabet"] = [f"{letter.numerator}/{letter.denominator}" for letter in alphabet]
    document["prior"] = None
    document["certificate"]["objective"] = rng.choice(("mean", "worst", "prior"))
    if document["certificate"]["objective"] == "prior":
        eighths = [1 + _weights(rng, inputs, 8 * inputs)[0] for _ in range(inputs - 1)]
        document["prior"] = [part / (16 * inputs * inputs) for part in eighths]
        document["prior"].append(1 - math.fsum(document["prior"]))


def _straight_rows(rng: random.Random, inputs: int, letters: int, total: int) -> list[list[int]]:
    """Draw rows at nearly equal distances between two rows.

    Some letters then make the table unbiased.
    """
    first, last = (_weights(rng, letters, total) for _ in range(2))
    # Rounding goes toward zero, so that no weight falls below that of an end.
    steps = [int(Fraction(there - here, inputs - 1)) for here, there in zip(first, last, strict=True)]
    steps[max(range(letters), key=lambda letter: first[letter] + (inputs - 1) * steps[letter])] -= sum(steps)
    return [[weight + row * step for weight, step in zip(first, steps, strict=True)] for row in range(inputs)]


def _unbiased(rows: list[list[int]], alphabet: list[Fraction], total: int) -> list[Fraction]:
    """Shift and scale letters so that straight rows have the means 0 to 1.

    The letters are then sorted with their columns.
    """
    offset, there = (
        sum((weight * letter for weight, letter in zip(row, alphabet, strict=True)), Fraction()) / total for row in (rows[0], rows[-1])
    )
    if there == offset:
        return alphabet
    letters = [(letter - offset) / (there - offset) for letter in alphabet]
    if there < offset:
        letters.reverse()
        for row in rows:
            row.reverse()
    return letters


def _weights(rng: random.Random, letters: int, total: int) -> list[int]:
    """Draw positive whole numbers that sum to the total, mostly of very different sizes."""
    spread = rng.choice((0.1, 1.0, 10.0))
    sizes = [math.exp(rng.uniform(-spread, spread)) for _ in range(letters)]
    row = [1 + int((total - letters) * (size / math.fsum(sizes)) * (1 - 1e-12)) for size in sizes]
    row[rng.randrange(letters)] += total - sum(row)
    return row


def _scale(rng: random.Random, document: dict[str, Any]) -> None:
    key = rng.choice(("epsilon", "realised_epsilon", "mean_variance", "worst_variance", "lower_bound", "max_bias"))
    holder = document if key == "epsilon" else document.get("certificate")
    if isinstance(holder, dict) and type(holder.get(key)) is float:
        holder[key] *= rng.choice((1 - 1e-15, 1 + 1e-15, 0.5, 0.999, 1.001, 2.0, 0.0, -1.0, 1e300))


def _replace_anywhere(rng: random.Random, document: dict[str, Any]) -> None:
    """Put an odd value anywhere, or remove a value."""
    holder, key = rng.choice(paths(document))
    if rng.random() < 0.2:
        del holder[key]
    else:
        holder[key] = odd_value(rng, holder[key])


def _restate(rng: random.Random, document: dict[str, Any]) -> None:
    choices = {
        "metric": (None, "l1", "l2", "l1.5", "l64", "linf"),
        "interval": ([0.0, 1.0], [0.0, 1e155], [1.0, 0.0], [-1e308, 1e308]),
        "bits_in": (0, 1, 2, 3, 9, 10),
        "bits_out": (0, 1, 2, 3, 9, 10),
        "trust_model": ("local", "central"),
        "adjacency": ("replace-one", "add-or-remove-one"),
        "mechanism": ("mvu", "", "x" * 300),
    }
    key = rng.choice(list(choices))
    document[key] = rng.choice(choices[key])


def _state_as_it_is(rng: random.Random, document: dict[str, Any], share: float | None = None) -> None:
    """State the true facts of the weights, with their epsilon or another epsilon."""
    rows, total, stated = document["weights"], document["total"], document["certificate"]
    weights = np.array(rows, dtype=np.int64)
    try:
        realised = realised_epsilon(weights, document["metric"])
    except ValueError:
        # If a letter is impossible for some inputs, no epsilon is large enough.
        realised = 50.0
    moments = row_moments(weights, tuple(Fraction(letter) for letter in document["alphabet"]), total)
    facts = {"mean_variance": moments.mean_variance, "worst_variance": moments.worst_variance}
    stated |= {"realised_epsilon": realised, "max_bias": rounded_up(moments.max_bias)}
    stated |= {key: None for key in stated if key in ("lower_bound", "dual", "optimality_gap") or key.startswith("letters")}
    stated |= {name: float(value) for name, value in facts.items()}
    document["epsilon"] = (realised or 1.0) * (rng.choice((1.0, 1.0, 1 + 1e-15, 1.5)) if share is None else share)


def check(folder: Path, content: bytes) -> None:
    """Read the file, which must be refused with a reason, or be as it claims.

    The last check is of the mechanism's name, which most drawn weights do not have, so its error means that the earlier claims were
    accepted.
    """
    path = folder / "table.json"
    path.write_bytes(content)
    try:
        read_table(path)
    except TableError as error:
        if error.check != "mechanism":
            raise refusal(error) from error
    check_claims(json.loads(content))


def check_claims(document: dict[str, Any]) -> None:
    """Recompute an accepted table's claims from its integers, without quietbits."""
    rows, total, certificate = [list(map(int, row)) for row in document["weights"]], document["total"], document["certificate"]
    assert all(sum(row) == total and min(row) >= 0 for row in rows)
    assert (len(rows), {len(row) for row in rows}) == (2 ** document["bits_in"], {2 ** document["bits_out"]})
    power = None if document["metric"] is None else float(document["metric"][1:])
    stated = min(document["epsilon"], certificate["realised_epsilon"])
    steps = len(rows) - 1
    for i, row in enumerate(rows):
        for j, other in enumerate(rows):
            allowed = stated if power is None else stated * (abs(i - j) / steps) ** power
            for here, there in zip(row, other, strict=True):
                assert here == 0 or there > 0, "an output that one input can give is impossible for another"
                if i != j and here > there:
                    assert math.log1p((here - there) / there) <= allowed * (1 + ROUNDING) + ROUNDING, (here, there, allowed)
    letters = [Fraction(letter) for letter in document["alphabet"]]
    means = [sum(weight * letter for weight, letter in zip(row, letters, strict=True)) / Fraction(total) for row in rows]
    squares = [sum(weight * letter**2 for weight, letter in zip(row, letters, strict=True)) / Fraction(total) for row in rows]
    variances = [square - mean**2 for square, mean in zip(squares, means, strict=True)]
    bias = max(abs(mean - Fraction(i, steps)) for i, mean in enumerate(means))
    assert float(bias) <= certificate["max_bias"] * (1 + ROUNDING)
    assert float(max(variances)) <= certificate["worst_variance"] * (1 + ROUNDING)
    assert float(sum(variances) / len(rows)) <= certificate["mean_variance"] * (1 + ROUNDING)
    if certificate["lower_bound"] is not None:
        value = {"mean": certificate["mean_variance"], "worst": certificate["worst_variance"]}.get(certificate["objective"], math.inf)
        assert certificate["lower_bound"] <= value * (1 + ROUNDING), "a table is better than its lower bound"
    if certificate.get("letters_lower_bound") is not None:
        value = {"mean": certificate["mean_variance"], "worst": certificate["worst_variance"]}.get(certificate["objective"], math.inf)
        if document["metric"] is None and certificate["objective"] == "mean" and document["bits_in"] == document["bits_out"]:
            value = min(value, _response_variance(document["epsilon"], len(rows)))
        assert certificate["letters_lower_bound"] <= value * (1 + ROUNDING), "a table of as many letters is better than the bound"


def _response_variance(epsilon: float, letters: int) -> float:
    """Return the mean variance of generalised randomised response on a grid, which sends an input's own letter exp(epsilon) times as often.

    With p the probability of each other letter and d = 1 - B p, letter j stands for (x_j - B p / 2) / d.
    """
    other = 1 / (math.exp(epsilon) + letters - 1)
    kept = 1 - letters * other
    inputs = np.arange(letters) / (letters - 1)
    decoded = (inputs - letters * other / 2) / kept
    squares = other * (decoded**2).sum() + kept * decoded**2
    return float(np.mean(squares - inputs**2))


ATTACK = Attack("tables", draw, check)
