"""The list of figures, with titles and running times, without importing their modules."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class ListedFigure:
    """A listed figure: its module, title and running time.

    Attributes
    ----------
    module : str
        Module below `figures` that makes the figure. The module's ``FIGURE`` is its entry, or ``FIGURES`` holds several in the order of the
        listing.
    title : str
        The comparison, without findings and numbers, which `FigureEntry.findings` compute from the table.
    duration : str
        Running time on two cores, in words.
    """

    module: str
    title: str
    duration: str


_LISTED = {
    "mvu-fig1": ListedFigure(
        "mvu.fig1",
        "Optimised MVU tables, their letters and certificates, by ε",
        "ten seconds",
    ),
    "mvu-fig2": ListedFigure(
        "mvu.fig2",
        "Scalar mean estimation: variance of a message against the clients' value",
        "half a minute",
    ),
    "mvu-fig3": ListedFigure(
        "mvu.fig3",
        "Vector mean estimation against ε and bits",
        "three and a half minutes; two fifths of them to design tables, which are kept in the cache",
    ),
    "mvu-fig5": ListedFigure(
        "mvu.fig5",
        "MVU tables by bits out: variance, and gap to the certified bound",
        "a minute",
    ),
    "cpsgd-fig1": ListedFigure(
        "cpsgd.fig1",
        "Least binomial and Gaussian noise against ε",
        "a quarter of a minute",
    ),
    "binomial-slack": ListedFigure(
        "cpsgd.binomial_slack",
        "ε of binomial noise by cpSGD's theorem and by an exact account",
        "five seconds",
    ),
    "letters-gap": ListedFigure(
        "beyond.letters_gap",
        "Gaps of tables of as many bits, and of unlimited bits, against ε",
        "three minutes",
    ),
    "secure-sum-bits": ListedFigure(
        "beyond.secure_sum_bits",
        "Secure sums: error against bits",
        "four minutes",
    ),
    "sampled-coordinates": ListedFigure(
        "beyond.sampled_coordinates",
        "Sampled coordinates and sketches: error against bits",
        "ten seconds",
    ),
    "mechanism-map": ListedFigure(
        "beyond.mechanism_map",
        "The best mechanism by bits and ε in each trust model",
        "about eight minutes",
    ),
    "plan-pareto": ListedFigure(
        "planner.pareto",
        "Designs for a mean: error against bits, by trust model",
        "half a minute",
    ),
    "dprec-accounting": ListedFigure(
        "dp_rec.accounting",
        "Accounts of DP-REC in its paper's settings",
        "three quarters of a minute",
    ),
    "dprec-mean": ListedFigure(
        "dp_rec.mean",
        "DP-REC's error of a mean, beside other mechanisms'",
        "three minutes",
    ),
    "dprec-communication": ListedFigure(
        "dp_rec.communication",
        "Bytes of DP-REC's published federations in both directions",
        "five seconds",
    ),
    "dprec-bits": ListedFigure(
        "dp_rec.bits",
        "Bias and error of DP-REC's messages against the bits of a group",
        "ten seconds",
    ),
    "price-rate": ListedFigure(
        "linear_compression.rate",
        "Sketches in a secure sum: error against the compression rate, by noise",
        "about eight minutes",
    ),
    "price-bits": ListedFigure(
        "linear_compression.bits",
        "Sketches in a secure sum: error by bits and compression rate, for each noise",
        "about ten minutes",
    ),
    "price-cohort": ListedFigure(
        "linear_compression.cohort",
        "Sketches in a secure sum at equal ε: error against the number of clients",
        "about a quarter of an hour",
    ),
    "price-dimension": ListedFigure(
        "linear_compression.dimension",
        "Sketches in a secure sum: error by rate and dimension",
        "about one minute",
    ),
    "price-rounds": ListedFigure(
        "linear_compression.rounds",
        "Sketches in a secure sum: error of an average over rounds, beside zero's",
        "about five minutes",
    ),
    "price-layers": ListedFigure(
        "linear_compression.layers",
        "Sketches of gradients and of their layers",
        "about four minutes",
    ),
    "price-rows": ListedFigure(
        "linear_compression.rows",
        "Sketches in a secure sum: error against the rows of a sketch of equal size",
        "about one and a half minutes",
    ),
    "price-needed-bits": ListedFigure(
        "linear_compression.needed_bits",
        "Necessary and sufficient bits of a message for a mean, and those of mechanisms",
        "half a minute",
    ),
    "price-sparse": ListedFigure(
        "linear_compression.sparse",
        "Sparse recovery from noisy measurements: error against sparsity, by decoder",
        "about one minute",
    ),
    "freq-fig2": ListedFigure(
        "frequencies.error_panels",
        "Geometric frequencies: error against clients",
        "one to two minutes",
    ),
    "freq-fig3": ListedFigure(
        "frequencies.error_panels",
        "Zipf's frequencies: error against clients",
        "one to two minutes",
    ),
    "freq-fig4": ListedFigure(
        "frequencies.error_panels",
        "Geometric frequencies: error against ε",
        "one to two minutes",
    ),
    "freq-fig5": ListedFigure(
        "frequencies.error_panels",
        "Zipf's frequencies: error against ε",
        "one to two minutes",
    ),
    "freq-limits": ListedFigure(
        "frequencies.needed_bits",
        "Frequencies: needed bits, and bits of schemes",
        "half a minute",
    ),
    "freq-regimes": ListedFigure(
        "frequencies.regimes",
        "Mechanisms for items of the least predicted error",
        "about two minutes",
    ),
    "freq-codes": ListedFigure(
        "frequencies.freq_codes",
        "Exact histograms from sums of codes: share recovered against the measurements",
        "about three minutes",
    ),
    "mvu-fig4": ListedFigure(
        "training.dp_sgd",
        "A linear model by DP-SGD: accuracy against ε with Gaussian noise, noisy signs and MVU",
        "about an hour",
    ),
    "mvu-fig6": ListedFigure(
        "training.dp_sgd",
        "A convolutional network by DP-SGD: accuracy against ε with Gaussian noise, noisy signs and MVU",
        "about three hours",
    ),
    "cpsgd-fig2": ListedFigure(
        "training.cpsgd_fig2",
        "An epoch by cpSGD, rotated and plain, beside a trusted server's noise: accuracy against bits",
        "about two hours",
    ),
    "dprec-table1": ListedFigure(
        "training.dp_rec.table1",
        "DP-REC and other mechanisms at equal ε: accuracy against bytes",
        "about a quarter of an hour",
    ),
    "dprec-table3": ListedFigure(
        "training.dp_rec.table3",
        "Relative entropy coding without privacy, by tensors or by groups: accuracy against bytes",
        "about 20 minutes",
    ),
    "dprec-fig1": ListedFigure(
        "training.dp_rec.fig1",
        "DP-REC and Gaussian sums at equal ε: accuracy against bytes up, and bytes both ways",
        "about 15 minutes",
    ),
    "dprec-fig2": ListedFigure(
        "training.dp_rec.fig2",
        "DP-REC at equal ε: accuracy against the bits of a group, beside Gaussian noise",
        "about 25 minutes",
    ),
    "dprec-fig3": ListedFigure(
        "training.dp_rec.fig3",
        "DP-REC, as published and as proven, and a trusted server's noise: accuracy against ε",
        "about 45 minutes",
    ),
    "dprec-local-epsilon": ListedFigure(
        "training.dp_rec.local_epsilon",
        "DP-REC and Gaussian noise at equal ε of a message: accuracy against it",
        "about 15 minutes",
    ),
    "price-training": ListedFigure(
        "training.price_training",
        "Sketches in a secure sum: accuracy against the compression rate, by budget and clients",
        "about 1.5 hours",
    ),
    "price-training-heat-map": ListedFigure(
        "training.price_heat_map",
        "Sketches in a secure sum: accuracy for each pair of bits and compression rate",
        "about 20 minutes",
    ),
    "price-training-cohort": ListedFigure(
        "training.price_cohort",
        "Sketches in a secure sum at equal ε: accuracy against the clients of a round",
        "about 20 minutes",
    ),
    "price-training-model": ListedFigure(
        "training.price_model",
        "A large model compressed and a small model at equal ε: accuracy against the size of a message",
        "about 10 minutes",
    ),
    "price-training-threshold": ListedFigure(
        "training.price_threshold",
        "The noisy sum of sketches thresholded, with an error memory: accuracy against the compression rate",
        "about 20 minutes",
    ),
}
LISTING: Mapping[str, ListedFigure] = MappingProxyType(_LISTED)
"""Figures by name, in their order."""
