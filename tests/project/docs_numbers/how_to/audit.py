"""Numbers of docs/how-to/audit.md."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import quietbits
from quietbits.analysis.audits.mechanism_audit import audit
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from quietbits.design.shuffled.shuffled_items import ShuffledRandomisedResponse
from quietbits.solvers.divergences.discrete_gaussian_divergence import summed_discrete_gaussian_losses


def power_rows(audits: int = 20) -> Iterator[list[str]]:
    """Return the share of audits that detect too little noise in two discrete Gaussians."""
    for delta in (1e-2, 1e-3):
        ball = quietbits.NormBall(dimension=1, norm=2.0, clip_norm=1.0)
        task = quietbits.Task(ball, clients=2, epsilon=1.0, delta=delta, adjacency="add-or-remove-one")
        right = quietbits.build_mechanism("distributed-discrete-gaussian", task, {"bits": 12})
        claim = right.guarantee.epsilon
        for share in (0.8, 0.9):
            wrong = replace(right, local_sigma=share * right.local_sigma)
            refuted = [
                sum(audit(wrong, draws, np.random.default_rng(seed)).measured.refutes(claim) for seed in range(audits))
                for draws in (10**5, 10**6)
            ]
            yield [f"{delta:.0e}".replace("e-0", "e-"), str(share), f"{wrong.guarantee.epsilon:.3f}", *map(str, refuted)]


def exact_rows() -> Iterator[list[str]]:
    """Return the audits' lower bounds and the exact epsilon of a sum of two discrete Gaussians."""
    clip = 8
    for sigma, delta in ((6.0, 1e-2), (6.0, 1e-3), (12.0, 1e-4)):
        ball = quietbits.NormBall(1, 2.0, float(clip))
        noise = DistributedDiscreteGaussianMechanism(ball, clients=2, bits=10, granularity=1.0, local_sigma=sigma, delta=delta)
        exact = summed_discrete_gaussian_losses(2, sigma, clip).epsilon(delta)
        result = audit(noise, 10**6, np.random.default_rng(0)).measured.epsilon_lower_bound
        numbers = [f"{exact:.3f}", f"{result:.3f}", f"{result / exact:.2f}"]
        yield [f"{math.sqrt(2) * sigma / clip:.2f}", f"{delta:.0e}".replace("e-0", "e-"), *numbers]


def share_rows() -> Iterator[list[str]]:
    """Return the audits' lower bounds on epsilon for mechanisms that guarantee epsilon = 1."""
    sums = ("distributed-discrete-gaussian", "distributed-skellam")
    cases = [(name, "sum", "add-or-remove-one", 10**6) for name in sums]
    cases += [(name, "sum", "replace-one", 10**6) for name in (*sums, "cpsgd", "poisson-binomial")]
    cases += [(name, "number", "replace-one", 10**6) for name in ("mvu", "laplace", "cldp", "generalised-randomised-response")]
    cases += [(name, "vector", "replace-one", 200_000) for name in ("privunit-g", "gaussian", "skellam")]
    cases.append(("dp-rec", "vector", "replace-one", 20_000))
    numbers = {"mvu": {"bits_in": 3, "bits_out": 3}, "generalised-randomised-response": {"bits": 3}}
    for name, inputs, adjacency, draws in cases:
        domain = quietbits.Interval() if inputs == "number" else quietbits.NormBall(1 if inputs == "sum" else 8, 2.0)
        delta = 0.0 if inputs == "number" else 1e-2
        task = quietbits.Task(domain, clients=4 if inputs == "sum" else 1, epsilon=1.0, delta=delta, adjacency=adjacency)
        built = quietbits.build_mechanism(name, task, {"bits": 12} if inputs == "sum" else numbers.get(name, {}))
        result = audit(built, draws, np.random.default_rng(0), others="same" if inputs == "sum" else "zero")
        yield [f"`{name}`", inputs, adjacency, f"{draws:,}".replace(",", " "), f"{result.measured.epsilon_lower_bound:.2f}"]


def shuffled_share(others: str) -> float:
    """Return the share of the guarantee of shuffled letters that an audit measures."""
    letters = ShuffledRandomisedResponse(3.0, 4, clients=10, delta=1e-2)
    result = audit(letters, 400_000, np.random.default_rng(0), others=others, confidence=1 - 1e-6)
    return result.measured.epsilon_lower_bound / result.claim.epsilon
