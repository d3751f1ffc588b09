"""Claims of Chaudhuri, Guo, Rabbat 2022 about figures 1 to 6."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ..findings import Finding, ratios
from ..mvu.fig2 import grid_averages, variances_over_laplace
from ..mvu.fig3 import tables_over_laplace
from ..mvu.table_entries import certificates, sent_letters
from .claims import FigureClaims, PaperClaim, above, at_least, at_most, below, within
from .training_claims import trained, within_budget

PAPER = "MVU"
MESSAGES = ("bRR(3)", "gRR(3)", "CLDP", "MVU(1)")
LAPLACE = "Laplace, or Gaussian"
CONVENTION = (
    "Here epsilon is for any two vectors. The paper counts the privacy of tables and of Laplace noise for two vectors at half of the "
    "largest distance."
)
AVERAGES = "A table has the least variance on average over its inputs, not at each input."


def _tables(entries: pd.DataFrame, epsilon: float) -> list[pd.DataFrame]:
    """Return the table of an epsilon, without letters that are never sent, as the only item or as none."""
    own = entries[entries["epsilon"] == epsilon]
    return [sent_letters(own)] if len(own) else []


def _likeliest(entries: pd.DataFrame) -> Sequence[float]:
    """Return the largest probability of each input at epsilon 10."""
    return [chance for table in _tables(entries, 10.0) for chance in table.groupby("input_index")["probability"].max()]


def _letters_off_inputs(entries: pd.DataFrame) -> Sequence[float]:
    """Return the distance of each input at epsilon 10 from its likeliest letter."""
    likeliest = [table.loc[table.groupby("input_index")["probability"].idxmax()] for table in _tables(entries, 10.0)]
    return [distance for rows in likeliest for distance in (rows["letter"] - rows["input"]).abs()]


def _largest_letters(entries: pd.DataFrame) -> Sequence[float]:
    """Return the largest distance of a letter at epsilon 1 from the middle, in halves of the interval."""
    return [2 * (table["letter"] - 0.5).abs().max() for table in _tables(entries, 1.0)]


def _over(frame: pd.DataFrame, upper: str, lower: Sequence[str]) -> "pd.Series[float]":
    """Return a mechanism's variances over the least of others, at equal epsilon and value."""
    least = frame[frame["mechanism"].isin(lower)].groupby(["epsilon", "value"])["exact_variance"].min().reset_index()
    return ratios(frame[frame["mechanism"] == upper], least, ("epsilon", "value"), "exact_variance")


