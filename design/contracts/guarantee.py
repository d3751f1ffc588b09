"""What a mechanism promises: how much privacy, for which neighbours, and against whom."""

from dataclasses import dataclass

from ...arguments import check_choice

ADJACENCIES = ("replace-one", "add-or-remove-one")
TRUST_MODELS = ("local", "shuffled", "secure-sum", "central")


@dataclass(frozen=True)
class Guarantee:
    """A differential privacy guarantee, with the adjacency and the trust model it holds under.

    Attributes
    ----------
    epsilon : float
        Privacy parameter; at least 0, infinite for no privacy. Errs upward.
    adjacency : str
        ``"replace-one"`` or ``"add-or-remove-one"``: which data sets are neighbours.
    trust_model : str
        ``"local"``: nobody is trusted; ``"shuffled"``: messages are seen without their order and senders; ``"secure-sum"``: only the sum of
        the messages is seen; ``"central"``: the server is trusted.
    delta : float
        Probability, from 0 to 1, with which epsilon may fail. Errs upward.
    metric : str or None
        ``"l1"``, ``"l2"``, ``"l<p>"``: inputs y, y' are epsilon * ``|y - y'|**p`` indistinguishable, for an input interval scaled to length
        one (metric differential privacy); None: all inputs are epsilon indistinguishable.

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

    def __post_init__(self) -> None:
        """Refuse a guarantee that says nothing definite."""
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
            Epsilon, delta if there is one, the metric if there is one, adjacency and trust model.
        """
        parts = [f"epsilon = {self.epsilon:.6g}"]
        if self.metric is not None:
            parts[0] += f" x |y - y'|^{self.metric.removeprefix('l')} on the unit interval"
        if self.delta > 0:
            parts.append(f"delta = {self.delta:.6g}")
        return ", ".join([*parts, f"{self.adjacency} adjacency", f"{self.trust_model} trust model"])
