"""Reports of a federation's rounds, with the remaining clients and the guarantee."""

from dataclasses import dataclass

from ...design.contracts.guarantee import Guarantee


@dataclass(frozen=True)
class RoundReport:
    """The outcome of a federation's round.

    Attributes
    ----------
    server_round : int
        Number of the round, from 1.
    mechanism : str
        Name of the mechanism in the registry.
    invited, stayed : int
        Numbers of invited clients, and of clients whose messages are in the mean.
    guarantee : Guarantee or None
        Proven guarantee of this round, with the noise of the clients that stayed; None for a refused round.
    refusal : str or None
        Reason for a refusal; a refused round leaves the model unchanged.
    bytes_up, bytes_down : int
        Number of bytes of all clients' messages with keys, letters and shares, without Flower's own overhead.
    wrap_probability : float
        Upper bound on the probability that one coordinate of the sum wrapped around, for the surviving clients. It grows if more clients
        survive than the task states.
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
