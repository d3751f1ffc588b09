"""Claims of Chen, Choquette-Choo, Kairouz, Suresh 2022 about figures 2 to 10, table 1 and remark 5.5.

The paper trains models. Figures of errors of a mean judge the same comparisons by errors, and figures of trainings by accuracies.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ..findings import Finding, ratios
from ..linear_compression.bits import SLACK
from ..linear_compression.layers import ARRANGEMENTS
from ..training.price_settings import DENSE, ON_DATA, SKETCHED
from .claims import FigureClaims, PaperClaim, above, at_least, at_most, below, several
from .training_claims import POINTS, papers_accuracies, trained

NAME = "linear compression"
# Factor of the error without a sketch within which compression counts as free, in place of the paper's slack of accuracy.
FREE = 1.5
# The paper's slack of accuracy, in points.
SLACK_POINTS = 4.0
LONG = trained(200, 2)
MEANS = "Compared are errors of a mean, in place of the accuracies of the paper's trainings."
DIGITS = "The embedded digits have a smaller model and fewer clients than the paper's data."
ABLATED_ROWS = (10, 15, 20, 25)


def _free_rates(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the highest rate within `FREE` times the predicted error without a sketch, by mean and noise."""
    plain = frame[frame["rate"] == 1]
    by = ["population", "mean_norm", "noise_multiplier"]
    both = frame.merge(plain[[*by, "predicted_squared_error"]], on=by, suffixes=("", "_plain"))
    free = both[both["predicted_squared_error"] <= FREE * both["predicted_squared_error_plain"]]
    return free.groupby(by)["rate"].max().reset_index()


