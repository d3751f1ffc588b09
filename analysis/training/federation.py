"""The engine of a training: rounds of clients, sums of their messages, and model updates.

Clients train on the server's model, many at a time, and the engine clips, encodes and adds up their updates in chunks. Downloads are the
model or the messages that a client has missed, whichever is shorter.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray, IntegerArray
from ...design.contracts.mechanism import SecureSumMechanism, VectorMechanism
from ...design.federated.adaptive_clipping import AdaptiveClipping, central_fraction
from ...design.federated.history_package import full_model_bytes, history_package_bytes
from ...design.federated.model_layers import ModelLayers
from ...design.federated.model_state import ModelState
from ...design.noise.discrete_gaussian import sample_discrete_gaussian
from ...design.noise.random_words import WordsLike, word_source
from ...design.secure_sum.modular_arithmetic import messages_modulo, modular_add, residues
from ...design.secure_sum.noisy_count import NoisyCount
from ...errors import ConvergenceError, NotFiniteError
from ..datasets.federated_data import Cohort, Examples, FederatedData
from ..datasets.splits import Split
from ..random_streams import NumberedStreams, named_stream
from .checkpoint import Arrays, Checkpoint
from .models.network import Network, is_random, network_accuracy
from .plan import TrainingPlan
from .setting import TrainingSetting

# Size of a chunk of clients' updates: two megabytes, which caches hold. Chunks of long updates have at least a few clients, up to 32
# megabytes.
CHUNK_NUMBERS, LARGEST_CHUNK = 2**18, 2**22
FEW_CLIENTS = 32
# Number of chunks in memory at once, with derived arrays, and the largest block that raises malloc's threshold, 32 megabytes.
CHUNKS_AT_ONCE, LARGEST_KEPT_BLOCK = 4, 2**22 - 2**10
# Largest total of all clients' numbers for keeping their examples in memory.
KEPT_NUMBERS = 2**22
# Columns measured after each round.
RECORDED = ("participants", "messages", "accuracy", "clip_norm", "bytes_up", "bytes_down")


@dataclass(frozen=True)
class LayerClipping:
    """Clipping of each layer to its share of a clip norm.

    Squared shares are proportional to the layers' sizes, and add up to the square of the whole norm.

    Attributes
    ----------
    layers : ModelLayers
        Layers of the model.
    clip_norm : float
        Largest L2 norm of a clipped update.

    Examples
    --------
    >>> from quietbits.design.federated.model_layers import dense
    >>> clipping = LayerClipping(ModelLayers("small", (dense(1, 2), dense(11, 1))), 2.0)
    >>> clipping.norms, float(np.linalg.norm(clipping.clip(np.full((1, 16), 9.0))).round(12))
    ((1.0, 1.7320508075688772), 2.0)
    """

    layers: ModelLayers
    clip_norm: float

    @property
    def norms(self) -> tuple[float, ...]:
        """Clip norm of each layer."""
        return tuple(self.clip_norm * (size / self.layers.dimension) ** 0.5 for size in self.layers.sizes)

    def clip(self, updates: FloatArray) -> FloatArray:
        """Clip updates, shape (clients, dimension), in place, and return them."""
        for place, norm in zip(self.layers.places, self.norms, strict=True):
            part = updates[:, place]
            part /= np.maximum(np.linalg.norm(part, axis=1) / norm, 1.0)[:, None]
        return updates


class MessageSum:
    """The sum of a round's messages at the server, and the bytes of the messages.

    The sum is drawn without making each message, if the mechanism can do that (`SecureSumMechanism.summed_steps`,
    `VectorMechanism.aggregated`).
    """

    def __init__(self, mechanism: VectorMechanism, further_bits: int = 0) -> None:
        self.mechanism = mechanism
        self.messages = self.bytes = 0
        self._further_bits = further_bits
        self._aggregate: NDArray[Any] | None = None

    def add(self, vectors: FloatArray, random_words: WordsLike) -> None:
        """Add the messages of clients with these vectors."""
        if not len(vectors):
            return
        self.messages += len(vectors)
        mechanism = self.mechanism
        part: NDArray[Any] | None
        if isinstance(mechanism, SecureSumMechanism):
            part = residues(mechanism.summed_steps(vectors, random_words), mechanism.modulus)
            self.bytes += len(vectors) * whole_bytes(mechanism.bits_per_client + self._further_bits)
            self._aggregate = part if self._aggregate is None else modular_add(self._aggregate, part, mechanism.modulus)
            return
        part = mechanism.aggregated(vectors, random_words)
        if part is None:
            messages = mechanism.encode(vectors, random_words)
            self.bytes += int(np.ceil((mechanism.bits_of_messages(messages) + self._further_bits) / 8).sum())
            part = mechanism.aggregate(messages)
        else:
            self.bytes += len(vectors) * whole_bytes(mechanism.bits_per_client + self._further_bits)
        self._aggregate = part if self._aggregate is None else mechanism.combine(self._aggregate, part)

    def total(self, dimension: int) -> FloatArray:
        """Return the measured sum of the clients' vectors, or zeros without any message."""
        if self._aggregate is None:
            return np.zeros(dimension)
        return np.asarray(self.mechanism.measured_mean(self._aggregate, self.messages)) * self.messages


