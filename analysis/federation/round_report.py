"""What became of each round of a federation: who stayed, what was guaranteed, or why nothing was released."""

from dataclasses import dataclass

from ...design.contracts.guarantee import Guarantee


@dataclass(frozen=True)
class RoundReport:
    """One round.

    Attributes
    ----------
    server_round : int
        Its number, from 1.
    mechanism : str
        Name in the registry.
    invited, stayed : int
        Number of clients that were asked, and of those whose messages are in the mean.
    guarantee : Guarantee or None
        Proven of this round, with the noise of those who stayed; None for a round that was refused.
    refusal : str or None
        Why the round was refused; the model is then as it was before.
    bytes_up, bytes_down : int
        Of all clients' messages: keys, letters and shares are counted, what Flower adds is not.
    wrap_probability : float
        Bound on the probability that one coordinate of the sum wrapped around, with those who stayed; errs upward. It grows where more
        clients stay than the task states.
    """

    server_round: int
    mechanism: str
    invited: int
    stayed: int
    guarantee: Guarantee | None
    refusal: str | None
    bytes_up: int
    bytes_down: int
    wrap_probability: float = 0.0
    false_shares: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Return the report in one line."""
        outcome = f"refused: {self.refusal}" if self.guarantee is None else str(self.guarantee)
        false = f"; false shares from the nodes {list(self.false_shares)}" if self.false_shares else ""
        return f"round {self.server_round}, {self.mechanism}, {self.stayed} of {self.invited} clients: {outcome}{false}"
