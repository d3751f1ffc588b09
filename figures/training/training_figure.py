"""Entries of the trainings' figures, which name settings without a result above the legend."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from ...analysis.training.run import run_training_tasks
from ...analysis.training.summary import summarise_training
from ...errors import InfeasibleError
from ..drawing.style import CAPTION_CHARACTERS, SMALLEST_TYPE
from ..entry import FigureEntry, unchanged
from .grids import data_title

REASON = "infeasible"


def training_figure(
    *,
    draw: Callable[[pd.DataFrame], Figure],
    table: Callable[[pd.DataFrame], pd.DataFrame] = summarise_training,
    summary: Callable[[pd.DataFrame], pd.DataFrame] = unchanged,
    draws_infeasible: bool = False,
    **named: Any,
) -> FigureEntry:
    """Return an entry whose `table`, `summary` and `draw` get the settings with a result.

    Infeasible settings are rows of the table without an accuracy, with the reason as `infeasible`, and a line above the legend. Optionally
    `draw` also gets the infeasible settings, and shows them.
    """

    def whole_table(rows: pd.DataFrame) -> pd.DataFrame:
        feasible, infeasible = _divided(rows)
        if feasible.empty or (feasible["mechanism"] == "none").all():
            raise InfeasibleError(f"{named['name']}: every setting is infeasible: {infeasible[REASON].iloc[0]}")
        return _joined(table(feasible), summarise_training(infeasible) if len(infeasible) else infeasible)

    def whole_summary(frame: pd.DataFrame) -> pd.DataFrame:
        feasible, infeasible = _divided(frame)
        shown = summary(feasible)
        return _joined(shown, infeasible[[name for name in infeasible if name in (*shown, REASON)]])

    def whole_figure(frame: pd.DataFrame) -> Figure:
        feasible, infeasible = _divided(frame)
        figure = draw(feasible)
        settings = infeasible.drop_duplicates(["data", "label", "target_epsilon", REASON]).to_dict("records")
        if settings:
            (legend,) = figure.legends
            legend.set_title(_note(settings, several=frame["data"].nunique() > 1), FontProperties(size=SMALLEST_TYPE))
        return figure

    shown = draw if draws_infeasible else whole_figure
    return FigureEntry(table=whole_table, summary=whole_summary, draw=shown, run=run_training_tasks, **named)


def _divided(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows with a result, and the rows without a result."""
    if REASON not in frame:
        return frame, frame.iloc[:0]
    infeasible = frame[REASON].notna()
    return frame[~infeasible].drop(columns=REASON).reset_index(drop=True), frame[infeasible]


def _joined(feasible: pd.DataFrame, infeasible: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([feasible, infeasible.dropna(axis=1, how="all")], ignore_index=True) if len(infeasible) else feasible


def _note(settings: Sequence[Mapping[Any, Any]], *, several: bool) -> str:
    """Return a line on the first setting without a result, and on the number of the others; the table has all reasons."""
    first, others = settings[0], len(settings) - 1
    epsilon = "" if pd.isna(first["target_epsilon"]) else f", ε = {first['target_epsilon']:g}"
    data = f" on {data_title(first['data'])}" if several else ""
    more = f" Nor for {others} more." if others else ""
    text = f"No result for {first['label']}{data}{epsilon}: {first[REASON]}"
    return textwrap.shorten(text, CAPTION_CHARACTERS - len(more), placeholder=" ...") + more
