"""Leaderboards judge rows by the right reference, and rank mechanisms of quietbits and of other packages alike."""

import datetime as dt
import sys
from pathlib import Path

import pandas as pd
import pytest

from quietbits.analysis.catalogue.plug_ins import InstalledPlugIns
from quietbits.analysis.catalogue.registry import BUILT_IN, NOISE, REGISTRY
from quietbits.analysis.plan_grid.leaderboard import absent, board_rows, judged, read_board, standings, winners_in_words
from quietbits.analysis.plan_grid.run import plan_grid
from quietbits.analysis.plan_grid.spec import parse_plan_grid
from quietbits.analysis.planner.plan import plan_task
from quietbits.progress import silent
from quietbits.shown import counted
from quietbits.version import __version__

DATE = dt.date(2026, 11, 27)
BUDGET = {"clients": 1000, "epsilon": 2, "adjacency": "replace-one"}
# The last task has no mechanism.
GRIDS = [BUDGET | {"delta": 0, "categories": [20, 30]}, BUDGET | {"delta": 0, "dimension": 8, "bits": [1, 0.01]}]
# The plug-in is a mechanism of quietbits with less epsilon, under another name.
PLUG_IN = """
from dataclasses import replace
from quietbits import REGISTRY

def build(task, options):
    return REGISTRY["unary-encoding"].build(replace(task, epsilon=task.epsilon / 2), {})

ENTRY = replace(REGISTRY["unary-encoding"], name="toy", options=(), build=build)
"""


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("board")
    rows = board_rows(pd.read_parquet(plan_grid(parse_plan_grid({"grid": GRIDS}), folder, on_step=silent)), DATE)
    rows.to_csv(folder / "board.csv", index=False)
    return read_board(folder / "board.csv")


def test_rows_have_version_date_and_guarantee(board: pd.DataFrame) -> None:
    assert set(board["date"]) == {"2026-11-27"}
    assert set(board["version_quietbits"]) == {__version__}
    rows = judged(board)
    assert rows["number"].unique().tolist() == [1, 2, 3]
    assert board["task"].nunique() == 4
    assert rows["reason"].isna().all()
    assert (rows["epsilon"] <= 2 * (1 + 1e-9)).all()
    assert len(rows) == len(board) - 1


def test_a_mechanism_may_have_the_name_of_a_missing_value(board: pd.DataFrame, tmp_path: Path) -> None:
    board.assign(mechanism=board["mechanism"].replace("mvu", "NA")).to_csv(tmp_path / "board.csv", index=False)
    again = read_board(tmp_path / "board.csv")
    assert "NA" in set(again["mechanism"].dropna())
    pd.testing.assert_frame_equal(again.assign(mechanism=again["mechanism"].replace("NA", "mvu")), board)


def test_ratios_are_those_of_the_plan(board: pd.DataFrame) -> None:
    rows = judged(board)
    plan = plan_task(parse_plan_grid({"grid": GRIDS}).tasks[0], timed=False)
    for row in rows[rows["number"] == 1].to_dict("records"):
        planned = plan.named(row["mechanism"])
        proven = planned.ratio_to_bound is not None and (
            planned.trust_model == "local" or planned.lower_bound >= 0.1 * plan.central_error  # type: ignore[operator]
        )
        assert row["reference"] == ("proven bound" if proven else "trusted server")
        assert row["ratio"] == pytest.approx(planned.ratio_to_bound if proven else planned.ratio_to_central)
    assert (rows.loc[rows["trust_model"] == "local", "reference"] == "proven bound").all()


def test_weak_bounds_outside_the_local_model_are_not_the_reference(board: pd.DataFrame) -> None:
    row = judged(board).iloc[[0]]
    for model, bound, reference in (("local", 0.01, "proven bound"), ("central", 0.01, "trusted server"), ("central", 0.5, "proven bound")):
        changed = row.assign(trust_model=model, central_error=1.0, lower_bound=bound, ratio_to_bound=7.0, ratio_to_central=3.0)
        judgement = judged(changed).iloc[0]
        assert (judgement["reference"], judgement["ratio"]) == (reference, 7.0 if reference == "proven bound" else 3.0)
    neither = judged(row.assign(ratio_to_bound=float("nan"), ratio_to_central=float("nan"))).iloc[0]
    assert neither[["reference", "ratio"]].isna().all()


