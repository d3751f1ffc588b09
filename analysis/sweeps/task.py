"""One task of a sweep: one setting, one repetition. Its name says all of it, and its random numbers derive from that name."""

import hashlib
import json
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import cache

from threadpoolctl import ThreadpoolController

from ...design.contracts.mechanism import VectorMechanism
from ...design.contracts.norm_ball import NormBall
from ...errors import ConvergenceError
from ..calibration.table_cache import TableCache
from ..catalogue.vector_mechanisms import MechanismSpec, build_mechanism
from ..random_streams import named_stream
from ..simulation.vector_mean import SimulatedVectorMean, simulate_vector_mean
from ..simulation.vector_populations import population_chunks


@dataclass(frozen=True)
class MechanismDesign:
    """What a mechanism is built for; tasks that share it share the mechanism.

    Attributes
    ----------
    mechanism : MechanismSpec
        The mechanism and its parameters.
    ball : NormBall
        Where the clipped vectors lie.
    epsilon, delta : float
        Guarantee that is asked for: replace-one adjacency, local trust model, one message.
    """

    mechanism: MechanismSpec
    ball: NormBall
    epsilon: float
    delta: float


@dataclass(frozen=True)
class SweepTask:
    """One run of one mechanism on one draw of a population.

    Attributes
    ----------
    design : MechanismDesign
        The mechanism, and what it is built for.
    population : str
        Name of the population, as in `population_chunks`.
    nonzero : int or None
        Non-zero coordinates of a vector of the population ``"sparse"``; None for its default, and for the others.
    scale : float
        The population's scale, in clip norms.
    clients : int
        Number of clients.
    repetition : int
        Which of the repetitions this is, from 0.
    seed : int
        Root seed of the sweep.
    """

    design: MechanismDesign
    population: str
    nonzero: int | None
    scale: float
    clients: int
    repetition: int
    seed: int

    @property
    def data_name(self) -> str:
        """Name of the stream that the vectors are drawn from: the same for every mechanism, ball and budget, which see the same vectors."""
        kind = self.population if self.nonzero is None else f"{self.population}({self.nonzero})"
        return f"vectors: {kind}, clients {self.clients}, dimension {self.design.ball.dimension}, repetition {self.repetition}"

    @property
    def name(self) -> str:
        """The whole task but for its seed, in canonical JSON: name of the stream that the mechanism's randomness is drawn from."""
        record = asdict(self)
        del record["seed"]
        # What does not apply is left out, so that a parameter that is new some day does not rename the tasks without it.
        record["design"]["mechanism"] = {key: value for key, value in record["design"]["mechanism"].items() if value is not None}
        return json.dumps(record, sort_keys=True, separators=(",", ":"))

    @property
    def setting(self) -> str:
        """The task in words, without its repetition."""
        design, ball = self.design, self.design.ball
        data = self.population if self.nonzero is None else f"{self.population} ({self.nonzero} non-zero)"
        scale = "" if self.scale == 1 else f" of scale {self.scale:g}"
        return (
            f"{design.mechanism}, epsilon {design.epsilon:g}, delta {design.delta:g}, {self.clients} clients from {data}{scale}, "
            f"dimension {ball.dimension}, L{ball.norm:g} ball of radius {ball.clip_norm:g}"
        )

    def key(self, *context: str) -> str:
        """Return a hash of the whole task.

        Parameters
        ----------
        *context : str
            What else the hash is to depend on, such as versions.

        Returns
        -------
        str
            SHA-256, in hexadecimal.
        """
        return hashlib.sha256(json.dumps([self.name, self.seed, *context]).encode()).hexdigest()


def build_design(design: MechanismDesign, cache: TableCache | None) -> VectorMechanism | str:
    """Build the mechanism of a design, and work out what it guarantees.

    Parameters
    ----------
    design : MechanismDesign
        What to build.
    cache : TableCache or None
        Where designed tables are kept, if anywhere.

    Returns
    -------
    VectorMechanism or str
        The mechanism, or a message that says why there is none.
    """
    try:
        with _one_thread():
            mechanism = build_mechanism(design.mechanism, design.ball, design.epsilon, design.delta, cache)
            # Asked for here, what the mechanism keeps of its answers travels with it to the workers.
            _ = mechanism.guarantee, mechanism.worst_variance
    except (ValueError, ArithmeticError, ConvergenceError) as error:
        return str(error)
    return mechanism


def run_task(task: SweepTask, mechanism: VectorMechanism) -> SimulatedVectorMean | str:
    """Draw a task's vectors and simulate its mechanism on them.

    Parameters
    ----------
    task : SweepTask
        The task.
    mechanism : VectorMechanism
        What `build_design` has made of its design.

    Returns
    -------
    SimulatedVectorMean or str
        The result, or a message that says why there is none.
    """
    ball = task.design.ball
    vectors = population_chunks(
        task.population,
        task.clients,
        ball.dimension,
        named_stream(task.seed, task.data_name),
        scale=task.scale * ball.clip_norm,
        nonzero=task.nonzero,
    )
    try:
        with _one_thread():
            return simulate_vector_mean(mechanism, vectors, named_stream(task.seed, f"messages: {task.name}"))
    except (ValueError, ArithmeticError, ConvergenceError) as error:
        return str(error)


def _one_thread() -> AbstractContextManager[object]:
    """Hold libraries to one thread, in whatever process: the order in which they add up must not depend on how many they may use."""
    limits: AbstractContextManager[object] = _libraries().limit(limits=1)
    return limits


@cache
def _libraries() -> ThreadpoolController:
    # Looking for them takes longer than a small task.
    return ThreadpoolController()
