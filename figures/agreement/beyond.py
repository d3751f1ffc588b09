"""Figures that no paper has: their findings, beside those of their titles."""

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from ..beyond.sampled_coordinates import FLOAT_SKETCH
from ..findings import Finding
from .claims import FigureClaims

PAPER = "beyond the papers"


def _largest_gain(table: pd.DataFrame) -> "pd.Series[float]":
    """Return the part of the gap that only more bits can gain, in per cent."""
    return 100 * (table["optimality_gap"] - table["letters_gap"]).clip(lower=0.0)


def _fewest_bits(table: pd.DataFrame) -> "pd.Series[float]":
    """Return the fewest bits of a coordinate at which any secure sum is drawn, by the number of clients."""
    return table.dropna(subset=["worst_mean_variance"]).groupby("clients")["bits_per_coordinate"].min()


def _bits_near_central(table: pd.DataFrame) -> "pd.Series[float]":
    """Return the fewest bits at which some secure sum is within 10 % of a trusted server's error, by the number of clients."""
    near = table[table["worst_mean_variance"] <= 1.1 * table["central_squared_error"]]
    return near.groupby("clients")["bits_per_coordinate"].min()


def _useful_bits(table: pd.DataFrame) -> "pd.Series[float]":
    """Return the bits over coordinates of designs within twice the error of unsampled noise."""
    return table.loc[table["worst_squared_error"] <= 2 * table["central_squared_error"], "bits_per_coordinate"]


def _sketches(table: pd.DataFrame) -> "pd.Series[float]":
    """Return the errors of sketches in floats, over that of sending nothing."""
    return table.loc[table["series"] == FLOAT_SKETCH, "worst_squared_error"]


def _largest_part(table: pd.DataFrame, part: str) -> "pd.Series[float]":
    """Return the largest part of an error, in per cent, of each setting."""
    return (100 * table[part] / table["predicted_error"]).groupby(table["setting"], sort=False).max()


def _enough_bits(table: pd.DataFrame, trust_model: str, data: str) -> "pd.Series[float]":
    """Return the fewest bits with at most 1.1 times the least error of a trust model, by epsilon."""
    from ..beyond.mechanism_map import enough_bits

    enough = enough_bits(table[(table["trust_model"] == trust_model) & (table["data"] == data)])
    return enough["bits_per_client"]


CLAIMS: Mapping[str, FigureClaims] = {
    "letters-gap": FigureClaims(paper=PAPER, answers=(Finding("Part of the gap that only more bits can gain (%)", _largest_gain),)),
    "secure-sum-bits": FigureClaims(
        paper=PAPER,
        answers=(
            Finding("Fewest bits of a coordinate with which some secure sum keeps the guarantee", _fewest_bits),
            Finding("Fewest bits with which some secure sum is within 10 % of a trusted server's error", _bits_near_central),
        ),
    ),
    "sampled-coordinates": FigureClaims(
        paper=PAPER,
        answers=(
            Finding("Bits over coordinates of designs within twice the error of unsampled noise", _useful_bits),
            Finding("Error of sketches in floats, where sending nothing has one at most", _sketches),
        ),
    ),
    "mechanism-map": FigureClaims(
        paper=PAPER,
        answers=(
            *(
                Finding(f"Fewest bits within 10 % of the least {model} error, {data}", partial(_enough_bits, trust_model=model, data=data))
                for model, data in (("local", "vectors"), ("secure-sum", "vectors"), ("local", "items"), ("secure-sum", "items"))
            ),
            Finding(
                "Local error over a trusted server's without a limit of bits",
                lambda table: table.loc[(table["trust_model"] == "local") & np.isinf(table["most_bits"]), "ratio_to_central"],
            ),
        ),
    ),
    "error-parts": FigureClaims(
        paper=PAPER,
        answers=tuple(
            Finding(f"Largest part of an error from {part}, by setting (%)", partial(_largest_part, part=part))
            for part in ("rounding", "compression", "bias")
        ),
    ),
    "plan-pareto": FigureClaims(
        paper=PAPER,
        answers=(
            Finding(
                "Fewest bits of a coordinate of a releasable design",
                lambda table: [table.loc[~table["on_real_numbers"].astype(bool), "bits_per_coordinate"].min()],
            ),
        ),
    ),
}
