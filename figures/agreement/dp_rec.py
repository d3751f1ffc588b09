"""Claims of Triastcyn, Reisser, Louizos 2021 about tables 1 and 3, figures 1 to 3 and appendix D."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ..dp_rec.mean import EQUAL, PAPER_CLIENTS, PAPER_ERRORS, SQKR, ZERO
from ..findings import Finding, ratios
from ..training.dp_rec.settings import DP_FEDAVG, ON_DATA, PAPER, PROVEN, PUBLISHED, Method
from .claims import FigureClaims, PaperClaim, above, at_least, at_most, below, several, within
from .training_claims import POINTS, differences, papers_accuracies, trained

NAME = "DP-REC"
# Seeds and rounds with which accuracies on the embedded digits are compared.
LONG = trained(200, 2)
EVERY_SETTING = several("dataset", 4, "data sets")
DIGITS = "The embedded digits have a smaller model and fewer clients than the paper's data."
# Bytes of the paper's DP-FedAvg on FEMNIST over those of DP-REC, the least saving of its table.
LEAST_SAVING = PAPER.value("total_gib")["uncompressed-1500"] / PAPER.value("total_gib")["dp-rec"]


def _accounts(frame: pd.DataFrame, name: str, column: str = "epsilon") -> "pd.Series[float]":
    """Return a column of an account over the paper's epsilon, by setting."""
    own = frame[frame["account"] == name]
    ratio: pd.Series[float] = own[column] / own["paper_epsilon"]
    return ratio


