"""The list of figures, with titles and processor times, without importing their modules."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class ListedFigure:
    """A listed figure: its module, title and processor time.

    Attributes
    ----------
    module : str
        Module below `figures` that makes the figure. The module's ``FIGURE`` is its entry, or ``FIGURES`` holds several in the order of the
        listing.
    title : str
        The comparison, without findings and numbers, which `FigureEntry.findings` compute from the table.
    seconds, quick_seconds : float
        Recorded processor time in full size and with ``quick``, designs of tables included.
    """

    module: str
    title: str
    seconds: float
    quick_seconds: float


_LISTED = {
    "mvu-fig1": ListedFigure(
        "mvu.fig1",
        "Optimised MVU tables, their letters and certificates, by ε",
        seconds=44,
        quick_seconds=44,
    ),
    "mvu-fig2": ListedFigure(
        "mvu.fig2",
        "Scalar mean estimation: variance of a message against the clients' value",
        seconds=60,
        quick_seconds=4,
    ),
    "mvu-fig3": ListedFigure(
        "mvu.fig3",
        "Vector mean estimation against ε and bits",
        seconds=420,
        quick_seconds=10,
    ),
    "mvu-fig5": ListedFigure(
        "mvu.fig5",
        "MVU tables by bits out: variance, and gap to the certified bound",
        seconds=120,
        quick_seconds=6,
    ),
    "cpsgd-fig1": ListedFigure(
        "cpsgd.fig1",
        "Least binomial and Gaussian noise against ε",
        seconds=30,
        quick_seconds=4,
    ),
    "binomial-slack": ListedFigure(
        "cpsgd.binomial_slack",
        "ε of binomial noise by cpSGD's theorem and by an exact account",
        seconds=3,
        quick_seconds=3,
    ),
    "letters-gap": ListedFigure(
        "beyond.letters_gap",
        "Gaps of tables of as many bits, and of unlimited bits, against ε",
        seconds=360,
        quick_seconds=3,
    ),
    "secure-sum-bits": ListedFigure(
        "beyond.secure_sum_bits",
        "Secure sums: error against bits",
        seconds=480,
        quick_seconds=13,
    ),
    "sampled-coordinates": ListedFigure(
        "beyond.sampled_coordinates",
        "Sampled coordinates and sketches: error against bits",
        seconds=20,
        quick_seconds=5,
    ),
    "mechanism-map": ListedFigure(
        "beyond.mechanism_map",
        "The best mechanism by bits and ε in each trust model",
        seconds=410,
        quick_seconds=34,
    ),
    "error-parts": ListedFigure(
        "beyond.error_parts",
        "Errors by cause in typical settings",
        seconds=28,
        quick_seconds=6,
    ),
    "plan-pareto": ListedFigure(
        "planner.pareto",
        "Designs for a mean: error against bits, by trust model",
        seconds=60,
        quick_seconds=8,
    ),
    "dprec-accounting": ListedFigure(
        "dp_rec.accounting",
        "Accounts of DP-REC in its paper's settings",
        seconds=90,
        quick_seconds=5,
    ),
    "dprec-mean": ListedFigure(
        "dp_rec.mean",
        "DP-REC's error of a mean, beside other mechanisms'",
        seconds=360,
        quick_seconds=12,
    ),
    "dprec-communication": ListedFigure(
        "dp_rec.communication",
        "Bytes of DP-REC's published federations in both directions",
        seconds=3,
        quick_seconds=3,
    ),
    "dprec-bits": ListedFigure(
        "dp_rec.bits",
        "Bias and error of DP-REC's messages against the bits of a group",
        seconds=20,
        quick_seconds=4,
    ),
    "price-rate": ListedFigure(
        "linear_compression.rate",
        "Sketches in a secure sum: error against the compression rate, by noise",
        seconds=960,
        quick_seconds=8,
    ),
    "price-bits": ListedFigure(
        "linear_compression.bits",
        "Sketches in a secure sum: error by bits and compression rate, for each noise",
        seconds=1200,
        quick_seconds=12,
    ),
    "price-cohort": ListedFigure(
        "linear_compression.cohort",
        "Sketches in a secure sum at equal ε: error against the number of clients",
        seconds=1800,
        quick_seconds=5,
    ),
    "price-dimension": ListedFigure(
        "linear_compression.dimension",
        "Sketches in a secure sum: error by rate and dimension",
        seconds=120,
        quick_seconds=4,
    ),
    "price-rounds": ListedFigure(
        "linear_compression.rounds",
        "Sketches in a secure sum: error of an average over rounds, beside zero's",
        seconds=600,
        quick_seconds=4,
    ),
    "price-layers": ListedFigure(
        "linear_compression.layers",
        "Sketches of gradients and of their layers",
        seconds=480,
        quick_seconds=7,
    ),
    "price-rows": ListedFigure(
        "linear_compression.rows",
        "Sketches in a secure sum: error against the rows of a sketch of equal size",
        seconds=180,
        quick_seconds=5,
    ),
    "price-needed-bits": ListedFigure(
        "linear_compression.needed_bits",
        "Necessary and sufficient bits of a message for a mean, and those of mechanisms",
        seconds=60,
        quick_seconds=20,
    ),
    "price-sparse": ListedFigure(
        "linear_compression.sparse",
        "Sparse recovery from noisy measurements: error against sparsity, by decoder",
        seconds=120,
        quick_seconds=4,
    ),
    "freq-fig2": ListedFigure(
        "frequencies.error_panels",
        "Geometric frequencies: error against clients",
        seconds=180,
        quick_seconds=14,
    ),
    "freq-fig3": ListedFigure(
        "frequencies.error_panels",
        "Zipf's frequencies: error against clients",
        seconds=180,
        quick_seconds=14,
    ),
    "freq-fig4": ListedFigure(
        "frequencies.error_panels",
        "Geometric frequencies: error against ε",
        seconds=180,
        quick_seconds=15,
    ),
    "freq-fig5": ListedFigure(
        "frequencies.error_panels",
        "Zipf's frequencies: error against ε",
        seconds=180,
        quick_seconds=15,
    ),
    "freq-limits": ListedFigure(
        "frequencies.needed_bits",
        "Frequencies: needed bits, and bits of schemes",
        seconds=60,
        quick_seconds=6,
    ),
    "freq-regimes": ListedFigure(
        "frequencies.regimes",
        "Mechanisms for items of the least predicted error",
        seconds=240,
        quick_seconds=11,
    ),
    "freq-codes": ListedFigure(
        "frequencies.freq_codes",
        "Exact histograms from sums of codes: share recovered against the measurements",
        seconds=360,
        quick_seconds=6,
    ),
    "mvu-fig4": ListedFigure(
        "training.dp_sgd",
        "A linear model by DP-SGD: accuracy against ε with Gaussian noise, noisy signs and MVU",
        seconds=7200,
        quick_seconds=43,
    ),
    "mvu-fig6": ListedFigure(
        "training.dp_sgd",
        "A convolutional network by DP-SGD: accuracy against ε with Gaussian noise, noisy signs and MVU",
        seconds=21600,
        quick_seconds=110,
    ),
    "cpsgd-fig2": ListedFigure(
        "training.cpsgd_fig2",
        "An epoch by cpSGD, rotated and plain, beside a trusted server's noise: accuracy against bits",
        seconds=28800,
        quick_seconds=123,
    ),
    "dprec-table1": ListedFigure(
        "training.dp_rec.table1",
        "DP-REC and other mechanisms at equal ε: accuracy against bytes",
        seconds=1800,
        quick_seconds=22,
    ),
    "dprec-table3": ListedFigure(
        "training.dp_rec.table3",
        "Relative entropy coding without privacy, by tensors or by groups: accuracy against bytes",
        seconds=2400,
        quick_seconds=17,
    ),
    "dprec-fig1": ListedFigure(
        "training.dp_rec.fig1",
        "DP-REC and Gaussian sums at equal ε: accuracy against bytes up, and bytes both ways",
        seconds=1800,
        quick_seconds=22,
    ),
    "dprec-fig2": ListedFigure(
        "training.dp_rec.fig2",
        "DP-REC at equal ε: accuracy against the bits of a group, beside Gaussian noise",
        seconds=3000,
        quick_seconds=30,
    ),
    "dprec-fig3": ListedFigure(
        "training.dp_rec.fig3",
        "DP-REC, as published and as proven, and a trusted server's noise: accuracy against ε",
        seconds=5400,
        quick_seconds=64,
    ),
    "dprec-local-epsilon": ListedFigure(
        "training.dp_rec.local_epsilon",
        "DP-REC and Gaussian noise at equal ε of a message: accuracy against it",
        seconds=1800,
        quick_seconds=36,
    ),
    "price-training": ListedFigure(
        "training.price_training",
        "Sketches in a secure sum: accuracy against the compression rate, by budget and clients",
        seconds=10800,
        quick_seconds=39,
    ),
    "price-training-heat-map": ListedFigure(
        "training.price_heat_map",
        "Sketches in a secure sum: accuracy for each pair of bits and compression rate",
        seconds=2400,
        quick_seconds=28,
    ),
    "price-training-cohort": ListedFigure(
        "training.price_cohort",
        "Sketches in a secure sum at equal ε: accuracy against the clients of a round",
        seconds=2400,
        quick_seconds=36,
    ),
    "price-training-model": ListedFigure(
        "training.price_model",
        "A large model compressed and a small model at equal ε: accuracy against the size of a message",
        seconds=1200,
        quick_seconds=35,
    ),
    "price-training-threshold": ListedFigure(
        "training.price_threshold",
        "The noisy sum of sketches thresholded, with an error memory: accuracy against the compression rate",
        seconds=2400,
        quick_seconds=25,
    ),
}
LISTING: Mapping[str, ListedFigure] = MappingProxyType(_LISTED)
"""Figures by name, in their order."""
