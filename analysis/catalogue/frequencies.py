"""The registry's entries for the frequencies of items, in every trust model."""

from collections.abc import Callable

from ...design.contracts.calibration import per_round_epsilon
from ...design.contracts.domains import Categories
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.registry import Entry, Values
from ...design.contracts.task import Task
from ...design.frequencies.randomised_response import FrequencyRandomisedResponse
from .local import PURE_ACCOUNTS
from .lower_bounds import frequency_lower_bound


def _pure(name: str, build: Callable[[float, int], Mechanism]) -> Callable[[Task, Values], Mechanism]:
    return lambda task, _: build(per_round_epsilon(task.budget), task.categories(name))


def _local(name: str, title: str, paper: str, build: Callable[[float, int], Mechanism], *, formula: str, use: str) -> Entry:
    """Return the entry of a purely private local mechanism without options."""
    return Entry(
        name=name,
        title=title,
        paper=paper,
        domains=(Categories,),
        trust_model="local",
        adjacencies=("replace-one",),
        accounts=PURE_ACCOUNTS,
        options=(),
        build=_pure(name, build),
        lower_bound=lambda task: frequency_lower_bound(task, "local", unbiased=True),
        formula=formula,
        use=use,
    )


ENTRIES = (
    _local(
        "frequency-randomised-response",
        "Each client's item, or any other one",
        "Kairouz, Bonawitz, Ramage 2016, Discrete distribution estimation under local privacy",
        FrequencyRandomisedResponse,
        formula=(
            r"With $k$ items, the client's own item is sent with probability $e^\varepsilon/(e^\varepsilon + k - 1)$, and each other one "
            r"with $1/(e^\varepsilon + k - 1)$. From the share $s_x$ of messages that are $x$, the frequency is estimated as $$\hat f(x) = "
            r"\frac{(e^\varepsilon + k - 1)\, s_x - 1}{e^\varepsilon - 1}.$$"
        ),
        use=(
            "Use it for few items or a large epsilon. With many items `projective-geometry-response` or `subset-selection` have less error."
        ),
    ),
)
