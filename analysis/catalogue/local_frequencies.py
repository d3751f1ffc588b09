"""The registry's local entries for the frequencies of items."""

from collections.abc import Callable

from ...arguments import MOST_ITEMS
from ...design.contracts.calibration import per_round_epsilon
from ...design.contracts.domains import Categories
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.registry import Entry, Option, Values
from ...design.contracts.task import Task
from ...design.frequencies.hadamard_response import hadamard_response, recursive_hadamard_response
from ...design.frequencies.projective_geometry_response import projective_geometry_response
from ...design.frequencies.randomised_response import FrequencyRandomisedResponse
from ...design.frequencies.subset_selection import subset_selection
from ...design.frequencies.unary_encoding import UnaryEncoding
from .local import PURE_ACCOUNTS, REPLACE_ONE
from .lower_bounds import frequency_lower_bound

BLOCKS = Option("blocks", int, "Number of blocks of outputs, a power of two; by default the best number.", None, 1, 2 * MOST_ITEMS)
MESSAGE_BITS = Option(
    "message_bits", int, "Bits of the message: one, and log2 of the number of blocks; by default the best.", None, 1, 32, "bits"
)


def _entry(
    name: str,
    title: str,
    paper: str,
    build: Callable[[float, int, Values], Mechanism],
    options: tuple[Option, ...] = (),
    *,
    formula: str,
    use: str,
) -> Entry:
    """Return the entry of a mechanism built from a round's epsilon, the item count and options."""

    def calibrated(task: Task, values: Values) -> Mechanism:
        return build(per_round_epsilon(task.budget), task.categories(name), values)

    return Entry(
        name=name,
        title=title,
        paper=paper,
        domains=(Categories,),
        trust_model="local",
        adjacencies=REPLACE_ONE,
        accounts=PURE_ACCOUNTS,
        options=options,
        build=calibrated,
        lower_bound=lambda task: frequency_lower_bound(task, "local", unbiased=True),
        formula=formula,
        use=use,
    )


