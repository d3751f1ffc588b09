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
        As it is written above the picture: what was found on the embedded data; of trainings that were run smaller only, what is compared.
    duration : str
        How long it takes on two cores, in words.
    """

    module: str
    title: str
    duration: str


_LISTED = {
    "mvu-fig1": ListedFigure(
        "mvu.fig1",
        "With three bits in and out the variance is within 1.5 % of the certified optimum; letters spread where ε is small",
        "ten seconds",
    ),
    "mvu-fig2": ListedFigure(
        "mvu.fig2",
        "Three bits of MVU have half of Laplace noise's variance or less; one bit is CLDP",
        "half a minute",
    ),
    "mvu-fig3": ListedFigure(
        "mvu.fig3",
        "On the L1 ball three bits a coordinate do about as well as Laplace noise; on the L2 ball mechanisms for the sphere win",
        "three and a half minutes; two fifths of them to design tables, which are kept in the cache",
    ),
    "mvu-fig5": ListedFigure(
        "mvu.fig5",
        "More bits out stop helping: less than one per cent is left from 3 bits at ε = 1, from 4 at 3, from 5 at 5",
        "a minute",
    ),
    "cpsgd-fig1": ListedFigure(
        "cpsgd.fig1",
        "Fine binomial noise is as good as Gaussian noise, which Theorem 1 of cpSGD hides",
        "a quarter of a minute",
    ),
    "binomial-slack": ListedFigure(
        "cpsgd.binomial_slack",
        "Theorem 1 of cpSGD overstates the ε of binomial noise by factors of 1.4 to 3.7",
        "five seconds",
    ),
    "secure-sum-bits": ListedFigure(
        "beyond.secure_sum_bits",
        "Discrete Gaussian and Skellam sums reach a trusted server's error with 12 to 18 bits, cpSGD with three to eight more",
        "four minutes",
    ),
    "plan-pareto": ListedFigure(
        "planner.pareto",
        "A secure sum of 20 bits a coordinate has a trusted server's error; local messages a thousand times it, with 7 bits in all",
        "half a minute",
    ),
    "dprec-accounting": ListedFigure(
        "dp_rec.accounting",
        "With DP-REC's noise a Gaussian sum at a trusted server has less than half of the ε that DP-REC's theorem states",
        "three quarters of a minute",
    ),
    "dprec-mean": ListedFigure(
        "dp_rec.mean",
        "DP-REC is as good as its prior: with a good one its bit beats SQKR's, with a poor one its error is mostly bias",
        "three minutes",
    ),
    "dprec-communication": ListedFigure(
        "dp_rec.communication",
        "DP-REC's published totals come out; whether the first model must be sent decides what is saved in both directions",
        "five seconds",
    ),
    "dprec-bits": ListedFigure(
        "dp_rec.bits",
        "Each bit of DP-REC halves the bias of a message; its error hardly falls beyond a few bits",
        "ten seconds",
    ),
    "price-rate": ListedFigure(
        "linear_compression.rate",
        "Compression adds the rate times the square of the mean's norm, whatever the noise",
        "about eight minutes",
    ),
    "price-bits": ListedFigure(
        "linear_compression.bits",
        "The larger the noise, the fewer bits a parameter suffice",
        "about ten minutes",
    ),
    "price-cohort": ListedFigure(
        "linear_compression.cohort",
        "At one ε a tenth of the communication costs a fifth more error, whatever the number of clients",
        "about a quarter of an hour",
    ),
    "price-dimension": ListedFigure(
        "linear_compression.dimension",
        "The larger the model, the more it can be compressed for the same factor of error",
        "about one minute",
    ),
    "price-rounds": ListedFigure(
        "linear_compression.rounds",
        "Averages over rounds of unbiased estimates overtake the answer zero",
        "about five minutes",
    ),
    "price-layers": ListedFigure(
        "linear_compression.layers",
        "A sketch of each layer is as good as one of the whole gradient; coordinates shared out by norm save a third",
        "about four minutes",
    ),
    "price-rows": ListedFigure(
        "linear_compression.rows",
        "At one size of a sketch the number of rows hardly matters",
        "about one and a half minutes",
    ),
    "price-needed-bits": ListedFigure(
        "linear_compression.needed_bits",
        "The more clients, the closer a sketch's bits are to those that its accuracy needs",
        "half a minute",
    ),
    "price-sparse": ListedFigure(
        "linear_compression.sparse",
        "The refitted Lasso is as good as an oracle, until the entries drown in noise and zero is better",
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
        "An exact code sends three times the bits that it needs, private messages hundreds of times what their error needs",
        "half a minute",
    ),
    "freq-regimes": ListedFigure(
        "frequencies.regimes",
        "Shuffled messages win with few bits or a large epsilon, histograms in a secure sum where their bits are allowed",
        "about two minutes",
    ),
    "freq-codes": ListedFigure(
        "frequencies.freq_codes",
        "Integer programs recover a histogram of ten clients from 20 sums, linear relaxations from up to 32",
        "about three minutes",
    ),
    "mvu-fig4": ListedFigure(
        "training.mvu_fig4",
        "A linear model by DP-SGD: accuracy against ε with Gaussian noise, noisy signs and MVU",
        "about an hour",
    ),
    "mvu-fig6": ListedFigure(
        "training.mvu_fig6",
        "A convolutional network by DP-SGD: accuracy against ε with Gaussian noise, noisy signs and MVU",
        "about three hours",
    ),
    "cpsgd-fig2": ListedFigure(
        "training.cpsgd_fig2",
        "One epoch by cpSGD, rotated or not, beside a trusted server's noise: accuracy against bits",
        "about two hours",
    ),
    "dprec-table1": ListedFigure(
        "training.dp_rec.table1",
        "DP-REC sends less than a hundredth of the bytes up, and is less accurate than Gaussian sums at equal ε",
        "about a quarter of an hour",
    ),
    "dprec-table3": ListedFigure(
        "training.dp_rec.table3",
        "Relative entropy coding without privacy, by tensors or by 64 coordinates: accuracy against bytes",
        "about 20 minutes",
    ),
    "dprec-fig1": ListedFigure(
        "training.dp_rec.fig1",
        "DP-REC and Gaussian sums at equal ε: accuracy against bytes up, and bytes both ways",
        "about 15 minutes",
    ),
    "dprec-fig2": ListedFigure(
        "training.dp_rec.fig2",
        "DP-REC at equal ε: accuracy against the bits of a group, beside no compression",
        "about 25 minutes",
    ),
    "dprec-fig3": ListedFigure(
        "training.dp_rec.fig3",
        "DP-REC, as published and as proven, and a trusted server's noise: accuracy against ε",
        "about 45 minutes",
    ),
    "dprec-local-epsilon": ListedFigure(
        "training.dp_rec.local_epsilon",
        "DP-REC and Gaussian noise at one ε of a message: accuracy against it",
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
        "A large model compressed, or a small one, at equal ε: accuracy against the size of a message",
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
