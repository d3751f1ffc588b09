"""Settings of a training without its mechanism: data, model, sampling, optimisers, budget."""

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
import scipy

from ...arguments import check_choice, check_integer, check_norm, check_real
from ...arrays import IntegerArray
from ...design.contracts.guarantee import ADJACENCIES
from ...design.contracts.norm_ball import LARGEST_CLIP_NORM
from ...design.contracts.privacy import Scalar
from ...design.contracts.task import LARGEST_TARGET, SMALLEST_TARGET
from ...design.federated.adam import ServerAdam
from ...design.federated.server_optimiser import ServerOptimiser, ServerSGD
from ...solvers.accounting.sampling import FixedSizeSampling, PoissonSampling, Sampling
from ...solvers.divergences.vector_composition import LARGEST_NORM
from ..datasets.federated_data import FederatedData
from ..datasets.named_data import check_data, named_data
from ..datasets.splits import LARGEST_ALPHA, SMALLEST_ALPHA
from .models.named_models import check_model, network_named
from .models.network import Network

MOST_POPULATION = 10**12
KINDS = ("fixed", "poisson", "with-replacement", "passes")
# Share of the population in a step of a pass; the golden ratio spreads a pass over the population.
STEP_SHARE = (math.sqrt(5) - 1) / 2
# Share of delta for rounds with more clients than seats.
OVERFLOW_SHARE = 1e-6
# Bound on the relative error of a binomial tail; for up to 10**9 clients, whole sums differ by less than 1e-5.
TAIL_ERROR = 1e-4
# Number of data sets that a process keeps.
KEPT_DATA = 4
_kept_data = lru_cache(maxsize=KEPT_DATA)(named_data)
SERVERS = ("sgd", "momentum", "adam")
CLIPPINGS = ("flat", "per-layer", "adaptive")
DOWNLOADS = ("model", "history")
MOST_ROUNDS = 10**6
MOST_MOMENTUM = 1 - 1e-6