def _bits_for_infinite(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return the fewest bits of a message with which the theorem's epsilon is finite, where it is infinite."""
    bits: pd.Series[float] = frame.loc[np.isinf(frame["epsilon"]), "minimum_bits"]
    return bits


def _noise_over_gaussian(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return the noise of the theorem over that of a Gaussian sum by the older conversion, at the paper's epsilon and rounds."""
    published, gaussian = (frame[frame["account"] == name] for name in ("DP-REC, published", "Gaussian, classic"))
    return ratios(published, gaussian, ("dataset", "paper_epsilon"), "same_rounds_noise_multiplier")


def _error_over_papers(frame: pd.DataFrame, series: str) -> list[float]:
    """Return the least measured error of a series with one bit and no privacy, over the paper's."""
    own = frame[(frame["series"] == series) & (frame["index_bits"] == 1) & np.isinf(frame["target_epsilon"])]
    return [own["mean_squared_error"].min() / PAPER_ERRORS[series]]


def _over_sqkr(frame: pd.DataFrame, series: str) -> list[float]:
    """Return the least measured error of a series with one bit and no privacy, over SQKR's."""
    ours, sqkr = (_error_over_papers(frame, name)[0] * PAPER_ERRORS[name] for name in (series, SQKR))
    return [ours / sqkr]


def _units_from_paper(frame: pd.DataFrame) -> list[float]:
    """Return distances of totals from the paper's, in units of the last digit that the paper prints."""
    printed = frame.dropna(subset=["paper_gib"])
    return [
        abs(total - paper) * 10 ** len(f"{paper:g}".partition(".")[2])
        for total, paper in zip(printed["total_gib"], printed["paper_gib"], strict=True)
    ]


def _lost_at_lemma(frame: pd.DataFrame) -> list[float]:
    """Return the share of an update that the expectation lacks at the bits of lemma 2, over the share that the lemma permits."""
    numbers = []
    for _, own in frame.drop_duplicates(["clip_ratio", "group_bits"]).sort_values("group_bits").groupby("clip_ratio"):
        bits = own["lemma_bits"].iloc[0]
        if own["group_bits"].min() <= bits <= own["group_bits"].max():
            lost = 2 ** np.interp(bits, own["group_bits"], np.log2(own["relative_bias"].to_numpy()))
            numbers.append(lost / own["lost"].iloc[0])
    return numbers


def _ahead(frame: pd.DataFrame, upper: Method, lower: Method, by: Sequence[str] = ("data", "stated_epsilon")) -> "pd.Series[float]":
    """Return by how many points one method exceeds another at the epsilon that is stated of both."""
    first, second = (method.of(frame).groupby(list(by), as_index=False)["accuracy"].max() for method in (upper, lower))
    pairs = first.merge(second, on=list(by), suffixes=("", "_of_lower"))
    difference: pd.Series[float] = POINTS * (pairs["accuracy"] - pairs["accuracy_of_lower"])
    return difference


def _saved(frame: pd.DataFrame, column: str) -> list[float]:
    """Return bytes of floats after the last round over those of DP-REC as published."""
    last = frame[frame["round"] == frame["round"].max()]
    floats, sent = last.loc[last["mechanism"] == "none", column], PUBLISHED.of(last)[column]
    return [] if floats.empty or sent.empty else [floats.iloc[0] / sent.iloc[0]]


def _bits_apart(frame: pd.DataFrame, more: int, fewer: int) -> list[float]:
    """Return by how many points more bits of a group exceed fewer, for each account."""
    numbers = []
    for method in (PUBLISHED, PROVEN):
        own = method.of(frame).set_index("group_bits")["accuracy"]
        if more in own.index and fewer in own.index:
            numbers.append(POINTS * (own[more] - own[fewer]))
    return numbers


def _no_compression_over(frame: pd.DataFrame, bits: int) -> list[float]:
    """Return by how many points DP-FedAvg exceeds DP-REC as published with some bits of a group."""
    published = PUBLISHED.of(frame)
    coded = published.loc[published["group_bits"] == bits, "accuracy"]
    without = DP_FEDAVG.of(frame)["accuracy"]
    return [] if coded.empty or without.empty else [POINTS * (without.max() - coded.max())]


def _sent(frame: pd.DataFrame, upper: str, lower: str) -> "pd.Series[float]":
    """Return by how many points one way to send an update exceeds another."""
    return differences(frame, {"sent": upper}, {"sent": lower}, ("data",))


def _estimates(words: str, series: str) -> PaperClaim:
    """Return the paper's claim about the error of a mean by one bit and without privacy."""
    return PaperClaim(
        statement=f"{words} has a squared error of {PAPER_ERRORS[series]:g} for a mean of {PAPER_CLIENTS:,} vectors, by one bit.",
        source="appendix D.2",
        measure=Finding("Least error with one bit over the paper's", lambda frame: _error_over_papers(frame, series)),
        criterion=within(0.85, 1.15),
        reason="The paper prints a single digit, and does not state its clip ratio.",
        needs=(at_least("clients", PAPER_CLIENTS),),
    )


CLAIMS: Mapping[str, FigureClaims] = {
    "dprec-accounting": FigureClaims(
        paper=NAME,
        place="table 1",
        claims=(
            PaperClaim(
                statement="The clip ratios and bits of the paper's settings keep its epsilons.",
                source="table 1 and appendix C, by Theorem 1",
                measure=Finding("Epsilon by the theorem as printed over the paper's", lambda frame: _accounts(frame, "DP-REC, published")),
                criterion=within(0.95, 1.05),
                reason="With six groups of 7 bits on StackOverflow the theorem gives no finite epsilon.",
                evidence=(Finding("Fewest bits of a message where it is infinite", _bits_for_infinite),),
                needs=(EVERY_SETTING,),
            ),
            PaperClaim(
                statement="The noise of the paper's DP-FedAvg keeps the same epsilons.",
                source="table 1 and appendix C",
                measure=Finding(
                    "Proven epsilon of that noise over the paper's", lambda frame: _accounts(frame, "Gaussian, pld", "paper_noise_epsilon")
                ),
                criterion=at_most(1),
                needs=(EVERY_SETTING,),
            ),
            PaperClaim(
                statement="For an equivalent guarantee DP-REC needs nearly double the noise of a Gaussian mechanism.",
                source="appendix B.1",
                measure=Finding("Noise of the theorem over that of Gaussian sums by the older conversion", _noise_over_gaussian),
                criterion=within(1.5, 2),
                reason="The ratio depends on the setting: sampling, rounds and the orders that decide.",
                needs=(EVERY_SETTING,),
            ),
        ),
    ),
    "dprec-mean": FigureClaims(
        paper=NAME,
        place="appendix D.2",
        claims=(
            _estimates("SQKR", SQKR),
            _estimates("DP-REC with a prior at zero", ZERO),
            _estimates("DP-REC with a better prior", EQUAL),
            PaperClaim(
                statement="With a poorly informed prior SQKR has slightly less error than DP-REC.",
                source="appendix D.2",
                measure=Finding(
                    "Least error of DP-REC with a prior at zero over SQKR's, with one bit", lambda frame: _over_sqkr(frame, ZERO)
                ),
                criterion=above(1),
                needs=(at_least("clients", PAPER_CLIENTS),),
            ),
            PaperClaim(
                statement="With a better prior DP-REC is comparable with SQKR, or outperforms it.",
                source="appendix D.2",
                measure=Finding(
                    "Least error of DP-REC with a prior at 1/√d over SQKR's, with one bit", lambda frame: _over_sqkr(frame, EQUAL)
                ),
                criterion=at_most(1),
                needs=(at_least("clients", PAPER_CLIENTS),),
            ),
        ),
    ),
    "dprec-communication": FigureClaims(
        paper=NAME,
        place="tables 1 and 3",
        claims=(
            PaperClaim(
                statement="The trainings of all methods send the printed totals of GB.",
                source="tables 1 and 3",
                measure=Finding("Distance from the printed total, in units of its last digit", _units_from_paper),
                criterion=at_most(0.5),
                reason="Totals are counted from the model's parameters, the clients and the rounds that the paper states, in GiB.",
            ),
        ),
    ),
    "dprec-bits": FigureClaims(
        paper=NAME,
        place="lemma 2",
        claims=(
            PaperClaim(
                statement="A bound on the divergence limits the bits that a message needs.",
                source="section 3, lemma 2",
                measure=Finding("Share of an update that is lost at the lemma's bits, over the share that it permits", _lost_at_lemma),
                criterion=at_most(1),
            ),
        ),
    ),
    "dprec-table1": FigureClaims(
        paper=NAME,
        place="table 1",
        claims=(
            PaperClaim(
                statement="At equal epsilon DP-FedAvg reaches a higher accuracy than DP-REC.",
                source="section 4, table 1",
                measure=Finding("Points by which DP-FedAvg exceeds DP-REC as published", lambda frame: _ahead(frame, DP_FEDAVG, PUBLISHED)),
                criterion=above(0),
                reason=DIGITS,
                needs=(LONG,),
            ),
            PaperClaim(
                statement=f"In both directions DP-REC sends at least {LEAST_SAVING:.0f} times fewer bytes than floats.",
                source="section 4, table 1",
                measure=Finding(
                    "Bytes of floats over those of DP-REC as published, both ways", lambda frame: PUBLISHED.of(frame)["times_fewer_bytes"]
                ),
                criterion=above(round(LEAST_SAVING)),
                reason="A small model is sent in few bytes, and a client downloads all messages that it has missed.",
                evidence=(Finding("Bytes up alone have a ratio of", lambda frame: PUBLISHED.of(frame)["times_fewer_bytes_up"]),),
                needs=(LONG,),
            ),
            papers_accuracies("table 1", "paper_percent", 2, tuple(ON_DATA)),
        ),
    ),
    "dprec-table3": FigureClaims(
        paper=NAME,
        place="table 3",
        claims=(
            PaperClaim(
                statement="Without privacy floats are more accurate than groups of 64 coordinates.",
                source="appendix D.4, table 3",
                measure=Finding("Points by which floats exceed groups of 64", lambda frame: _sent(frame, "floats", "groups")),
                criterion=above(0),
                reason=DIGITS,
                needs=(LONG,),
            ),
            PaperClaim(
                statement="Groups of 64 coordinates are more accurate than a group for each tensor.",
                source="appendix D.4, table 3",
                measure=Finding("Points by which groups of 64 exceed tensors", lambda frame: _sent(frame, "groups", "tensors")),
                criterion=above(0),
                reason=DIGITS,
                needs=(LONG,),
            ),
            papers_accuracies("table 3", "paper_femnist_percent", 2, (PAPER.data,)),
        ),
    ),
    "dprec-fig1": FigureClaims(
        paper=NAME,
        place="figure 1",
        claims=(
            PaperClaim(
                statement=f"DP-REC sends at least {LEAST_SAVING:.0f} times fewer bytes in both directions together.",
                source="section 4, figure 1",
                measure=Finding(
                    "Bytes of both directions of floats over those of DP-REC as published", lambda frame: _saved(frame, "megabytes")
                ),
                criterion=above(round(LEAST_SAVING)),
                reason="A small model leaves little to save, as a client downloads the messages that it has missed, or the model.",
                evidence=(Finding("Bytes up alone have a ratio of", lambda frame: _saved(frame, "megabytes_up")),),
                needs=(trained(200, 1),),
            ),
        ),
    ),
    "dprec-fig2": FigureClaims(
        paper=NAME,
        place="figure 2",
        claims=(
            PaperClaim(
                statement="After 4 bits further bits bring very small improvements.",
                source="section 4, figure 2",
                measure=Finding("Points by which 7 bits of a group exceed 4", lambda frame: _bits_apart(frame, 7, 4)),
                criterion=below(2),
                reason=DIGITS,
                needs=(LONG,),
            ),
            PaperClaim(
                statement="With 7 bits the accuracy is very similar to that without compression.",
                source="section 4, figure 2",
                measure=Finding(
                    "Points by which DP-FedAvg exceeds DP-REC as published with 7 bits", lambda frame: _no_compression_over(frame, 7)
                ),
                criterion=within(-2, 2),
                reason="DP-FedAvg adds less noise to the sum than DP-REC's samples have.",
                compared="Compared is DP-FedAvg, in place of the paper's samples without compression.",
                needs=(LONG,),
            ),
        ),
    ),
    "dprec-fig3": FigureClaims(
        paper=NAME,
        place="figure 3",
        claims=(
            PaperClaim(
                statement="At each epsilon DP-FedAvg is more accurate than DP-REC.",
                source="section 4 and appendix D.1, figure 3",
                measure=Finding("Points by which DP-FedAvg exceeds DP-REC as published", lambda frame: _ahead(frame, DP_FEDAVG, PUBLISHED)),
                criterion=above(0),
                reason=DIGITS,
                evidence=(
                    Finding("Points by which it exceeds DP-REC at the proven epsilon", lambda frame: _ahead(frame, DP_FEDAVG, PROVEN)),
                ),
                needs=(LONG,),
            ),
        ),
    ),
    "dprec-local-epsilon": FigureClaims(
        paper=NAME,
        place="section 4.1",
        claims=(
            PaperClaim(
                statement="At equal epsilon of a message DP-REC loses 2.7 to 5.5 points to Gaussian noise on each update.",
                source="section 4.1",
                measure=Finding(
                    "Points by which Gaussian noise exceeds DP-REC at equal epsilon of a message",
                    lambda frame: differences(frame, {"mechanism": "gaussian"}, {"mechanism": "dp-rec"}, ("data", "round_epsilon")),
                ),
                criterion=within(2.7, 5.5),
                reason="The paper does not state its local epsilons. " + DIGITS,
                needs=(LONG,),
            ),
        ),
    ),
}
