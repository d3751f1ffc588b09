"""The guarantee of a mechanism: its privacy parameters, its neighbours, and its trust model."""

import math
from dataclasses import dataclass, replace

from ...arguments import check_choice
from ...errors import InfeasibleError

ADJACENCIES = ("replace-one", "add-or-remove-one")
# The trust models are in order, from no trusted party to a trusted server.
TRUST_MODELS = ("local", "shuffled", "secure-sum", "central")
# Trust models in which clients hide each other, so that the guarantee depends on their number.
JOINT_MODELS = ("shuffled", "secure-sum")
# Largest epsilon that is doubled for replace-one adjacency. A larger epsilon permits any mechanism at every delta above 1e-304.
LARGEST_DOUBLED = 700.0


@dataclass(frozen=True)
class Guarantee:
    """A differential privacy guarantee, with the adjacency and the trust model it holds under.

    Attributes
    ----------
    epsilon : float
        Upper bound on the privacy parameter; at least 0, infinite for no privacy.
    adjacency : str
        ``"replace-one"`` or ``"add-or-remove-one"``: the neighbouring data sets.
    trust_model : str
        ``"local"``: no party is trusted; ``"shuffled"``: the observer sees messages without their order and senders; ``"secure-sum"``: the
        observer sees only the sum of the messages; ``"central"``: the server is trusted.
    delta : float
        Upper bound on the probability, from 0 to 1, with which epsilon may fail.
    metric : str or None
        ``"l1"``, ``"l2"``, ``"l<p>"``: inputs y, y' are epsilon * ``|y - y'|**p`` indistinguishable, for an input interval scaled to length
        1 (metric differential privacy); None: all inputs are epsilon indistinguishable.
    allow_real_numbers : bool
        Whether the guarantee is for real numbers, and the caller allowed messages in floating-point numbers, whose low bits reveal more.

    Raises
    ------
    ValueError
        If a field is out of its range.

    Examples
    --------
    >>> print(Guarantee(1.0, adjacency="replace-one", trust_model="local"))
    epsilon = 1, replace-one adjacency, local trust model
    """

    epsilon: float
    adjacency: str
    trust_model: str
    delta: float = 0.0
    metric: str | None = None
    allow_real_numbers: bool = False

    def __post_init__(self) -> None:
        """Check the fields."""
        if not self.epsilon >= 0:
            raise ValueError(f"epsilon must be a number of at least 0, got {self.epsilon!r}")
        if not 0 <= self.delta <= 1:
            raise ValueError(f"delta must be a number from 0 to 1, got {self.delta!r}")
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        check_choice("trust_model", self.trust_model, TRUST_MODELS)

    def __str__(self) -> str:
        """Return the guarantee in one readable line.

        Returns
        -------
        str
            Epsilon, delta if there is one, the metric if there is one, adjacency, trust model, and whether real numbers were allowed.
        """
        parts = [f"epsilon = {self.epsilon:.6g}"]
        if self.metric is not None:
            parts[0] += f" x |y - y'|^{self.metric.removeprefix('l')} on the unit interval"
        if self.delta > 0:
            parts.append(f"delta = {self.delta:.6g}")
        parts += [f"{self.adjacency} adjacency", f"{self.trust_model} trust model"]
        if self.allow_real_numbers:
            parts.append("of real numbers only (allow_real_numbers): floating-point messages reveal more")
        return ", ".join(parts)

    def towards(self, adjacency: str) -> "Guarantee":
        """Return the guarantee for an adjacency.

        Replacing a client is removing one and adding another: (epsilon, delta) for add-or-remove-one adjacency is
        (2 epsilon, (1 + e^epsilon) delta) for replace-one adjacency. Both are upper bounds.

        Raises
        ------
        InfeasibleError
            If the guarantee is for replace-one adjacency and the argument is add-or-remove-one adjacency, for which it proves nothing.

        Examples
        --------
        >>> print(Guarantee(0.5, "add-or-remove-one", "secure-sum", delta=1e-6).towards("replace-one"))
        epsilon = 1, delta = 2.64872e-06, replace-one adjacency, secure-sum trust model
        """
        if check_choice("adjacency", adjacency, ADJACENCIES) == self.adjacency:
            return self
        if adjacency != "replace-one":
            raise InfeasibleError(
                f"adjacency must be {self.adjacency}, of which the guarantee is, got {adjacency}: it says nothing of that"
            )
        delta = self.delta
        if delta > 0:
            factor = 1 + math.exp(self.epsilon) if self.epsilon <= LARGEST_DOUBLED else math.inf
            # The exponential, the sum and the product each have an error of less than a unit in the last place.
            delta = min(1.0, delta * factor * (1 + 1e-15))
        return replace(self, epsilon=2 * self.epsilon, adjacency=adjacency, delta=delta)
