"""Claims of Chen, Özgür, Cormode, Bharadwaj 2023 about figures 2 to 5, theorems 4.2 and 5.1."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ..findings import Finding
from .claims import FigureClaims, PaperClaim, above, at_least, at_most, below, several

NAME = "secure frequencies"
SKETCH, HISTOGRAM = "Poisson-binomial sketch, L = 10", "Poisson-binomial, best"
LOCAL = ("randomised response", "Hadamard response")
LOSSES = ("largest_error", "error")
# The paper's regime has many more items than clients.
MANY_ITEMS = at_least("categories", 100_000, "items")


def _errors_over(frame: pd.DataFrame, upper: Sequence[str], lower: str, low: float, high: float) -> list[float]:
    """Return the least errors of some series over those of another one, in a range of epsilon, for both losses."""
    own = frame[(frame["epsilon"] >= low) & (frame["epsilon"] <= high)]
    by = ["population", "clients", "epsilon"]
    numbers: list[float] = []
    for loss in LOSSES:
        least = own[own["series"].isin(list(upper))].groupby(by)[loss].min()
        numbers += list((least / own[own["series"] == lower].set_index(by)[loss]).dropna())
    return numbers


def _growth_with_clients(frame: pd.DataFrame) -> list[float]:
    """Return the largest factor from a number of clients to the next of the sketch's errors, by epsilon and loss."""
    own = frame[frame["series"] == SKETCH].sort_values("clients")
    return [
        float((group[loss].pct_change() + 1).max())
        for _, group in own.groupby(["population", "epsilon"])
        for loss in LOSSES
        if len(group) > 1
    ]


def _local_loses(low: float, high: float, place: str) -> PaperClaim:
    """Return the paper's claim that the sketch outperforms local messages in a range of epsilon."""
    return PaperClaim(
        statement="In the high-privacy regime the sketched Poisson-binomial mechanism significantly outperforms local messages.",
        source=place,
        measure=Finding(
            f"Least error of randomised and Hadamard response over the sketch's, epsilon to {high:g}",
            lambda frame: _errors_over(frame, LOCAL, SKETCH, low, high),
        ),
        criterion=above(2),
        reason="The paper does not state the rows and the width of its sketch.",
        needs=(MANY_ITEMS,),
    )


def _by_clients(law: str, place: str) -> FigureClaims:
    """Return the claims about errors against the number of clients."""
    return FigureClaims(
        paper=NAME,
        place=place,
        claims=(
            _local_loses(0, 1, f"section 6 and appendix B, {place}"),
            PaperClaim(
                statement="At a fixed number of bits the sketch's error does not strictly decrease with the number of clients.",
                source="section 6",
                measure=Finding("Largest factor from a number of clients to the next of the sketch's errors", _growth_with_clients),
                criterion=above(1),
                reason="With the sketch used here the noise decides, which falls with the number of clients.",
                needs=(MANY_ITEMS, several("clients", 3, "numbers of clients")),
            ),
            PaperClaim(
                statement="At epsilon 10 compression limits the sketch.",
                source="appendix B",
                measure=Finding(
                    "Error of the sketch over that of a histogram with the same noise, epsilon of ten",
                    lambda frame: _errors_over(frame, (SKETCH,), HISTOGRAM, 10, 10),
                ),
                criterion=above(2),
                reason=f"{law} few items are held at all, and medians over rows remove their collisions."
                if law
                else "The largest error is less affected than the error of all frequencies.",
                needs=(MANY_ITEMS,),
            ),
        ),
    )


def _by_epsilon() -> FigureClaims:
    return FigureClaims(paper=NAME, place="figure 5", claims=(_local_loses(0, 3, "appendix B, figure 5"),))


def _bits_over_order(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return bits of the sketch over necessary bits, over log2(n) sqrt(ln d), the factor of the paper."""
    own = frame[frame["mechanism"].str.contains("poisson-binomial") & frame["necessary_bits"].gt(0) & frame["bits_per_client"].notna()]
    ratio: pd.Series[float] = (
        own["bits_per_client"] / own["necessary_bits"] / (np.log2(own["clients"]) * np.sqrt(np.log(own["categories"])))
    )
    return ratio


def _measurements_over_order(frame: pd.DataFrame) -> list[float]:
    """Return the measurements from which on all histograms are recovered by the integer program, over the theorem's order."""
    numbers = []
    for _, series in frame[frame["code"] == "bernoulli"].groupby("prior"):
        failed = series.loc[series["success"] < 1, "measurements"].max()
        enough = series.loc[~(series["measurements"] <= failed), "measurements"].min()
        numbers.append(enough / series["reference_measurements"].iloc[0])
    return numbers


CLAIMS: Mapping[str, FigureClaims] = {
    "freq-fig2": _by_clients("With a geometric law", "figures 2 and 3"),
    "freq-fig3": _by_clients("", "figure 4"),
    "freq-fig4": _by_epsilon(),
    "freq-fig5": _by_epsilon(),
    "freq-limits": FigureClaims(
        paper=NAME,
        place="theorem 5.1 and corollary 5.1",
        claims=(
            PaperClaim(
                statement="The sketch's bits match the lower bound up to a factor of log n and the root of log d.",
                source="section 5, after theorem 5.1",
                measure=Finding("Bits of Poisson-binomial messages over necessary bits and over log2(n) √ln(d)", _bits_over_order),
                criterion=at_most(1),
                reason="The paper states an order. Here it is compared with a constant of one.",
                needs=(MANY_ITEMS,),
            ),
        ),
    ),
    "freq-regimes": FigureClaims(paper="beyond the papers"),
    "freq-codes": FigureClaims(
        paper=NAME,
        place="theorem 4.2",
        claims=(
            PaperClaim(
                statement="In the order of n log d / log n random sums are enough to recover a histogram.",
                source="theorem 4.2, equation (4)",
                measure=Finding("Sums that recover all histograms, over the theorem's order", _measurements_over_order),
                criterion=below(2),
                reason="The paper states an order. Here it is compared with a constant of one.",
            ),
        ),
    ),
}
