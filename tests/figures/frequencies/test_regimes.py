"""The map of mechanisms for items does not draw a tie as a win."""

import pandas as pd
import pytest

from quietbits.figures.frequencies.regimes import LOCAL, SHUFFLED, draw_regimes


@pytest.mark.parametrize(("shuffled_error", "first_line", "ties"), [(0.02, "RR=", 1), (0.0202, "RR", 0), (0.01, "SR", 0)])
def test_a_tie_between_kinds_is_marked(shuffled_error: float, first_line: str, ties: int) -> None:
    problem = {"clients": 1000, "categories": 100, "epsilon": 10.0, "budget": 1e3, "adjacency": "replace-one", "delta": 1e-5}
    errors = {"central_squared_error": 0.001, "zero_squared_error": 0.1}
    local = {"mechanism": "frequency-randomised-response", "kind": LOCAL, "predicted_squared_error": 0.02}
    shuffled = {
        "mechanism": "shuffled-frequency-randomised-response",
        "kind": SHUFFLED,
        "predicted_squared_error": shuffled_error,
    }
    figure = draw_regimes(pd.DataFrame([problem | errors | local, problem | errors | shuffled]))
    (axes,) = figure.axes
    assert axes.texts[0].get_text().splitlines()[0] == first_line
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()].count("=: another kind is within 0.5 %") == ties