def test_references_on_real_numbers_do_not_set_the_least_error(board: pd.DataFrame) -> None:
    rows = judged(board)
    local = rows[(rows["number"] == 3) & (rows["trust_model"] == "local")]
    releasable = local[~local["on_real_numbers"]]
    assert releasable["over_best"].min() == 1
    least = releasable["predicted_error_of_rounds"].min()
    assert local["over_best"].tolist() == pytest.approx((local["predicted_error_of_rounds"] / least).tolist())
    half = local.assign(on_real_numbers=local["predicted_error_of_rounds"] == least)
    assert judged(half)["over_best"].min() < 1


def test_standings_count_wins_and_take_medians(board: pd.DataFrame) -> None:
    rows = judged(board)
    table = standings(rows).set_index("mechanism")
    assert table["wins"].sum() == rows["recommended"].sum()
    assert table["tasks"].sum() == len(rows)
    shared = next(name for name, tasks in table["tasks"].items() if tasks == 2)
    assert table.loc[shared, "ratio"] == pytest.approx(rows.loc[rows["mechanism"] == shared, "ratio"].mean())
    assert table["trust_model"].drop_duplicates().tolist() == [
        model for model in ("local", "shuffled", "secure-sum", "central") if model in set(rows["trust_model"])
    ]
    sentences = winners_in_words(rows)
    assert len(sentences) == rows.loc[rows["recommended"], "trust_model"].nunique()
    for sentence in sentences:
        model, _, text = sentence.partition(": ")
        served = rows[rows["trust_model"] == model]
        first = served.loc[served["recommended"], "mechanism"].value_counts()
        assert first.index[0] in text
        assert f" {first.iloc[0]} of {counted(served['number'].nunique(), 'task')}, with {counted(len(first), 'different winner')}" in text


def test_absent_mechanisms_have_a_reason(board: pd.DataFrame) -> None:
    reasons = absent(judged(board))
    assert set(reasons) == set(REGISTRY.usable()) - set(board["mechanism"].dropna())
    assert reasons["exact-histogram"] == "it keeps no budget"
    assert reasons["sparse-discrete-gaussian"] == "its error is stated for the population sparse-mean only"
    assert reasons["mvu" if "mvu" in reasons else "dp-rec"] == "it serves none of the tasks"


def test_a_mechanism_of_another_package_joins(board: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "toy_module.py").write_text(PLUG_IN)
    about = tmp_path / "toys.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 2.5\n")
    (about / "entry_points.txt").write_text("[quietbits.mechanisms]\ntoy = toy_module:ENTRY")
    monkeypatch.delitem(sys.modules, "toy_module", raising=False)
    monkeypatch.setattr(REGISTRY, "_installed", InstalledPlugIns({*BUILT_IN, *NOISE}))
    path = plan_grid(parse_plan_grid({"grid": GRIDS[:1]}), tmp_path / "board", on_step=silent)
    rows = judged(board_rows(pd.read_parquet(path), DATE))
    own, (toy, _) = rows[rows["mechanism"] != "toy"], rows[rows["mechanism"] == "toy"].to_dict("records")
    # The rows of quietbits are the same with and without the plug-in.
    first = judged(board)
    assert own["mechanism"].tolist() == first.loc[first["number"] <= 2, "mechanism"].tolist()
    assert (toy["provider"], toy["provider_version"], toy["trust_model"], toy["date"]) == ("toys", "2.5", "local", "2026-11-27")
    assert toy["epsilon"] == 1
    assert toy["reference"] == "proven bound"
    # The bound is for the epsilon that the toy spends, the comparison with others for the budget of the task.
    assert toy["over_best"] > 2 * own.loc[own["mechanism"] == "unary-encoding", "over_best"].iloc[0]
    assert standings(rows).set_index("mechanism").loc["toy", ["provider", "tasks", "wins"]].tolist() == ["toys", 2, 0]
    assert "toy" not in absent(rows)
