"""Numbers of docs/explanations/training-privacy.md."""

from functools import cache

import quietbits
from quietbits import PoissonSampling
from quietbits.analysis.training.plan import DENSE_RATIO as DENSE_RATIO
from quietbits.analysis.training.plan import DENSE_ROUNDS as DENSE_ROUNDS
from quietbits.analysis.training.plan import SPARSE_RATIO as SPARSE_RATIO
from quietbits.design.contracts.gaussian import gaussian_privacy
from quietbits.design.federated.adaptive_clipping import usual_count_deviation


@cache
def clipped(part: str) -> float:
    """Return epsilon of one round's sum, of its count, or of both together, as Gaussian noise.

    The round samples 12 of 1200 clients.
    """
    seats = 12
    both = {
        "sum": [gaussian_privacy(1.0, "add-or-remove-one", "secure-sum")],
        "count": [gaussian_privacy(2 * usual_count_deviation(seats), "add-or-remove-one", "secure-sum")],
    }
    releases = [*both["sum"], *both["count"]] if part == "both" else both[part]
    return quietbits.joint_privacy(releases, "add-or-remove-one").epsilon(1e-5, sampling=PoissonSampling(0.01))
