"""
Adding a mechanism
==================

A mechanism of your own is a class and a registry entry. Plans, simulations, sweeps and audits then include it.
"""

# %%
# The example rounds a number to an end of the interval at random, and flips that bit with probability 1 / (e^epsilon + 1).

import math
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

import quietbits
from quietbits.arguments import check_integer
from quietbits.design.noise.random_words import word_source


@dataclass(frozen=True)
class CoinMechanism(quietbits.ScalarMechanism):
    """Every client sends its value rounded to one bit at random, by randomised response."""

    epsilon: float
    interval: tuple[float, float] = (0.0, 1.0)
    delta = 0.0

    @property
    def bits_per_client(self) -> float:
        """One bit."""
        return 1.0

    @property
    def reach(self) -> float:
        """Distance from the middle of the interval to which a bit is decoded."""
        return (self.domain.high - self.domain.low) / 2 / math.tanh(self.epsilon / 2)

    @property
    def variance_bound(self) -> float:
        """Variance in the middle."""
        return self.reach**2

    def from_middle(self, inputs):
        """Return the clipped inputs less the middle."""
        return self.domain.clip(inputs) - sum(self.interval) / 2

    def variance(self, inputs):
        """Return the variance for each input."""
        return self.reach**2 - self.from_middle(inputs) ** 2

    def encode(self, inputs, random_words):
        """Draw one bit for each input."""
        up = 0.5 + self.from_middle(inputs) / (2 * self.reach)
        return (word_source(random_words).uniforms(up.shape) < up).astype(np.uint8)

    def aggregate(self, messages):
        """Count the bits that are 1."""
        return messages.sum(keepdims=True, dtype=np.int64)

    def decode(self, aggregate, clients):
        """Return the estimate of the mean."""
        share = float(aggregate[0]) / check_integer("clients", clients, low=1, high=2**53)
        return sum(self.interval) / 2 + (2 * share - 1) * self.reach

    def privacy(self):
        """Return the privacy of one message."""
        return quietbits.pure_privacy(self.epsilon)


# %%
# The entry says how the mechanism is built for a task, and what its page in the documentation says.

entry = quietbits.Entry(
    name="coin",
    title="One randomly rounded bit, by randomised response",
    paper="Warner 1965, Randomized response",
    domains=(quietbits.Interval,),
    trust_model="local",
    adjacencies=("replace-one",),
    accounts=("pure", "rdp", "pld"),
    options=(),
    build=lambda task, _: CoinMechanism(task.epsilon / task.rounds, task.interval("coin")),
    use="Use it as a first example.",
    formula=r"The bit is 1 with probability $\frac12 + \frac{x - 1/2}{2r}$, where $r = \frac{1}{2 \tanh(\varepsilon/2)}$.",
)
quietbits.REGISTRY["coin"] = entry

# %%
# Every call of this process now has it; commands of a shell have the mechanisms of installed packages. This plan ranks it among the mechanisms of the local trust model.

task = quietbits.Task(
    quietbits.Interval(), clients=1000, epsilon=1.0, delta=0.0, adjacency="replace-one", bits=2
)
plan = quietbits.plan_task(task, trust="local", timed=False)
for planned in plan.feasible:
    print(
        f"{planned.name}: {planned.bits_per_client:g} bits, predicted error {planned.predicted_error:.5f}"
    )

# %%
# The figure shows it among the others. Install the conformance suite, ``quietbits[conformance]``, to test a mechanism of your own.

figure, axes = plt.subplots(figsize=(7, 2.4), layout="constrained")
names = [f"{planned.name}, {planned.bits_per_client:g} bits" for planned in plan.feasible]
colours = ["C1" if planned.name == "coin" else "C0" for planned in plan.feasible]
axes.barh(names, [planned.predicted_error for planned in plan.feasible], color=colours)
axes.set(xlabel="predicted squared error of the mean")
plt.show()

del quietbits.REGISTRY["coin"]
