"""The engine: rounds of clients who train, messages that are added up, and a server that moves its model."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from ...design.federated.adaptive_clipping import AdaptiveClipping, central_fraction
from ...design.federated.model_state import ModelState
from ...design.noise.discrete_gaussian import sample_discrete_gaussian
from ...design.noise.random_words import word_source
from ...design.secure_sum.modular_arithmetic import messages_modulo
from ...design.secure_sum.noisy_count import NoisyCount
from ...errors import ConvergenceError, NotFiniteError
from ..datasets.federated_data import FederatedData
from ..random_streams import NumberedStreams, named_stream
from .checkpoint import Arrays, Checkpoint
from .downloads import Downloads
from .local_training import KeptExamples, LocalTraining, clients_of_chunk, keep_memory_of_chunks, update_chunks
from .message_sum import MessageSum, whole_bytes
from .models.network import Network, network_accuracy
from .plan import TrainingPlan
from .setting import TrainingSetting
from .update_clipping import LayerClipping

# Columns of what is measured after each round.
RECORDED = ("participants", "messages", "accuracy", "clip_norm", "bytes_up", "bytes_down")


@dataclass(frozen=True)
class Progress:
    """What a round did, for progress: bytes are those of all rounds so far; the accuracy is the last that was measured, if one was."""

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
    """One run of a training.

    What a round draws depends on the seed, the run's name and the round's number only: a run that goes on from a checkpoint ends with the
    same bits as one that was never interrupted. Memory grows with the model, the test's examples and the clients of a chunk, not with the
    clients there are.

    Attributes
    ----------
    setting : TrainingSetting
        What to do.
    plan : TrainingPlan
        The mechanism, and what it reveals.
    data : FederatedData
        The clients.
    seed : int
        Root seed.
    name : str
        Of the run, for the messages' randomness: runs with different mechanisms share clients and first models.
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
        # A memory keeps one sketch for all rounds.
        self._sketch_seed: int | None = None
        self._memory = np.zeros(mechanism.memory_size)
        if mechanism.memory_size:
            self._sketch_seed = int(named_stream(self.seed, "training, sketch of all rounds").integers(2**63))
        keep_memory_of_chunks(self.state.dimension)

    def run(self, checkpoint: Checkpoint | None = None, on_round: OnRound | None = None) -> None:
        """Run the rounds that are left; from a checkpoint's if there is one."""
        if checkpoint is not None and (arrays := checkpoint.load()) is not None:
            self._restore(arrays)
        while self.state.rounds < self.setting.rounds:
            number = self.state.rounds + 1
            try:
                # What overflows is refused where it is used.
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
            # The server's noise is the same, however many clients came.
            mechanism = mechanism.for_clients(max(1, len(clients)))
        scale = self._clipping.clip_norm / setting.clip
        messages, norms = MessageSum(mechanism, plan.count.bits if plan.count is not None else 0), [np.empty(0)]
        parameters = self.state.parameters.astype(float)
        shuffles = self._shuffles.at(number)
        for updates, examples in update_chunks(self._local, self._network, parameters, self._examples, clients, shuffles):
            if self._adaptive:
                # A client without examples sends noise alone: it gives no answer about its norm.
                norms.append(mechanism.ball.norms(updates[examples > 0]))
                # In units in which the round's clip norm is the mechanism's.
                updates = updates / scale
            if self._layers is not None:
                updates = self._layers.clip(updates)
            messages.add(updates, words)
        empty = max((plan.seats or 0) - len(clients), 1 if trusted and not len(clients) else 0)
        size = clients_of_chunk(self.state.dimension)
        for start in range(0, empty, size):
            messages.add(np.zeros((min(size, empty - start), self.state.dimension)), words)
        # A trusted server's noise on nothing is no message.
        sent = messages.messages if plan.seats is not None else len(clients)
        up = messages.bytes if sent else 0
        down = self._downloads.send(np.unique(clients) if plan.repeats else clients, sent)
        used = self._clipping.clip_norm
        if self._adaptive:
            self._adapt(np.concatenate(norms), words)
        mean = self._mean(messages, scale / setting.clients_per_round)
        self.state = self._optimiser.step(self.state, mean)
        measured = number % setting.evaluate_every == 0 or number == setting.rounds
        found = (len(clients), sent, self.accuracy() if measured else np.nan, used, up, down)
        for name, value in zip(RECORDED, found, strict=True):
            self.records[name].append(float(value))

    def _mean(self, messages: MessageSum, factor: float) -> FloatArray:
        """Return the estimate of the mean update, the sum of the messages times a factor, and move the memory on, if there is one."""
        measured = messages.total(len(self._memory) or self.state.dimension) * factor
        mean, self._memory = messages.mechanism.decode_remembered(measured, self._memory)
        return mean

    def _adapt(self, norms: FloatArray, words: np.random.Generator) -> None:
        """Move the clip norm toward the median, by what the server learns of the norms."""
        clip, plan = self._clipping.clip_norm, self.plan
        if plan.count is not None:
            fraction = self._counted(plan.count, norms <= clip, words)
        else:
            assert plan.count_deviation is not None  # noqa: S101 - as `training_plan` sees to
            if len(norms):
                fraction = central_fraction(norms, clip, self.setting.clients_per_round, plan.count_deviation, words)
            else:
                fraction = 0.5 + plan.count_deviation * words.standard_normal() / self.setting.clients_per_round
        self._clipping = AdaptiveClipping(self.setting.clip).step(self._clipping, fraction)

    def _counted(self, count: NoisyCount, answers: NDArray[np.bool_], words: np.random.Generator) -> float:
        """Return the noisy fraction of yes by a secure sum; seats that are left add noise alone."""
        empty = sample_discrete_gaussian(count.local_sigma, (count.clients - len(answers),), word_source(words))
        total = messages_modulo(empty, 1 << count.bits).sum(keepdims=True, dtype=np.int64)
        if len(answers):
            total = total + count.encode(answers, words).sum(keepdims=True, dtype=np.int64)
        return 0.5 + (count.fraction(total) - 0.5) * count.clients / self.setting.clients_per_round

    @property
    def clip_norm(self) -> float:
        """Clip norm of the next round."""
        return self._clipping.clip_norm

    def progress(self) -> Progress:
        """Return where the run is, after its first round."""
        number = self.state.rounds
        known = [value for value in self.records["accuracy"] if not np.isnan(value)]
        up, down = (int(sum(self.records[name])) for name in ("bytes_up", "bytes_down"))
        accuracy = known[-1] if known else None
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
