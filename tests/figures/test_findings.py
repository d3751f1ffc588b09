"""Titles state ranges of quantities, computed from the drawn table.

Titles make no other claims.
"""

import ast
import math
from pathlib import Path

import pandas as pd
import pytest

from quietbits import figures
from quietbits.figures.findings import Finding, range_in_words, ratios

# Formats that drop digits, with which epsilon and delta would have to be rounded up.
ROUNDING = "g", "f", "e", "%"


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1.0049, 1.0049, "1 to 1.01"),
        (0.2949, 0.5201, "0.294 to 0.521"),
        (5.0, 5.0, "5"),
        (1.0, 12345.0, "1 to 12,345"),
        (99.25, 99.31, "99.2 to 99.4"),
        (3.0, math.inf, "3 to infinite"),
        (-0.5, 0.5, "-0.5 to 0.5"),
    ],
)
def test_ranges_are_rounded_outward(low: float, high: float, words: str) -> None:
    assert range_in_words(low, high) == words


def test_a_finding_is_of_the_table_and_leaves_out_what_is_missing() -> None:
    finding = Finding("error over zero's", lambda table: table["error"] / table["zero"])
    assert finding.text(pd.DataFrame({"error": [1.0, 3.0, math.nan], "zero": [4.0, 2.0, 1.0]})) == "error over zero's: 0.25 to 1.5"
    assert finding.text(pd.DataFrame({"error": [math.nan], "zero": [1.0]})) == "error over zero's: none"


def test_ratios_are_of_rows_with_the_same_setting() -> None:
    upper = pd.DataFrame({"epsilon": [1.0, 3.0, 5.0], "error": [2.0, 6.0, 7.0]})
    lower = pd.DataFrame({"epsilon": [3.0, 1.0], "error": [3.0, 8.0], "other": [0.0, 0.0]})
    assert ratios(upper, lower, ("epsilon",), "error").tolist() == [0.25, 2.0]


def rounded_epsilons(source: str) -> list[str]:
    """Return the f-string fields that round an epsilon or a delta to the nearest number.

    The fields of a comprehension belong to its iterable.
    """
    fields: list[str] = []

    def visit(node: ast.AST, sources: dict[str, str]) -> None:
        if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp):
            names = {
                name.id: ast.unparse(generator.iter)
                for generator in node.generators
                for name in ast.walk(generator.target)
                if isinstance(name, ast.Name)
            }
            sources = sources | names
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            text = ast.unparse(node.value)
            origins = text + "".join(sources.get(name.id, "") for name in ast.walk(node.value) if isinstance(name, ast.Name))
            spec = "".join(str(part.value) for part in ast.walk(node.format_spec) if isinstance(part, ast.Constant))
            is_private = any(name in origins for name in ("epsilon", "delta"))
            is_realised = any(name in origins for name in ("realised_epsilon", "epsilon_of_all"))
            if "rounded_up" not in text and ((is_private and "." in spec) or (is_realised and spec.endswith(ROUNDING))):
                fields.append(f"{text}:{spec}")
        for child in ast.iter_child_nodes(node):
            visit(child, sources)

    visit(ast.parse(source), {})
    return fields


def test_no_figure_rounds_a_privacy_parameter_to_the_nearest() -> None:
    assert rounded_epsilons("f\"{', '.join(f'{value:.3g}' for value in epsilons)}\"") == ["value:.3g"]
    assert rounded_epsilons("f\"ε = {first['realised_epsilon']:g}\"") == ["first['realised_epsilon']:g"]
    assert rounded_epsilons("f\"{rounded_up(epsilon, 3)} {first['epsilon']:g}\"") == []
    folder = Path(figures.__file__).parent
    rounded = {path.name: rounded_epsilons(path.read_text(encoding="utf-8")) for path in folder.rglob("*.py")}
    assert {name: fields for name, fields in rounded.items() if fields} == {}