def _rates_by_noise(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return the highest free rate with the most noise over that with the least, by mean."""
    rates = _free_rates(frame).sort_values("noise_multiplier").groupby(["population", "mean_norm"])["rate"]
    ratio: pd.Series[float] = (rates.last() / rates.first())[rates.size() > 1]
    return ratio


def _bits_alone_over_pairs(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return the fewest bits a parameter without a sketch over those of the cheapest pair, within the same slack, by noise."""
    alone = frame[(frame["rate"] == 1) & (frame["ratio"] <= SLACK)].groupby("noise_multiplier")["bits_per_coordinate"].min()
    ratio: pd.Series[float] = alone / frame[frame["cheapest"]].set_index("noise_multiplier")["bits_per_coordinate"]
    return ratio


def _pairs_by_noise(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return bits a parameter of the cheapest pair over those at the next smaller noise."""
    return frame[frame["cheapest"]].sort_values("noise_multiplier")["bits_per_coordinate"].pct_change() + 1


def _costs(frame: pd.DataFrame, by: str) -> list[float]:
    """Return the factor by which a sketch raises the predicted error at the largest value of a column over that at the least, by rate."""
    plain = frame[frame["rate"] == 1].set_index(by)["predicted_squared_error"]
    numbers = []
    for _, group in frame[frame["rate"] > 1].sort_values(by).groupby("rate"):
        costs = group["predicted_squared_error"].to_numpy() / plain.reindex(group[by]).to_numpy()
        if len(costs) > 1:
            numbers.append(costs[-1] / costs[0])
    return numbers


def _many_over_few(frame: pd.DataFrame) -> list[float]:
    """Return the error of the most clients at a rate of 15 and more over that of the fewest without a sketch."""
    own = frame[frame["population"] == "aligned"]
    many = own[(own["clients"] == own["clients"].max()) & (own["rate"] >= 15)]["predicted_squared_error"]
    few = own[(own["clients"] == own["clients"].min()) & (own["rate"] == 1)]["predicted_squared_error"]
    return [error / few.iloc[0] for error in many if len(few)]


def _high_dimensional(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose dimension is above (n epsilon)**2, the regime of the paper's claims."""
    return frame[frame["dimension"] > (frame["clients"] * frame["epsilon"]) ** 2]


def _first_round_over_zero(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return predicted errors of the first round over that of zero, by rate, in the claim's regime."""
    first = _high_dimensional(frame[frame["rounds"] == 1])
    ratio: pd.Series[float] = first["predicted_squared_error"] / first["zero"]
    return ratio


def _layers_over_whole(frame: pd.DataFrame) -> list[float]:
    """Return predicted errors of sketches by layers over those of a whole gradient's sketch, with all coordinates."""
    own = frame[frame["kept"] == 1]
    whole = own[own["arrangement"] == ARRANGEMENTS[0]]
    parts = (own[own["arrangement"] == name] for name in ARRANGEMENTS[1:])
    return [ratio for part in parts for ratio in ratios(part, whole, ("rate",), "predicted_squared_error")]


def _rows_over_least(frame: pd.DataFrame) -> list[float]:
    """Return predicted errors of 15 rows over the least of the numbers of rows that the paper tries, by rate."""
    tried = frame[frame["rows"].isin(ABLATED_ROWS)]
    least = tried.groupby("rate")["predicted_squared_error"].min()
    own = tried[tried["rows"] == 15].set_index("rate")["predicted_squared_error"]
    return list(own / least)


def _bits_by_clients(frame: pd.DataFrame) -> list[float]:
    """Return sufficient bits with the most clients over those with the fewest."""
    bits = frame[frame["mechanism"] == "bounds"].dropna(subset=["sufficient_bits"]).sort_values("clients")["sufficient_bits"]
    return [bits.iloc[-1] / bits.iloc[0]] if len(bits) > 1 else []


def _sufficient_over_coordinates(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return sufficient bits of a sketch over the number of coordinates, by clients, in the claim's regime."""
    bounds = _high_dimensional(frame[frame["mechanism"] == "bounds"])
    ratio: pd.Series[float] = bounds["sufficient_bits"] / bounds["dimension"]
    return ratio


def _lasso_over_ordinary(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return errors of the refitted Lasso over the ordinary decoder's, where vectors have few entries and zero does not win."""
    few = frame[frame["sparsity"] * np.log(frame["dimension"]) <= frame["measurements"]]
    refitted, ordinary = (few[few["decoder"] == name] for name in ("lasso-refit", "ordinary"))
    return ratios(refitted, ordinary, ("noise_deviation", "sparsity"), "mean_squared_error")


def _accuracies(frame: pd.DataFrame) -> pd.DataFrame:
    """Return private trainings with their budget, an epsilon or the paper's noise multiplier."""
    own = frame[frame["mechanism"].isin([DENSE, SKETCHED])].dropna(subset=["accuracy"])
    noise = own["paper_noise_multiplier"] if "paper_noise_multiplier" in own else pd.Series(np.nan, index=own.index)
    # More noise has a smaller number, as a smaller epsilon.
    return own.assign(budget=own["target_epsilon"].astype(float).fillna(-noise.astype(float)))


def _free_rates_by_budget(frame: pd.DataFrame) -> list[float]:
    """Return the highest rate within the slack of accuracy with the least budget over that with the largest, by cohort."""
    numbers = []
    for _, own in _accuracies(frame).groupby(["data", "clients_per_round"]):
        rates = []
        for _, runs in own.groupby("budget"):
            plain = runs.loc[runs["rate"] == 1, "accuracy"].max()
            rates.append(runs.loc[runs["accuracy"] >= plain - SLACK_POINTS / POINTS, "rate"].max())
        if len(rates) > 1 and not np.isnan(rates).any():
            numbers.append(rates[0] / rates[-1])
    return numbers


def _trained_bits_alone(frame: pd.DataFrame) -> list[float]:
    """Return the fewest bits a parameter at the lowest rate over the fewest of all pairs, within the slack of the best accuracy."""
    own = _accuracies(frame)
    numbers = []
    for _, runs in own.assign(sent=own["bits"] / own["rate"]).groupby(["data", "budget"]):
        within_slack = runs[runs["accuracy"] >= runs["accuracy"].max() - SLACK_POINTS / POINTS]
        alone = within_slack.loc[within_slack["rate"] == runs["rate"].min(), "sent"].min()
        numbers.append(alone / within_slack["sent"].min())
    return numbers


def _many_clients_ahead(frame: pd.DataFrame) -> list[float]:
    """Return by how many points the most clients at a rate of 15 and more exceed the fewest without a sketch, by budget."""
    numbers = []
    for _, runs in _accuracies(frame).groupby(["data", "budget"]):
        cohort = runs["clients_per_round"]
        few = runs.loc[(cohort == cohort.min()) & (runs["rate"] == 1), "accuracy"].max()
        many = runs.loc[(cohort == cohort.max()) & (runs["rate"] >= 15), "accuracy"].max()
        numbers.append(POINTS * (many - few))
    return numbers


def _large_ahead(frame: pd.DataFrame) -> list[float]:
    """Return by how many points the large model's best sketch exceeds the small model whose message is no shorter."""
    own = _accuracies(frame)
    own = own.assign(length=own["dimension"] / own["rate"])
    large = own[own["dimension"] == own["dimension"].max()]
    small = own[own["dimension"] < own["dimension"].max()]
    return [
        POINTS * (large.loc[large["length"] <= row["length"] * 1.01, "accuracy"].max() - row["accuracy"])
        for row in small.to_dict("records")
    ]


def _threshold_gains(frame: pd.DataFrame) -> list[float]:
    """Return by how many points the best threshold exceeds no threshold, by data and rate."""
    numbers = []
    own = frame.dropna(subset=["threshold", "accuracy"])
    for _, runs in own.groupby(["data", "sketch_dimension"]):
        without = runs.loc[runs["threshold"] == 0, "accuracy"].max()
        numbers.append(POINTS * (runs.loc[runs["threshold"] > 0, "accuracy"].max() - without))
    return numbers


def _printed(source: str) -> PaperClaim:
    """Return the claim about printed accuracies, on the paper's data."""
    return papers_accuracies(source, "paper_percent", 1.5, tuple(ON_DATA))


CLAIMS: Mapping[str, FigureClaims] = {
    "price-rate": FigureClaims(
        paper=NAME,
        place="figure 2",
        claims=(
            PaperClaim(
                statement="More noise attains a higher compression rate for free.",
                source="section 7, figure 2",
                measure=Finding(f"Highest rate within {FREE:g} times the error, most noise over least", _rates_by_noise),
                criterion=above(1),
                reason="The error that a sketch adds is in proportion to the mean's squared norm.",
                compared=MEANS,
            ),
        ),
    ),
    "price-bits": FigureClaims(
        paper=NAME,
        place="table 1 and figures 3, 5 and 6",
        claims=(
            PaperClaim(
                statement="A higher rate with more bits needs fewer bits a parameter than fewer bits alone.",
                source="section 7, table 1 and figure 3",
                measure=Finding("Fewest bits a parameter without a sketch over those of the cheapest pair", _bits_alone_over_pairs),
                criterion=above(1),
                reason="With little noise the error of a sketch alone exceeds the slack, so that no rate above one is within it.",
                compared=MEANS,
            ),
            PaperClaim(
                statement="The more noise, the fewer bits a parameter are needed: 1.2, 0.7 and 0.24 at z of 0.1, 0.3 and 0.5.",
                source="section 7, figures 3 and 5",
                measure=Finding("Bits a parameter of the cheapest pair over those at the next smaller noise", _pairs_by_noise),
                criterion=below(1),
                reason="The slack is relative to the least error of a level, which falls with the noise.",
                compared=MEANS,
                needs=(at_least("dimension", 2**17),),
            ),
        ),
    ),
    "price-cohort": FigureClaims(
        paper=NAME,
        place="figures 7 and 8",
        claims=(
            PaperClaim(
                statement="At a fixed epsilon more clients need more communication, so that a rate costs more.",
                source="appendix A.1, figure 7",
                measure=Finding(
                    "Factor by which a rate raises the error, most clients over fewest",
                    lambda frame: _costs(frame[frame["population"] == "aligned"], "clients"),
                ),
                criterion=above(1),
                compared=MEANS,
            ),
            PaperClaim(
                statement="Ten times as many clients at a rate of 15 or more do better than few without a sketch.",
                source="appendix A.1, figure 8",
                measure=Finding(
                    "Error of the most clients at a rate of 15 or more over that of the fewest without a sketch", _many_over_few
                ),
                criterion=below(1),
                reason="The error of the larger cohort has more of the sketch's own error.",
                compared=MEANS,
            ),
        ),
    ),
    "price-dimension": FigureClaims(
        paper=NAME,
        place="figure 4",
        claims=(
            PaperClaim(
                statement="The larger the model, the less a compression rate costs.",
                source="section 7, figure 4b",
                measure=Finding(
                    "Factor by which a rate raises the error, largest dimension over smallest", lambda frame: _costs(frame, "dimension")
                ),
                criterion=below(1),
                compared=MEANS,
            ),
        ),
    ),
    "price-rounds": FigureClaims(
        paper=NAME,
        place="remark 5.5",
        claims=(
            PaperClaim(
                statement="Where the dimension is above the square of n epsilon, answering zero has less error in a round.",
                source="remark 5.5",
                measure=Finding(
                    "Predicted error of the first round over that of zero, dimension above the square of n epsilon", _first_round_over_zero
                ),
                criterion=above(1),
            ),
        ),
    ),
    "price-layers": FigureClaims(
        paper=NAME,
        place="figures 9 and 10",
        claims=(
            PaperClaim(
                statement="Sketching layers separately brings no significant gain.",
                source="appendix A.2, figures 9 and 10",
                measure=Finding("Predicted error of sketches by layers over that of a whole gradient's sketch", _layers_over_whole),
                criterion=above(0.8),
                reason="The digits' layers have other norms than the paper's.",
                compared=MEANS,
            ),
        ),
    ),
    "price-rows": FigureClaims(
        paper=NAME,
        place="appendix C",
        claims=(
            PaperClaim(
                statement="Of 10, 15, 20 and 25 rows, 15 are best.",
                source="appendix C",
                measure=Finding("Predicted error with 15 rows over the least of these numbers", _rows_over_least),
                criterion=at_most(1.02),
                reason="A sketch has whole rows, so that sketches of different rows are not of exactly equal size.",
                compared=MEANS,
            ),
        ),
    ),
    "price-needed-bits": FigureClaims(
        paper=NAME,
        place="corollary 5.4 and theorem 5.2",
        claims=(
            PaperClaim(
                statement="Existing schemes send more bits than necessary where the dimension is above the square of n epsilon.",
                source="section 5.5, theorem 5.2",
                measure=Finding(
                    "Sufficient bits of a sketch over coordinates, dimension above the square of n epsilon", _sufficient_over_coordinates
                ),
                criterion=below(1),
                reason="Constants of the sufficient bits count where the dimension is small.",
                compared="Compared is a bit for each coordinate, the least that existing schemes send.",
            ),
            PaperClaim(
                statement="The bits that suffice grow with the number of clients at a fixed epsilon.",
                source="theorem 5.2",
                measure=Finding("Sufficient bits with the most clients over those with the fewest", _bits_by_clients),
                criterion=above(1),
            ),
        ),
    ),
    "price-sparse": FigureClaims(
        paper=NAME,
        place="algorithm 3 and theorem 6.1",
        claims=(
            PaperClaim(
                statement="For sparse vectors the Lasso has less error than unbiased decoding.",
                source="section 6, theorem 6.1",
                measure=Finding("Error of the refitted Lasso over that of the ordinary decoder, few entries", _lasso_over_ordinary),
                criterion=below(1),
            ),
        ),
    ),
    "price-training": FigureClaims(
        paper=NAME,
        place="figures 2, 7 and 8, and table 1",
        claims=(
            PaperClaim(
                statement="Higher privacy attains a higher compression rate within a slack of 4 % of accuracy.",
                source="section 7, figure 2",
                measure=Finding("Highest rate within the slack, least budget over largest", _free_rates_by_budget),
                criterion=above(1),
                reason=f"{DIGITS} A sketch raises the noise where accuracies already fall with it.",
                needs=(LONG, several("rate", 4, "rates")),
            ),
            _printed("table 1 and figure 8"),
        ),
    ),
    "price-training-heat-map": FigureClaims(
        paper=NAME,
        place="figures 3, 5 and 6",
        claims=(
            PaperClaim(
                statement="Optimising both rate and bits needs fewer bits a parameter than bits at the lowest rate.",
                source="section 7, figures 3, 5 and 6",
                measure=Finding(
                    "Fewest bits a parameter at the lowest rate over the fewest of all pairs, within the slack", _trained_bits_alone
                ),
                criterion=above(1),
                reason=DIGITS,
                needs=(LONG,),
            ),
        ),
    ),
    "price-training-cohort": FigureClaims(
        paper=NAME,
        place="figure 8",
        claims=(
            PaperClaim(
                statement="More clients at a rate of 15 or more reach a higher accuracy than few without a sketch.",
                source="appendix A.1, figure 8",
                measure=Finding(
                    "Points by which the most clients at a rate of 15 or more exceed the fewest without a sketch", _many_clients_ahead
                ),
                criterion=above(0),
                reason=DIGITS,
                needs=(LONG, at_least("clients_per_round", 1000, "clients a round")),
            ),
        ),
    ),
    "price-training-model": FigureClaims(
        paper=NAME,
        place="figure 4",
        claims=(
            PaperClaim(
                statement="A large model that is compressed to the size of a small one is more accurate by over 5 points.",
                source="section 7, figure 4a",
                measure=Finding("Points by which the large model exceeds the small one whose message is no shorter", _large_ahead),
                criterion=above(5),
                reason=DIGITS,
                needs=(LONG,),
            ),
        ),
    ),
    "price-training-threshold": FigureClaims(
        paper=NAME,
        place="appendix A.2",
        claims=(
            PaperClaim(
                statement="Thresholding the noisy sum of sketches brings no significant gain.",
                source="appendix A.2",
                measure=Finding("Points by which the best threshold exceeds no threshold", _threshold_gains),
                criterion=below(1),
                reason=DIGITS,
                needs=(LONG,),
            ),
        ),
    ),
}