ENTRIES = (
    _entry(
        "frequency-randomised-response",
        "Each client's item, or any other one",
        "Kairouz, Bonawitz, Ramage 2016, Discrete distribution estimation under local privacy",
        lambda epsilon, categories, _: FrequencyRandomisedResponse(epsilon, categories),
        formula=(
            r"With $k$ items, the client's own item is sent with probability $e^\varepsilon/(e^\varepsilon + k - 1)$, and each other one "
            r"with $1/(e^\varepsilon + k - 1)$. From the share $s_x$ of messages that are $x$, the frequency is estimated as $$\hat f(x) = "
            r"\frac{(e^\varepsilon + k - 1)\, s_x - 1}{e^\varepsilon - 1}.$$"
        ),
        use=(
            "Use it for few items or a large epsilon. With many items `projective-geometry-response` or `subset-selection` have less error."
        ),
    ),
    _entry(
        "hadamard-response",
        "Hadamard response: an output of half of the item's block, or any other one",
        "Acharya, Sun, Zhang 2019, Hadamard response: Estimating distributions privately, efficiently, and with little communication",
        lambda epsilon, categories, values: hadamard_response(epsilon, categories, values["blocks"]),
        (BLOCKS,),
        formula=(
            r"Items are dealt to $h$ blocks of $m$ outputs. A set of half of a block's outputs belongs to each item, by a row $H_r$ of a "
            r"Hadamard matrix. Each output of the item's set has the probability $e^\varepsilon/Z$, each other one $1/Z$, with $Z = "
            r"(e^\varepsilon - 1)\, m/2 + h m$. With $D = 2h - 1 + e^\varepsilon$ the frequency is estimated as $$\hat f(x) = "
            r"\frac{D}{e^\varepsilon - 1} \cdot \frac1n \sum_{\text{messages } y \text{ of the block}} H_{r}[y].$$"
        ),
        use=(
            "Use it for many items in about log2(items) + 1 bits, with a fast decoder. `projective-geometry-response` has less error in "
            "about as many bits."
        ),
    ),
    _entry(
        "recursive-hadamard-response",
        "Recursive Hadamard response: the item's block and a sign, by randomised response",
        "Chen, Kairouz, Özgür 2020, Breaking the communication-privacy-accuracy trilemma",
        lambda epsilon, categories, values: recursive_hadamard_response(epsilon, categories, values["message_bits"]),
        (MESSAGE_BITS,),
        formula=(
            r"Items are dealt to $h$ blocks. Public randomness draws a row of a Hadamard matrix. The client's symbol is its block and the "
            r"row's sign at the place of its item: one of $2h$ symbols. It is sent with probability $$\frac{e^\varepsilon}{e^\varepsilon + "
            r"2h - 1},$$ and each other symbol with $1/(e^\varepsilon + 2h - 1)$. The variances are those of `hadamard-response` with as "
            r"many blocks."
        ),
        use=(
            "Use it where clients and server share public randomness and messages must be shorter than the name of an item: with one "
            "block, a single bit."
        ),
    ),
    _entry(
        "projective-geometry-response",
        "Projective geometry response: a point of the item's hyperplane, or any other one",
        "Feldman, Nelson, Nguyen, Talwar 2022, Private frequency estimation via projective geometry",
        lambda epsilon, categories, _: projective_geometry_response(epsilon, categories),
        formula=(
            r"Items and outputs of a block are points of a projective space over the numbers modulo a prime. Each point of the item's "
            r"hyperplane, $c$ of them, has the probability $e^\varepsilon/Z$, each other output $1/Z$, with $Z = (e^\varepsilon - 1)\, c + "
            r"h m$ for $h$ blocks of $m$ points. With $S_x$ the share of messages in the hyperplane of $x$, $T$ the share in its block, "
            r"and $i$ the number of points that two hyperplanes have in common, $$\hat f(x) = \frac{Z}{(e^\varepsilon - 1)(c - i)} "
            r"\left(S_x - \frac{i}{c}\, T\right) + \text{constant}.$$"
        ),
        use=(
            "Use it for many items whose messages must be private by themselves: the error is close to the least that is known, in about "
            "log2(items) bits."
        ),
    ),
    _entry(
        "unary-encoding",
        "Optimised unary encoding: a biased coin for every item",
        "Wang, Blocki, Li, Jha 2017, Locally differentially private protocols for frequency estimation",
        lambda epsilon, categories, _: UnaryEncoding(epsilon, categories),
        formula=(
            r"The message has one bit for each item. The bit of the client's item is 1 with probability $1/2$, each other bit with "
            r"probability $1/(e^\varepsilon + 1)$. From the share $s_x$ of messages with the bit of $x$, $$\hat f(x) = \frac{s_x - "
            r"\frac{1}{e^\varepsilon + 1}}{\frac12 - \frac{1}{e^\varepsilon + 1}}, \qquad \mathrm{Var} = \frac{4 "
            r"e^\varepsilon}{(e^\varepsilon - 1)^2} \text{ for items that the client does not hold.}$$"
        ),
        use=(
            "Use it for lists of moderate length where a message may have one bit for each item. Its variance does not depend on the "
            "number of items."
        ),
    ),
    _entry(
        "subset-selection",
        "Subset selection: a set of items that is likelier to contain the client's own",
        "Ye, Barg 2018, Optimal schemes for discrete distribution estimation under locally differential privacy",
        lambda epsilon, categories, _: subset_selection(epsilon, categories),
        formula=(
            r"The message is a set of $w$ of $k$ items, $e^\varepsilon$ times as likely if it contains the client's item. That item is in "
            r"the set with probability $p = \frac{w e^\varepsilon}{w e^\varepsilon + k - w}$, each other one with $q = \frac{w - p}{k - "
            r"1}$. From the share $s_x$ of sets with $x$, $$\hat f(x) = \frac{s_x - q}{p - q}.$$"
        ),
        use=(
            "Use it for lists of moderate length where the error must be least. `projective-geometry-response` has nearly the same error "
            "in shorter messages."
        ),
    ),
)
