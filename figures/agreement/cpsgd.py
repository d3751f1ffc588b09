"""Claims of Agarwal, Suresh, Yu, Kumar, McMahan 2018 about figures 1 and 2 and Theorem 1."""

from collections.abc import Mapping

import pandas as pd

from ..findings import Finding, ratios
from .claims import FigureClaims, PaperClaim, above, at_least, at_most, within
from .training_claims import POINTS, chosen, trained

PAPER = "cpSGD"


def _over_classic(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return the finest binomial variance by Theorem 1 over that of Gaussian noise by the classic rule."""
    own = frame[frame["accounting"] == "theorem"]
    return ratios(own[own["scale"] == own["scale"].min()], frame[frame["accounting"] == "classic"], ("epsilon",), "noise_squared_error")


def _shrunk(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return variances by Theorem 1 over those of the next larger scale, at equal epsilon."""
    own = frame[frame["accounting"] == "theorem"].sort_values("scale", ascending=False)
    ratio: pd.Series[float] = own.groupby("epsilon")["noise_squared_error"].pct_change() + 1
    return ratio


def _rotated(frame: pd.DataFrame, column: str) -> list[float]:
    """Return by how many points the largest value of a column exceeds the smallest, for rotated sums with the other column equal."""
    own = chosen(frame, {"mechanism": "cpsgd", "rotated": True}).dropna(subset=["accuracy"]).sort_values(column)
    other = "target_epsilon" if column == "bits" else "bits"
    return [POINTS * (group["accuracy"].iloc[-1] - group["accuracy"].iloc[0]) for _, group in own.groupby(other) if len(group) > 1]


EPOCH = (trained(100, 1), at_least("clients_per_round", 10_000, "clients a round"))
CLAIMS: Mapping[str, FigureClaims] = {
    "cpsgd-fig1": FigureClaims(
        paper=PAPER,
        place="figure 1",
        claims=(
            PaperClaim(
                statement="As the scale s is reduced, the trade-off of binomial noise approaches that of Gaussian noise.",
                source="section 2, figure 1",
                measure=Finding("Variance by Theorem 1 over that of the next larger scale", _shrunk),
                criterion=at_most(1),
            ),
            PaperClaim(
                statement="For small scales the theorem's leading term is that of Gaussian noise by the classic rule.",
                source="section 2.2, after Theorem 1",
                measure=Finding("Variance of the finest binomial noise by Theorem 1 over that of the classic rule", _over_classic),
                criterion=within(1, 1.1),
                reason="The theorem's condition asks for more trials than the leading term at larger epsilon and larger scales.",
            ),
        ),
    ),
    "binomial-slack": FigureClaims(
        paper=PAPER,
        place="Theorem 1",
        claims=(
            PaperClaim(
                statement="Binomial noise that meets the theorem's condition has at most the theorem's epsilon.",
                source="Theorem 1, equation (6)",
                measure=Finding("Epsilon by the theorem over the exact epsilon", lambda frame: frame["ratio"]),
                criterion=above(1),
                reason="At large epsilon an exact account contradicts the theorem.",
            ),
        ),
    ),
    "cpsgd-fig2": FigureClaims(
        paper=PAPER,
        place="figure 2",
        claims=(
            PaperClaim(
                statement="Models reach different accuracies depending on the bits: more bits are better.",
                source="section 5, figure 2",
                measure=Finding(
                    "Points of accuracy by which the most bits exceed the fewest, rotated", lambda frame: _rotated(frame, "bits")
                ),
                criterion=above(0),
                needs=EPOCH,
            ),
            PaperClaim(
                statement="A smaller epsilon costs accuracy.",
                source="section 5, figure 2",
                measure=Finding(
                    "Points of accuracy by which the larger epsilon exceeds the smaller, rotated",
                    lambda frame: _rotated(frame, "target_epsilon"),
                ),
                criterion=above(0),
                needs=EPOCH,
            ),
        ),
    ),
}
