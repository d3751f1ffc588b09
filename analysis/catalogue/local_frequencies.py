"""The registry's local entries for the frequencies of items, except randomised response."""

from collections.abc import Callable

from ...arguments import MOST_ITEMS
from ...design.contracts.calibration import per_round_epsilon
from ...design.contracts.domains import Categories
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.registry import Entry, Option, Values
from ...design.contracts.task import Task
from ...design.frequencies.hadamard_response import hadamard_response, recursive_hadamard_response
from ...design.frequencies.projective_geometry_response import projective_geometry_response
from ...design.frequencies.subset_selection import subset_selection
from ...design.frequencies.unary_encoding import UnaryEncoding
from .local import PURE_ACCOUNTS, REPLACE_ONE
from .lower_bounds import frequency_lower_bound

BLOCKS = Option("blocks", int, "Number of blocks of outputs, a power of two; by default the best number.", None, 1, 2 * MOST_ITEMS)
MESSAGE_BITS = Option(
    "message_bits", int, "Bits of the message: one, and log2 of the number of blocks; by default the best.", None, 1, 32, "bits"
)


def _entry(name: str, title: str, paper: str, build: Callable[[float, int, Values], Mechanism], options: tuple[Option, ...] = ()) -> Entry:
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
    )


ENTRIES = (
    _entry(
        "hadamard-response",
        "Hadamard response: an output of half of the item's block, or any other one",
        "Acharya, Sun, Zhang 2019, Hadamard response: Estimating distributions privately, efficiently, and with little communication",
        lambda epsilon, categories, values: hadamard_response(epsilon, categories, values["blocks"]),
        (BLOCKS,),
    ),
    _entry(
        "recursive-hadamard-response",
        "Recursive Hadamard response: the item's block and a sign, by randomised response",
        "Chen, Kairouz, Özgür 2020, Breaking the communication-privacy-accuracy trilemma",
        lambda epsilon, categories, values: recursive_hadamard_response(epsilon, categories, values["message_bits"]),
        (MESSAGE_BITS,),
    ),
    _entry(
        "projective-geometry-response",
        "Projective geometry response: a point of the item's hyperplane, or any other one",
        "Feldman, Nelson, Nguyen, Talwar 2022, Private frequency estimation via projective geometry",
        lambda epsilon, categories, _: projective_geometry_response(epsilon, categories),
    ),
    _entry(
        "unary-encoding",
        "Optimised unary encoding: a biased coin for every item",
        "Wang, Blocki, Li, Jha 2017, Locally differentially private protocols for frequency estimation",
        lambda epsilon, categories, _: UnaryEncoding(epsilon, categories),
    ),
    _entry(
        "subset-selection",
        "Subset selection: a set of items that is likelier to contain the client's own",
        "Ye, Barg 2018, Optimal schemes for discrete distribution estimation under locally differential privacy",
        lambda epsilon, categories, _: subset_selection(epsilon, categories),
    ),
)