@dataclass(frozen=True)
class ClientSampling:
    """Sampling of a round's clients.

    Attributes
    ----------
    kind : str
        Kind of sampling: ``"fixed"`` takes a number of different clients, ``"poisson"`` each client with the same probability,
        ``"with-replacement"`` independent draws, and ``"passes"`` all clients in turn, each once in a pass.
    population : int
        Number of clients.
    clients_per_round : int
        Number of clients of a round, on average with Poisson sampling; number of draws with replacement.
    """

    kind: str
    population: int
    clients_per_round: int

    def __post_init__(self) -> None:
        """Check the fields."""
        check_choice("sampling", self.kind, KINDS)
        check_integer("population", self.population, low=1, high=MOST_POPULATION)
        most = 10**6 if self.kind == "with-replacement" else self.population
        check_integer("clients_per_round", self.clients_per_round, low=1, high=most)

    def draw(self, number: int, rng: np.random.Generator, *, repeats: bool = False, seats: int | None = None) -> IntegerArray:
        """Return the clients of a round; rounds are counted from 1.

        A client that is drawn twice takes part once, unless `repeats`. Clients beyond the seats do not take part.
        """
        size, population = self.clients_per_round, self.population
        if self.kind == "passes":
            step = _coprime_step(population)
            first = (number - 1) * size
            return np.array([(first + place) % population * step % population for place in range(size)], dtype=np.int64)
        if self.kind == "with-replacement":
            drawn = rng.integers(0, population, size=size)
            return drawn if repeats else np.unique(drawn)
        if self.kind == "poisson":
            size = int(rng.binomial(population, size / population))
            size = size if seats is None else min(size, seats)
        return rng.choice(population, size=size, replace=False).astype(np.int64)

    def participations(self, rounds: int) -> int:
        """Return the largest number of a client's participations in the first rounds."""
        return -(-rounds * self.clients_per_round // self.population) if self.kind == "passes" else rounds

    @property
    def amplifying(self) -> Sampling | None:
        """The sampling that amplifies guarantees in accounting; None if no amplification is known."""
        if self.kind == "poisson":
            return PoissonSampling(self.clients_per_round / self.population)
        return FixedSizeSampling(self.population, self.clients_per_round) if self.kind == "fixed" else None

    def seats(self, rounds: int, delta: float) -> int:
        """Return the number of clients that share the noise of a secure sum, some without a report.

        Under Poisson sampling, the number makes it unlikely that the other clients take all seats: the probability over all rounds is at
        most a millionth of delta. The draw of the other clients does not depend on the client's data. Given that draw, rounds in which
        the client gets a seat have the privacy loss of rounds without a limit, and the remaining rounds cost their probability.
        """
        if self.kind != "poisson":
            return self.clients_per_round
        allowed, share = OVERFLOW_SHARE * delta / rounds, self.clients_per_round / self.population
        others = self.population - 1

        def is_rarely_exceeded(taken: int) -> bool:
            return bool(scipy.special.bdtrc(taken, others, share) * (1 + TAIL_ERROR) <= allowed)

        return min(self.population, max(self.clients_per_round, bisect_left(range(others), True, key=is_rarely_exceeded) + 1))


def _coprime_step(population: int) -> int:
    """Return a step that reaches all numbers below the population."""
    step = max(1, round(STEP_SHARE * population))
    while math.gcd(step, population) > 1:
        step += 1
    return step


@dataclass(frozen=True, kw_only=True)
class TrainingSetting:
    """A setting of a training; its fields are the keys of a training's file.

    Attributes
    ----------
    data, folder, images, clients, split, dirichlet_alpha, samples
        Source of the examples and their division among clients, as in `named_data`.
    model : str
        Name of the model, as in `network_named`.
    sampling, clients_per_round
        Choice of the clients of a round (`ClientSampling`).
    secret_sampling : bool
        Whether only the server, or the secure sum, knows the chosen clients, which amplifies guarantees if a proof exists.
    rounds : int
        Number of rounds.
    local_epochs : int
        Number of passes of a client over its examples; with 0, the client sends the negative gradient at the server's model, as in DP-SGD.
    batch : int or None
        Number of examples of a client's step; None for all of its examples, as with 0 epochs.
    client_rate : float
        Learning rate of a client's steps; without effect at 0 epochs.
    server, server_rate, momentum
        Optimiser of the server, ``"sgd"``, ``"momentum"`` or ``"adam"`` (`ServerAdam`, whose beta_1 is `momentum`), and its rates.
    clip, norm : float
        Norm that updates are clipped to, and order p of the norm; without effect on mechanisms that do not clip.
    clipping : str
        Kind of clipping: ``"flat"`` clips whole updates; ``"per-layer"`` clips each layer to its share of the squared clip norm, by its
        size; with ``"adaptive"`` the clip norm starts at `clip` and follows the median of the norms.
    epsilon, round_epsilon : float or None
        Budget of all rounds, or of one message or sum without amplification. Mechanisms that are built for a budget need exactly one of
        these fields.
    delta, adjacency
        Failure probability of all rounds; and the neighbouring relation of data sets. Each client holds a data set.
    precision : int
        Number of bits of a number of the model, 32 or 64, in the server's and torch's computations.
    download : str
        Download of a client: ``"model"``, or ``"history"`` for the messages that the client has missed, if these are shorter (DP-REC). A
        history needs single messages, which a secure sum or a trusted server hides.
    evaluate_every : int
        Number of rounds between two measurements of the accuracy, which is also measured after the last round.
    """

    data: str = "digits"
    folder: str | None = None
    images: int | None = None
    clients: int
    split: str = "iid"
    dirichlet_alpha: float = 1.0
    samples: int | None = None
    model: str = "softmax"
    sampling: str = "fixed"
    clients_per_round: int
    secret_sampling: bool = True
    rounds: int
    local_epochs: int = 0
    batch: int | None = None
    client_rate: float = 0.1
    server: str = "sgd"
    server_rate: float = 1.0
    momentum: float = 0.9
    clip: float = 1.0
    norm: float = 2.0
    clipping: str = "flat"
    epsilon: float | None = None
    round_epsilon: float | None = None
    delta: float
    adjacency: str
    precision: int = 32
    download: str = "model"
    evaluate_every: int = 1

    def __post_init__(self) -> None:
        """Check the fields as far as possible without data."""
        check_integer("clients", self.clients, low=1, high=MOST_POPULATION)
        check_data(self.data, self.clients, folder=self.folder, images=self.images, split=self.split, samples=self.samples)
        check_real("dirichlet_alpha", self.dirichlet_alpha, low=SMALLEST_ALPHA, high=LARGEST_ALPHA)
        check_model(self.model)
        ClientSampling(self.sampling, self.clients, self.clients_per_round)
        check_integer("rounds", self.rounds, low=1, high=MOST_ROUNDS)
        check_integer("local_epochs", self.local_epochs, low=0, high=10**4)
        if self.batch is not None:
            check_integer("batch", self.batch, low=1, high=10**6)
            if self.local_epochs == 0:
                raise ValueError(f"batch must be left out where local_epochs is 0, got {self.batch}: a client's gradient is of all it has")
        check_choice("server", self.server, SERVERS)
        check_choice("clipping", self.clipping, CLIPPINGS)
        check_choice("download", self.download, DOWNLOADS)
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        check_norm(self.norm, high=LARGEST_NORM)
        for name in ("client_rate", "server_rate"):
            check_real(name, getattr(self, name), low=1e-6, high=1e6)
        check_real("momentum", self.momentum, low=0.0, high=MOST_MOMENTUM)
        check_real("clip", self.clip, low=1 / LARGEST_CLIP_NORM, high=LARGEST_CLIP_NORM)
        check_real("delta", self.delta, low=0.0, high=1 - 1e-16)
        check_integer("evaluate_every", self.evaluate_every, low=1, high=MOST_ROUNDS)
        if not isinstance(self.secret_sampling, bool):
            raise ValueError(f"secret_sampling must be true or false, got {self.secret_sampling!r}")
        if self.precision not in (32, 64):
            raise ValueError(f"precision must be 32 or 64, got {self.precision!r}")
        if self.epsilon is not None and self.round_epsilon is not None:
            raise ValueError(f"round_epsilon must be left out where epsilon is given, got {self.round_epsilon!r} and {self.epsilon!r}")
        for name in ("epsilon", "round_epsilon"):
            if getattr(self, name) is not None:
                check_real(name, getattr(self, name), low=SMALLEST_TARGET, high=LARGEST_TARGET)
        if self.clipping == "per-layer" and self.norm != 2:
            raise ValueError(f"norm must be 2 for clipping per-layer, got {self.norm:g}")

    @property
    def cohorts(self) -> ClientSampling:
        """Sampling of a round's clients."""
        return ClientSampling(self.sampling, self.clients, self.clients_per_round)

    @property
    def optimiser(self) -> ServerOptimiser:
        """The server's optimiser."""
        if self.server == "adam":
            return ServerAdam(self.server_rate, first_decay=self.momentum)
        return ServerSGD(self.server_rate, momentum=self.momentum if self.server == "momentum" else 0.0)

    def federated_data(self, seed: int) -> FederatedData:
        """Return the clients' data."""
        dealt = {"images": self.images, "split": self.split, "alpha": self.dirichlet_alpha, "samples": self.samples}
        return _kept_data(self.data, self.clients, seed, folder=self.folder, **dealt)

    def network(self, data: FederatedData) -> Network:
        """Return the model for the data."""
        return network_named(self.model, data.features, data.classes, data.image_shape, precision=self.precision)

    def columns(self) -> Mapping[str, Scalar]:
        """Return the setting's columns of a result table, without those of the guarantee."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in ("delta", "adjacency", "epsilon")}


KEYS = tuple(field.name for field in fields(TrainingSetting))
