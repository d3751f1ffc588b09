"""The page of trainings states the best of each guarantee, and references separately.

The page flags unequal budgets.
"""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from quietbits.analysis.training.spec import parse_training
from quietbits.figures.training.page import MOST_SERIES, compared_trainings, training_page_html, training_statement
from quietbits.shown import in_figures

DOCUMENT: dict[str, Any] = {
    "clients": 100,
    "clients_per_round": 50,
    "rounds": 2,
    "delta": 1e-5,
    "adjacency": "replace-one",
    "mechanism": [
        {"name": "none"},
        {"name": "dp-fedavg", "epsilon": 8.0, "server_rate": [0.5, 1.0]},
        {"name": "sign-gaussian", "noise_multiplier": 0.5},
    ],
}


@pytest.fixture(scope="module")
def results() -> pd.DataFrame:
    tasks = parse_training(DOCUMENT).tasks()
    return pd.concat([pd.DataFrame(task.run(task.prepare(None))) for task in tasks], ignore_index=True)


def with_accuracies(results: pd.DataFrame, accuracies: list[float]) -> pd.DataFrame:
    """Return the results with other accuracies after the last round."""
    changed = results.copy()
    changed.loc[changed["round"] == 2, "accuracy"] = accuracies
    return changed


def page_of(results: pd.DataFrame) -> str:
    return training_page_html(results, compared_trainings(results))


def test_none_is_a_reference_whatever_its_accuracy(results: pd.DataFrame) -> None:
    changed = with_accuracies(results, [0.99, 0.5, 0.75, 0.25])
    summary = compared_trainings(changed)
    assert summary["is_reference"].tolist() == [True, False, False, False]
    epsilon = summary["epsilon"].iloc[3]
    assert training_statement(summary) == (
        f"Best accuracy after the last round, for each guarantee: dp-fedavg 0.75 (ε = 8, central) and "
        f"sign-gaussian (noise_multiplier 0.5) 0.25 (ε = {epsilon:.3g}, local); without a finite ε, as a reference: none 0.99."
    )
    page = page_of(changed)
    best = re.findall(r'<tr class="best"><th[^>]*>(.*?)</th>\s*<td[^>]*>(.*?)</td>\s*<td[^>]*>(.*?)</td>', page, flags=re.DOTALL)
    assert best == [("dp-fedavg", "1", "0.75")]
    (references,) = re.findall(r'<tbody class="references">(.*?)</tbody>', page, flags=re.DOTALL)
    assert re.findall(r"<th[^>]*>(.*?)</th>", references) == ["none"]
    assert "no finite ε" in references
    # A mechanism without privacy has no trust model.
    assert "local" not in references


def test_unequal_budgets_are_flagged(results: pd.DataFrame) -> None:
    page = page_of(results)
    assert "Rows differ in epsilon and trust model: compare only those of the same epsilon and trust model." in page
    assert "Without a finite epsilon, and so only references: none." in page
    equal = page_of(results[results["mechanism"] == "dp-fedavg"])
    assert "Rows differ" not in equal
    assert "Guarantees: replace-one adjacency, central trust model, epsilon 8, delta 10⁻⁵." in equal
    # A run that spends less than its budget is flagged.
    spends_less = results.assign(epsilon=np.where(results["mechanism"] == "dp-fedavg", 6.0, results["epsilon"]))
    assert compared_trainings(spends_less)["flag"].tolist() == ["no finite ε", "ε = 6", "ε = 6", ""]


def test_a_grid_without_privacy_has_references_only(results: pd.DataFrame) -> None:
    page = page_of(results[results["mechanism"] == "none"])
    assert "Accuracy after the last round; without a finite ε, as references only: none" in page
    assert "No row has a finite epsilon." in page
    assert 'class="best"' not in page


def test_settings_of_different_adjacency_are_different_lines_and_sentences(results: pd.DataFrame) -> None:
    other = results[results["mechanism"] == "dp-fedavg"].assign(adjacency="add-or-remove-one")
    both = pd.concat([results, other.assign(run="other " + other["run"])], ignore_index=True)
    page = page_of(both)
    drawn = set(re.findall(r"<!-- (.*?) -->", page))
    assert {f"dp-fedavg, server rate 1, adjacency {name}" for name in ("replace-one", "add-or-remove-one")} <= drawn
    assert "(ε = 8, add-or-remove-one, central)" in page
    assert page.count('<tr class="best">') == 2


def test_many_settings_are_not_all_drawn(results: pd.DataFrame) -> None:
    run = results[results["mechanism"] == "dp-fedavg"].head(2)
    others = [run.assign(run=f"run {rate}", server_rate=float(rate), accuracy=1 / rate) for rate in range(2, MOST_SERIES + 5)]
    none = results[results["mechanism"] == "none"]
    worse = none.assign(run="worse", server_rate=9.0, accuracy=0.01)
    page = page_of(pd.concat([none, worse, *others], ignore_index=True))
    # The page draws the best reference and the best other settings.
    assert "Not drawn: 5 settings of lower accuracy." in page
    drawn = set(re.findall(r"<!-- (.*?) -->", page))
    assert {"none, server rate 1", *(f"dp-fedavg, server rate {rate}" for rate in range(2, MOST_SERIES + 1))} <= drawn
    assert not {"none, server rate 9", f"dp-fedavg, server rate {MOST_SERIES + 1}"} & drawn
    accuracy = none["accuracy"].iloc[-1]
    assert f"as a reference: none {in_figures(accuracy)}." in page