def whole_bytes(bits: float) -> int:
    """Return the bytes of a message with a number of bits."""
    return -(-math.ceil(bits) // 8)


@dataclass(frozen=True)
class LocalTraining:
    """Gradient steps of a client.

    Attributes
    ----------
    epochs : int
        Number of passes over the client's examples; with 0, the update is the negative gradient of their mean loss at the server's model.
    batch : int or None
        Number of examples of a step; None for all examples.
    learning_rate : float
        Learning rate of each step.
    """

    epochs: int = 0
    batch: int | None = None
    learning_rate: float = 0.1

    def updates(self, network: Network, parameters: FloatArray, cohort: Cohort, rng: np.random.Generator) -> FloatArray:
        """Return the update of each client, shape (clients, dimension): zeros without examples.

        `rng` shuffles examples if epochs have several batches, and draws dropout.
        """
        sizes = cohort.sizes
        if sizes.min() == sizes.max() > 0:
            every = (len(sizes), int(sizes[0]))
            inputs, labels = cohort.examples.inputs, cohort.examples.labels
            of_each = inputs.reshape(*every, -1), labels.reshape(*every, *labels.shape[1:])
            return self._of_size(network, parameters, *of_each, rng)
        starts = np.cumsum(sizes) - sizes
        updates = np.zeros((len(sizes), len(parameters)))
        # Updates of clients with the same number of examples are computed together.
        for size in np.unique(sizes[sizes > 0]).tolist():
            own = np.flatnonzero(sizes == size)
            places = starts[own][:, None] + np.arange(size)
            inputs, labels = cohort.examples.inputs[places], cohort.examples.labels[places]
            updates[own] = self._of_size(network, parameters, inputs, labels, rng)
        return updates

    def _of_size(
        self, network: Network, parameters: FloatArray, inputs: FloatArray, labels: IntegerArray, rng: np.random.Generator
    ) -> FloatArray:
        if is_random(network):
            network = network.drawing(rng)
        if self.epochs == 0:
            return network.gradients(parameters, inputs, labels, scale=-1.0)
        clients, size = inputs.shape[:2]
        batch = size if self.batch is None else min(self.batch, size)
        # All clients share the model until the first step.
        models = parameters
        for _ in range(self.epochs):
            order = np.tile(np.arange(size), (clients, 1))
            if batch < size:
                order = rng.permuted(order, axis=1)
            for start in range(0, size, batch):
                chosen = np.arange(clients)[:, None], order[:, start : start + batch]
                models = models - self.learning_rate * network.gradients(models, inputs[chosen], labels[chosen])
        return models - parameters


class KeptExamples:
    """Clients with their examples in memory, if there are few examples in total.

    The class decides by the first client, as counting the examples of each client would take long.
    """

    def __init__(self, data: FederatedData) -> None:
        self._data = data
        self._all: Cohort | None = None
        # The first client's number of examples gives an estimate of the total.
        numbers = data.clients * max(1, len(data.client_examples(0))) * data.features
        if numbers <= KEPT_NUMBERS:
            self._all = data.cohort(np.arange(data.clients))
            starts = np.append(0, np.cumsum(self._all.sizes))
            self._split = Split(np.arange(starts[-1]), starts)
            self._of_one_example = bool((self._all.sizes == 1).all())

    def cohort(self, clients: IntegerArray) -> Cohort:
        """Return a cohort, as `FederatedData.cohort` does."""
        if self._all is None:
            return self._data.cohort(clients)
        examples = self._all.examples
        numbers, sizes = (clients, self._all.sizes[clients]) if self._of_one_example else self._split.parts(clients)
        return Cohort(Examples(examples.inputs.take(numbers, axis=0), examples.labels.take(numbers, axis=0)), sizes)


def clients_of_chunk(dimension: int) -> int:
    """Return the number of clients whose updates are computed together."""
    return max(1, CHUNK_NUMBERS // dimension, min(FEW_CLIENTS, LARGEST_CHUNK // dimension))


def keep_memory_of_chunks(dimension: int) -> None:
    """Make the process reuse a chunk's memory for the next chunk.

    Beyond twice the largest freed block, glibc's malloc returns free memory to the system and takes it again page by page (mallopt(3),
    ``M_MMAP_THRESHOLD``), which takes longer than the updates of a small model. Without glibc, the function has no effect.
    """
    np.empty(min(CHUNKS_AT_ONCE * clients_of_chunk(dimension) * dimension, LARGEST_KEPT_BLOCK))


def update_chunks(
    local: LocalTraining, network: Network, parameters: FloatArray, data: KeptExamples, clients: IntegerArray, rng: np.random.Generator
) -> Iterator[tuple[FloatArray, IntegerArray]]:
    """Yield the updates of clients and their numbers of examples, in chunks.

    The size of the chunks depends only on the dimension.
    """
    size = clients_of_chunk(len(parameters))
    for start in range(0, len(clients), size):
        cohort = data.cohort(clients[start : start + size])
        yield local.updates(network, parameters, cohort, rng), cohort.sizes


@dataclass
class Downloads:
    """The model that each client has, round after round.

    With a history, a returning client gets the messages of all rounds since its model, or the model with the optimiser's memory; lengths
    are those of the packages of `model_history`. The first model comes from a public seed. Memory grows with the clients that have taken
    part.

    Attributes
    ----------
    by_history : bool
        Whether messages are sent in place of models.
    model_bytes, state_bytes : int
        Number of bytes of the parameters, and of the parameters with the optimiser's memory.
    message_bytes : int
        Number of bytes of a message.
    """

    by_history: bool
    model_bytes: int
    state_bytes: int
    message_bytes: int
    _messages: list[int] = field(default_factory=lambda: [0])
    _models: dict[int, int] = field(default_factory=dict)

    def send(self, clients: IntegerArray, messages: int) -> int:
        """Return the bytes sent down to a round's clients, and record its number of messages.

        Each client of the round is listed once.
        """
        number = len(self._messages) - 1
        self._messages.append(self._messages[-1] + messages)
        if not self.by_history:
            return len(clients) * self.model_bytes
        total, whole = 0, full_model_bytes(self.state_bytes)
        for client in clients.tolist():
            last = self._models.get(client, 0)
            missed = self._messages[number] - self._messages[last]
            total += min(whole, history_package_bytes(number - last, missed, self.message_bytes))
            self._models[client] = number
        return total

    def arrays(self) -> dict[str, NDArray[np.int64]]:
        """Return the arrays for `restore`."""
        pairs = sorted(self._models.items())
        return {"messages": np.array(self._messages, dtype=np.int64), "models": np.array(pairs, dtype=np.int64).reshape(-1, 2)}

    def restore(self, arrays: dict[str, NDArray[np.int64]]) -> None:
        """Continue from another object's arrays."""
        self._messages = arrays["messages"].tolist()
        self._models = dict(arrays["models"].tolist())


@dataclass(frozen=True)
class Progress:
    """Progress of a training after a round.

    The bytes are those of all rounds so far; the accuracy is the last measured accuracy, if any.
    """

    number: int
    rounds: int
    accuracy: float | None
    epsilon: float
    bytes_up: int
    bytes_down: int


OnRound = Callable[["Federation"], None]
"""Called after each round."""


@dataclass(eq=False)
class Federation:
    """A run of a training.

    The draws of a round depend only on the seed, the run's name and the round's number, so that a run from a checkpoint ends with the same
    bits as an uninterrupted run. Memory grows with the model, the test's examples and the clients of a chunk, but not with the total number
    of clients.

    Attributes
    ----------
    setting : TrainingSetting
        The training.
    plan : TrainingPlan
        The mechanism, and its privacy loss.
    data : FederatedData
        Data of the clients.
    seed : int
        Root seed.
    name : str
        Name of the run, which keys only the messages' randomness: runs with different mechanisms share clients and first models.
    """

    setting: TrainingSetting
    plan: TrainingPlan
    data: FederatedData
    seed: int
    name: str
    state: ModelState = field(init=False)
    records: dict[str, list[float]] = field(init=False)

    def __post_init__(self) -> None:
        """Draw the first model."""
        setting, mechanism = self.setting, self.plan.mechanism
        self._network: Network = setting.network(self.data)
        self._examples = KeptExamples(self.data)
        self._local = LocalTraining(setting.local_epochs, setting.batch, setting.client_rate)
        first = self._network.start(named_stream(self.seed, f"training, first model: {setting.model}"))
        self._cohorts, self._optimiser = setting.cohorts, setting.optimiser
        self._draws, self._messages, self._shuffles = (
            NumberedStreams(self.seed, f"training, {part}")
            for part in (f"clients: {self._cohorts}", f"messages: {self.name}", "local training")
        )
        self.state = self._optimiser.start(first.astype(f"f{setting.precision // 8}"))
        self.records = {name: [] for name in RECORDED}
        self._clipping = AdaptiveClipping(setting.clip).start()
        sizes = self.state.parameters.nbytes, self.state.state_bytes, whole_bytes(self.plan.message_bits)
        self._downloads = Downloads(setting.download == "history", *sizes)
        clipping = setting.clipping if mechanism.clips else None
        self._layers = LayerClipping(self._network.layers, setting.clip) if clipping == "per-layer" else None
        self._adaptive = clipping == "adaptive"
        # A memory keeps the same sketch for all rounds.
        self._sketch_seed: int | None = None
        self._memory = np.zeros(mechanism.memory_size)
        if mechanism.memory_size:
            self._sketch_seed = int(named_stream(self.seed, "training, sketch of all rounds").integers(2**63))
        keep_memory_of_chunks(self.state.dimension)

    def run(self, checkpoint: Checkpoint | None = None, on_round: OnRound | None = None) -> None:
        """Run the remaining rounds, from a checkpoint if there is any."""
        if checkpoint is not None and (arrays := checkpoint.load()) is not None:
            self._restore(arrays)
        while self.state.rounds < self.setting.rounds:
            number = self.state.rounds + 1
            try:
                # Overflow causes no warning, as overflowed numbers raise an error at their use.
                with np.errstate(over="ignore", invalid="ignore"):
                    self._round(number)
            except NotFiniteError as error:
                rates = "server_rate or client_rate" if self.setting.local_epochs else "server_rate"
                text = f"the model diverged in round {number} of {self.setting.rounds}: lower {rates}, or clip; {error}"
                raise ConvergenceError(text) from error
            if on_round is not None:
                on_round(self)
            if checkpoint is not None and (number % checkpoint.every == 0 or number == self.setting.rounds):
                checkpoint.save(self._arrays())

    def accuracy(self) -> float:
        """Return the accuracy on the test's examples (`network_accuracy`)."""
        test = self.data.test
        return network_accuracy(self._network, self.state.parameters.astype(float), test.inputs, test.labels)

    def _round(self, number: int) -> None:
        setting, plan = self.setting, self.plan
        clients = self._cohorts.draw(number, self._draws.at(number), repeats=plan.repeats, seats=plan.seats)
        words = self._messages.at(number)
        renewed = int(words.integers(2**63))
        mechanism = plan.mechanism.renewed(renewed if self._sketch_seed is None else self._sketch_seed)
        trusted = plan.trust_model == "central"
        if trusted:
            # The server's noise does not depend on the number of clients in the round.
            mechanism = mechanism.for_clients(max(1, len(clients)))
        scale = self._clipping.clip_norm / setting.clip
        messages, norms = MessageSum(mechanism, plan.count.bits if plan.count is not None else 0), [np.empty(0)]
        parameters = self.state.parameters.astype(float)
        shuffles = self._shuffles.at(number)
        for updates, examples in update_chunks(self._local, self._network, parameters, self._examples, clients, shuffles):
            if self._adaptive:
                # A client without examples sends noise alone and does not report on its norm.
                norms.append(mechanism.ball.norms(updates[examples > 0]))
                # Updates are scaled to units in which the round's clip norm is the mechanism's clip norm.
                updates = updates / scale
            if self._layers is not None:
                updates = self._layers.clip(updates)
            messages.add(updates, words)
        empty = max((plan.seats or 0) - len(clients), 1 if trusted and not len(clients) else 0)
        size = clients_of_chunk(self.state.dimension)
        for start in range(0, empty, size):
            messages.add(np.zeros((min(size, empty - start), self.state.dimension)), words)
        # The trusted server's noise on an empty sum counts as no message.
        sent = messages.messages if plan.seats is not None else len(clients)
        up = messages.bytes if sent else 0
        down = self._downloads.send(np.unique(clients) if plan.repeats else clients, sent)
        used = self._clipping.clip_norm
        if self._adaptive:
            self._adapt(np.concatenate(norms), words)
        mean = self._mean(messages, scale / setting.clients_per_round)
        self.state = self._optimiser.step(self.state, mean)
        measured = number % setting.evaluate_every == 0 or number == setting.rounds
        values = (len(clients), sent, self.accuracy() if measured else np.nan, used, up, down)
        for name, value in zip(RECORDED, values, strict=True):
            self.records[name].append(float(value))

    def _mean(self, messages: MessageSum, factor: float) -> FloatArray:
        """Return the mean update, the message sum times a factor, and advance any memory."""
        measured = messages.total(len(self._memory) or self.state.dimension) * factor
        mean, self._memory = messages.mechanism.decode_remembered(measured, self._memory)
        return mean

    def _adapt(self, norms: FloatArray, random_words: np.random.Generator) -> None:
        """Move the clip norm toward the median by the fraction of norms within it."""
        clip, plan = self._clipping.clip_norm, self.plan
        if plan.count is not None:
            fraction = self._counted(plan.count, norms <= clip, random_words)
        else:
            assert plan.count_deviation is not None  # noqa: S101 - as `training_plan` sees to
            if len(norms):
                fraction = central_fraction(norms, clip, self.setting.clients_per_round, plan.count_deviation, random_words)
            else:
                fraction = 0.5 + plan.count_deviation * random_words.standard_normal() / self.setting.clients_per_round
        self._clipping = AdaptiveClipping(self.setting.clip).step(self._clipping, fraction)

    def _counted(self, count: NoisyCount, answers: NDArray[np.bool_], random_words: np.random.Generator) -> float:
        """Return the noisy fraction of yes answers by a secure sum; unused seats add noise alone."""
        empty = sample_discrete_gaussian(count.local_sigma, (count.clients - len(answers),), word_source(random_words))
        total = messages_modulo(empty, 1 << count.bits).sum(keepdims=True, dtype=np.int64)
        if len(answers):
            total = total + count.encode(answers, random_words).sum(keepdims=True, dtype=np.int64)
        return 0.5 + (count.fraction(total) - 0.5) * count.clients / self.setting.clients_per_round

    @property
    def clip_norm(self) -> float:
        """Clip norm of the next round."""
        return self._clipping.clip_norm

    def progress(self) -> Progress:
        """Return the progress of the run, after its first round."""
        number = self.state.rounds
        accuracies = [value for value in self.records["accuracy"] if not np.isnan(value)]
        up, down = (int(sum(self.records[name])) for name in ("bytes_up", "bytes_down"))
        accuracy = accuracies[-1] if accuracies else None
        return Progress(number, self.setting.rounds, accuracy, float(self.plan.epsilons[number - 1]), up, down)

    def _arrays(self) -> Arrays:
        state = self.state
        return {
            "rounds": np.array(state.rounds),
            "parameters": state.parameters,
            "moments": np.array(state.moments).reshape(len(state.moments), state.dimension),
            "clip_norm": np.array(self._clipping.clip_norm),
            "memory": self._memory,
            "records": np.array([self.records[name] for name in RECORDED]),
            **{f"download_{name}": array for name, array in self._downloads.arrays().items()},
        }

    def _restore(self, arrays: Arrays) -> None:
        moments: Any = arrays["moments"]
        self.state = ModelState(int(arrays["rounds"]), arrays["parameters"], tuple(moments))
        self.records = dict(zip(RECORDED, arrays["records"].tolist(), strict=True))
        self._clipping = replace(self._clipping, rounds=self.state.rounds, clip_norm=float(arrays["clip_norm"]))
        self._memory = arrays["memory"]
        self._downloads.restore({name: arrays[f"download_{name}"] for name in ("messages", "models")})