def _averages_over(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return the average variance of MVU(3) over the least of other messages, by epsilon."""
    averages = grid_averages(frame)
    least = averages[averages["mechanism"].isin(MESSAGES)].groupby("epsilon")["mean_variance"].min().reset_index()
    return ratios(averages[averages["mechanism"] == "MVU(3)"], least, ("epsilon",), "mean_variance")


def _responses_over_laplace(frame: pd.DataFrame) -> list[float]:
    """Return variances of MVU(3) and gRR(3) over Laplace noise's at the larger epsilons."""
    larger = frame[frame["epsilon"] >= 3]
    return [*variances_over_laplace(larger), *_over(larger, "gRR(3)", ("Laplace",))]


def _errors(frame: pd.DataFrame, ball: str, upper: str, lower: str, *, by: str = "epsilon") -> "pd.Series[float]":
    """Return predicted errors of a series over those of another, on a ball, at equal epsilon by a convention."""
    own = frame[(frame["comparison"] == ball) & (frame["panel"] == "epsilon")]
    # Only equal numbers are merged, which stand in the table with rounding errors.
    own = own.assign(at=own[by].astype(float).round(9))
    return ratios(own[own["series"] == upper], own[own["series"] == lower], ("at",), "predicted_squared_error")


def _over_laplace(series: str) -> PaperClaim:
    """Return the paper's claim that a mechanism's error is ten times that of Laplace noise."""
    return PaperClaim(
        statement=f"On the L1 ball {series} has an error that is more than an order of magnitude above that of Laplace noise.",
        source="section 5.1, figure 3, left",
        measure=Finding(f"Predicted error of {series} over that of Laplace noise", lambda frame: _errors(frame, "L1", series, LAPLACE)),
        criterion=above(10),
        reason=CONVENTION,
        evidence=(
            Finding(
                "At equal epsilon by the paper's convention the ratio is",
                lambda frame: _errors(frame, "L1", series, LAPLACE, by="paper_epsilon"),
            ),
        ),
        needs=(at_least("dimension", 128),),
    )


def _tables_beat(series: str) -> PaperClaim:
    """Return the paper's claim that tables for the L1 metric outperform a mechanism on the L2 ball."""
    return PaperClaim(
        statement=f"On the L2 ball tables of 3 bits for the L1 metric slightly outperform {series}.",
        source="section 5.1, figure 3, right",
        measure=Finding(
            f"Predicted error of tables for the L1 metric over that of {series}",
            lambda frame: _errors(frame, "L2", "MVU, L1 metric", series),
        ),
        criterion=below(1),
        reason=CONVENTION,
        evidence=(
            Finding(
                "The tables' epsilon in the paper's figure, over that here",
                lambda frame: (frame["paper_epsilon"] / frame["epsilon"])[
                    (frame["comparison"] == "L2") & (frame["series"] == "MVU, L1 metric")
                ],
            ),
        ),
        needs=(at_least("dimension", 128),),
    )


def _declines(entries: pd.DataFrame) -> list[float]:
    """Return what each further bit lowers the mean variance by, over what the bit before lowers it by."""
    numbers = []
    for _, table in certificates(entries).sort_values("bits_out").groupby("epsilon"):
        variances = table["mean_variance"].to_numpy()
        drops = -np.diff(variances)
        # Later drops are differences of equal numbers.
        real = drops[:-1] > 1e-6 * variances[-1]
        numbers += list(np.maximum(drops[1:], 0.0)[real] / drops[:-1][real])
    return numbers


def _last_gaps(entries: pd.DataFrame) -> "pd.Series[float]":
    """Return the gap to tables of any size with the most bits, in per cent."""
    gaps: pd.Series[float] = 100 * certificates(entries).sort_values("bits_out").groupby("epsilon")["optimality_gap"].last()
    return gaps


CLAIMS: Mapping[str, FigureClaims] = {
    "mvu-fig1": FigureClaims(
        paper=PAPER,
        place="figure 1",
        claims=(
            PaperClaim(
                statement="At epsilon 10 the optimised table is close to the identity.",
                source="figure 1",
                measure=Finding("Probability of an input's likeliest letter at epsilon of ten", _likeliest),
                criterion=above(0.99),
            ),
            PaperClaim(
                statement="At epsilon 10 the letters are close to the inputs, j / (B - 1).",
                source="figure 1",
                measure=Finding("Distance of an input from its likeliest letter at epsilon of ten", _letters_off_inputs),
                criterion=below(0.01),
            ),
            PaperClaim(
                statement="At epsilon 1 unbiasedness makes the letters large.",
                source="figure 1",
                measure=Finding(
                    "Largest distance of a letter from the middle at epsilon of one, in halves of the interval", _largest_letters
                ),
                criterion=above(1),
            ),
        ),
    ),
    "mvu-fig2": FigureClaims(
        paper=PAPER,
        place="figure 2",
        claims=(
            PaperClaim(
                statement="MVU with one bit is CLDP.",
                source="section 5.1, figure 2",
                measure=Finding("Variance of MVU(1) over that of CLDP", lambda frame: _over(frame, "MVU(1)", ("CLDP",))),
                criterion=within(0.99, 1.01),
            ),
            PaperClaim(
                statement="MVU with three bits consistently has the lowest variance of all private compressed messages.",
                source="section 5.1, figure 2",
                measure=Finding(
                    "Variance of MVU(3) over the least of the other messages, at each value", lambda frame: _over(frame, "MVU(3)", MESSAGES)
                ),
                criterion=at_most(1),
                reason=AVERAGES,
                evidence=(Finding("Averages over the inputs have a ratio of", _averages_over),),
            ),
            PaperClaim(
                statement="At larger epsilon three bits of MVU and gRR are comparable with Laplace noise, or have slightly less variance.",
                source="section 5.1, figure 2",
                measure=Finding("Variance over that of Laplace noise at epsilon of three and more", _responses_over_laplace),
                criterion=at_most(1),
                reason="On [-1, 1] Laplace noise has variance 8/epsilon², where the paper's script draws 2/epsilon².",
            ),
        ),
    ),
    "mvu-fig3": FigureClaims(
        paper=PAPER,
        place="figure 3",
        claims=(
            PaperClaim(
                statement="On the L1 ball tables of 3 bits have an error close to that of Laplace noise.",
                source="section 5.1, figure 3, left",
                measure=Finding("Predicted error of tables for the L1 metric over that of Laplace noise", tables_over_laplace),
                criterion=below(2),
                needs=(at_least("dimension", 128),),
            ),
            _over_laplace("CLDP"),
            _over_laplace("Skellam"),
            PaperClaim(
                statement="On the L2 ball tables for the L2 metric are significantly less competitive than the baselines.",
                source="section 5.1, figure 3, right",
                measure=Finding(
                    "Predicted error of tables for the L2 metric over that of Skellam noise",
                    lambda frame: _errors(frame, "L2", "MVU, L2 metric", "Skellam"),
                ),
                criterion=above(1.5),
                needs=(at_least("dimension", 128),),
            ),
            _tables_beat("CLDP, d draws"),
            _tables_beat("Skellam"),
        ),
    ),
    "mvu-fig4": FigureClaims(
        paper=PAPER,
        place="figure 4",
        claims=(
            PaperClaim(
                statement="MVU of one bit outperforms noisy signs at nearly all epsilons, for a linear model.",
                source="section 5.2, figure 4",
                measure=Finding(
                    "Points of accuracy by which the best MVU of one bit exceeds noisy signs within the same epsilon",
                    lambda frame: within_budget(frame, {"mechanism": "mvu", "bits_out": 1}, {"mechanism": "sign-gaussian"}),
                ),
                criterion=above(0),
                reason="The embedded digits have few images and features that are not those of the paper's scattering network.",
                needs=(trained(300, 2),),
            ),
        ),
    ),
    "mvu-fig5": FigureClaims(
        paper=PAPER,
        place="figure 5",
        claims=(
            PaperClaim(
                statement="The marginal benefit of a further bit becomes lower as the bits out increase.",
                source="appendix A, figure 5",
                measure=Finding("What a bit lowers the mean variance by, over what the bit before does", _declines),
                criterion=below(1),
            ),
            PaperClaim(
                statement="For a given epsilon more bits are eventually not beneficial.",
                source="appendix A",
                measure=Finding("Most that a table of any size can be better, with the most bits (%)", _last_gaps),
                criterion=below(1),
                needs=(at_least("bits_in", 5),),
            ),
        ),
    ),
    "mvu-fig6": FigureClaims(
        paper=PAPER,
        place="figure 6",
        claims=(
            PaperClaim(
                statement="MVU of one bit recovers the performance of noisy signs, for a convolutional network.",
                source="appendix B, figure 6",
                measure=Finding(
                    "Points of accuracy by which the best MVU of one bit exceeds noisy signs within the same epsilon",
                    lambda frame: within_budget(frame, {"mechanism": "mvu", "bits_out": 1}, {"mechanism": "sign-gaussian"}),
                ),
                criterion=within(-2, 2),
                reason="The embedded digits are few, and the network is smaller than the paper's.",
                needs=(trained(300, 2),),
            ),
        ),
    ),
}
