"""The figures that there are: what each shows and how long it takes, without the modules that make them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class ListedFigure:
    """A figure, as it is listed.

    Attributes
    ----------
    module : str
        What makes it, below `figures`: its entry is ``FIGURE`` there.
    title : str
        One line on what it shows.
    duration : str
        How long it takes on two cores, in words.
    """

    module: str
    title: str
    duration: str


_LISTED = {
    "mvu-fig1": ListedFigure(
        "mvu.fig1",
        "Optimised tables and letters with 3 bits in and out, as epsilon grows",
        "ten seconds",
    ),
    "mvu-fig2": ListedFigure(
        "mvu.fig2",
        "Scalar mean estimation: variance of one client's message, for every value on [-1, 1]",
        "half a minute",
    ),
    "mvu-fig3": ListedFigure(
        "mvu.fig3",
        "Vector mean estimation: error against epsilon and against bits, on the L1 ball and on the L2 ball",
        "about twenty minutes; five of them to design tables, which are kept in the cache",
    ),
    "mvu-fig5": ListedFigure(
        "mvu.fig5",
        "Tables with more and more bits out, and where more of them stop helping",
        "a minute",
    ),
    "cpsgd-fig1": ListedFigure(
        "cpsgd.fig1",
        "The least Gaussian and binomial noise that keeps a promise, against epsilon",
        "a quarter of a minute",
    ),
    "binomial-slack": ListedFigure(
        "cpsgd.binomial_slack",
        "By how much Theorem 1 of cpSGD overstates the epsilon of binomial noise",
        "five seconds",
    ),
    "secure-sum-bits": ListedFigure(
        "beyond.secure_sum_bits",
        "What bits buy in a secure sum: error against bits per coordinate, for all mechanisms with one promise",
        "four minutes",
    ),
    "plan-pareto": ListedFigure(
        "planner.pareto",
        "Which mechanism: error against bits in every trust model",
        "half a minute",
    ),
    "dprec-accounting": ListedFigure(
        "dp_rec.accounting",
        "Accounts of DP-REC in its paper's settings, beside Gaussian noise on the sum",
        "three quarters of a minute",
    ),
    "dprec-mean": ListedFigure(
        "dp_rec.mean",
        "Error of a mean by DP-REC, against bits, the clip ratio and epsilon, beside SQKR, PrivUnitG and a trusted server",
        "three minutes",
    ),
    "dprec-communication": ListedFigure(
        "dp_rec.communication",
        "Bytes of DP-REC's published federations in both directions, beside the paper's totals and other schemes",
        "five seconds",
    ),
    "dprec-bits": ListedFigure(
        "dp_rec.bits",
        "What few bits cost DP-REC at a fixed clip ratio: bias and error of one message",
        "ten seconds",
    ),
    "price-rate": ListedFigure(
        "linear_compression.rate",
        "Compression adds the rate times the square of the mean's norm, whatever the noise: error against compression rate",
        "about eight minutes",
    ),
    "price-bits": ListedFigure(
        "linear_compression.bits",
        "The larger the noise, the fewer bits a parameter: error for each pair of bits and compression rate",
        "about five minutes",
    ),
    "price-cohort": ListedFigure(
        "linear_compression.cohort",
        "At one epsilon a tenth of the communication costs a fifth more error: error against the number of clients",
        "about a quarter of an hour",
    ),
    "price-dimension": ListedFigure(
        "linear_compression.dimension",
        "The larger the model, the more it can be compressed for the same factor of error",
        "about one minute",
    ),
    "price-rounds": ListedFigure(
        "linear_compression.rounds",
        "Rounds: averages of unbiased estimates overtake the answer zero",
        "about five minutes",
    ),
    "price-layers": ListedFigure(
        "linear_compression.layers",
        "A sketch of each layer is as good as one of the whole gradient; coordinates shared out by norm save a third",
        "about four minutes",
    ),
    "price-rows": ListedFigure(
        "linear_compression.rows",
        "At one size of a sketch the number of rows hardly matters: error against rows",
        "about one and a half minutes",
    ),
    "price-needed-bits": ListedFigure(
        "linear_compression.needed_bits",
        "The price of compression: necessary and sufficient bits against clients times epsilon, with every mechanism",
        "half a minute",
    ),
    "price-sparse": ListedFigure(
        "linear_compression.sparse",
        "The refitted Lasso is as good as an oracle, until the entries drown in noise and zero is better: error against sparsity",
        "about one minute",
    ),
    "freq-fig2": ListedFigure(
        "frequencies.fig2",
        "A secure sum beats local messages on geometric frequencies at every epsilon, sketched or not",
        "one to two minutes",
    ),
    "freq-fig3": ListedFigure(
        "frequencies.fig3",
        "A secure sum beats local messages on Zipf's frequencies; at large epsilon a sketch's collisions remain",
        "one to two minutes",
    ),
    "freq-fig4": ListedFigure(
        "frequencies.fig4",
        "Geometric frequencies gain from a larger epsilon, sketched or not",
        "one to two minutes",
    ),
    "freq-fig5": ListedFigure(
        "frequencies.fig5",
        "A sketch of Zipf's frequencies stops gaining where its collisions exceed the noise",
        "one to two minutes",
    ),
    "freq-limits": ListedFigure(
        "frequencies.needed_bits",
        "Bits that frequencies need against bits that are used: every scheme a point",
        "half a minute",
    ),
    "freq-regimes": ListedFigure(
        "frequencies.regimes",
        "Shuffled messages win with few bits or a large epsilon, histograms in a secure sum where their bits are allowed",
        "about two minutes",
    ),
    "freq-codes": ListedFigure(
        "frequencies.freq_codes",
        "Exact secure histograms: success of recovery against the number of measurements",
        "about three minutes",
    ),
    "mvu-fig4": ListedFigure(
        "training.mvu_fig4",
        "At equal ε one bit of MVU trains no better than noisy signs, and a trusted server's noise costs far less than either",
        "about 40 minutes",
    ),
    "mvu-fig6": ListedFigure(
        "training.mvu_fig6",
        "A convolutional network needs a trusted server's noise: one bit a coordinate, of MVU or of signs, stays behind at equal ε",
        "about two hours",
    ),
    "cpsgd-fig2": ListedFigure(
        "training.cpsgd_fig2",
        "With enough bits for the budget cpSGD trains as well as a trusted server, rotated or not: accuracy against bits",
        "about two hours",
    ),
    "dprec-table1": ListedFigure(
        "training.dp_rec.table1",
        "DP-REC sends less than a hundredth of the bytes up, and is less accurate than Gaussian sums at equal ε",
        "about 25 minutes",
    ),
    "dprec-table3": ListedFigure(
        "training.dp_rec.table3",
        "Without privacy an index for each tensor, or for 64 coordinates, saves a hundredfold of the bytes up and costs accuracy",
        "about 20 minutes",
    ),
    "dprec-fig1": ListedFigure(
        "training.dp_rec.fig1",
        "DP-REC reaches its accuracy with far fewer bytes up; counted in both directions, little of that is left for a small model",
        "about 15 minutes",
    ),
    "dprec-fig2": ListedFigure(
        "training.dp_rec.fig2",
        "What DP-REC loses, it loses to noise rather than to bits: four bits a group train nearly as well as seven",
        "about 25 minutes",
    ),
    "dprec-fig3": ListedFigure(
        "training.dp_rec.fig3",
        "At equal ε DP-REC trains a less accurate model than a trusted server's noise, most of all at the ε that is proven",
        "about 45 minutes",
    ),
    "dprec-local-epsilon": ListedFigure(
        "training.dp_rec.local_epsilon",
        "At equal local ε a few bytes of DP-REC train as well as floats with Gaussian noise",
        "about 15 minutes",
    ),
    "price-training": ListedFigure(
        "training.price_training",
        "A sketch of a quarter of the model costs no accuracy; higher rates do, the less so the more clients take part",
        "about 1.5 hours",
    ),
    "price-training-heat-map": ListedFigure(
        "training.price_heat_map",
        "Accuracy falls slowly with the compression rate and the bits, until sums of too few bits hide nobody",
        "about 20 minutes",
    ),
    "price-training-cohort": ListedFigure(
        "training.price_cohort",
        "More clients a round buy compression: at one ε many whose updates are compressed train better than few whose are not",
        "about 20 minutes",
    ),
    "price-training-model": ListedFigure(
        "training.price_model",
        "Where messages are small, a small model trains better at equal ε than a large one that is compressed",
        "about 10 minutes",
    ),
}
LISTING: Mapping[str, ListedFigure] = MappingProxyType(_LISTED)
"""Figures by name, in their order."""
