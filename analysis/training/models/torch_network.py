"""Any module of torch as a network: parameters in one numpy vector, and gradients of many clients at a time by `torch.func`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from ....arrays import FloatArray, IntegerArray
from ....design.federated.model_layers import Layer, ModelLayers
from .torch_layers import Dropout, LongShortTermMemory, WordVectors

# Examples that are computed at a time: more would fill the memory with what their units put out.
ROWS = 256
# First vectors of words are uniform up to here on either side.
WORD_LIMIT = 0.05


@dataclass(frozen=True, eq=False)
class TorchNetwork:
    """A module whose parameters come from outside. One thread computes: results are the same with any number of workers.

    Attributes
    ----------
    name : str
        Of the model.
    module : torch.nn.Module
        On the device ``"meta"``, with shapes and no numbers; it takes rows of inputs.
    precision : int
        Bits of a number, 32 or 64.
    rng : numpy.random.Generator or None
        Source of dropout in gradients; None: without.
    """

    name: str
    module: nn.Module
    precision: int = 64
    rng: np.random.Generator | None = None

    @cached_property
    def layers(self) -> ModelLayers:
        """A layer for each part of the module that has tensors."""
        found = []
        for part, names in groupby(self._shapes, _part_of):
            kind = type(self.module.get_submodule(part)).__name__.lower()
            found.append(Layer(f"{kind}-{part}", tuple(self._shapes[name] for name in names)))
        return ModelLayers(self.name, tuple(found))

    def start(self, rng: np.random.Generator) -> FloatArray:
        """Draw weights as Glorot and Bengio 2010 do, and words' vectors from a small cube, as Keras does; biases are zeros."""
        found = np.zeros(self.layers.dimension)
        for (name, shape), place in zip(self._shapes.items(), self._places, strict=True):
            part = self.module.get_submodule(_part_of(name))
            if len(shape) > 1:
                fans = (shape[0] + shape[1]) * np.prod(shape[2:])
                limit = WORD_LIMIT if isinstance(part, WordVectors) else (6 / fans) ** 0.5
                found[place] = rng.uniform(-limit, limit, place.stop - place.start)
            elif isinstance(part, LongShortTermMemory):
                found[place] = part.first_biases()
        return found

    def drawing(self, rng: np.random.Generator) -> "TorchNetwork":
        """As the protocol says."""
        return replace(self, rng=rng) if self._dropouts else self

    def scores(self, parameters: FloatArray, inputs: FloatArray) -> FloatArray:
        """As the protocol says."""
        return np.concatenate([scores.numpy() for scores in self._scores(parameters, inputs)]).astype(float)

    def gradients(self, parameters: FloatArray, inputs: FloatArray, labels: IntegerArray, *, scale: float = 1.0) -> FloatArray:
        """As the protocol says."""
        self._check_words(inputs)
        clients, examples = inputs.shape[:2]
        asked = (labels >= 0).reshape(clients, -1).sum(axis=1)
        # A client's mean is over all its examples, however many are computed at a time.
        counts = self._tensor(np.full(clients, examples) if labels.ndim == 3 and not self._each_position else np.maximum(asked, 1))
        of_clients = vmap(grad(self._loss), in_dims=(None if parameters.ndim == 1 else 0, 0, 0, 0, 0))
        found, step = np.zeros((clients, self.layers.dimension)), max(1, ROWS // clients)
        with _one_thread():
            tensors = self._tensors(parameters)
            for start in range(0, examples, step):
                rows, own = inputs[:, start : start + step], torch.tensor(labels[:, start : start + step])
                parts = of_clients(tensors, self._tensor(rows), own, counts, self._kept(rows.shape[:2]))
                for place, part in zip(self._places, parts.values(), strict=True):
                    found[:, place] += part.reshape(clients, -1).numpy()
        found *= scale
        return found

    @property
    def _each_position(self) -> bool:
        """Whether scores are of shape (n, positions, classes)."""
        return False

    def _scores(self, parameters: FloatArray, inputs: FloatArray) -> Iterator[torch.Tensor]:
        """Return the scores of some examples after the other."""
        self._check_words(inputs)
        with _one_thread(), torch.no_grad():
            tensors = self._tensors(parameters) | {name: torch.ones(1) for name in self._dropouts}
            for start in range(0, max(len(inputs), 1), ROWS):
                yield functional_call(self.module, tensors, (self._tensor(inputs[start : start + ROWS]),))

    @cached_property
    def _shapes(self) -> Mapping[str, tuple[int, ...]]:
        return {name: tuple(tensor.shape) for name, tensor in self.module.named_parameters()}

    @cached_property
    def _places(self) -> tuple[slice, ...]:
        """Where each tensor lies in a vector."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes.values()]).tolist()
        return tuple(slice(*pair) for pair in zip([0, *ends[:-1]], ends, strict=True))

    @cached_property
    def _dropouts(self) -> Mapping[str, Dropout]:
        return {f"{name}.kept": part for name, part in self.module.named_modules() if isinstance(part, Dropout)}

    def _tensor(self, values: NDArray[Any]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float32 if self.precision == 32 else torch.float64)

    def _tensors(self, parameters: FloatArray) -> dict[str, torch.Tensor]:
        """Return the module's tensors; those of several clients have a first axis for them."""
        numbers, lead = self._tensor(parameters), parameters.shape[:-1]
        named = zip(self._shapes.items(), self._places, strict=True)
        return {name: numbers[..., place].reshape(*lead, *shape) for (name, shape), place in named}

    def _kept(self, examples: tuple[int, ...]) -> dict[str, torch.Tensor]:
        """Return the factors of units that dropout leaves out or keeps."""
        if self.rng is None:
            return {name: torch.ones((*examples, 1)) for name in self._dropouts}
        return {name: self._tensor(part.draw(self.rng, examples)) for name, part in self._dropouts.items()}

    def _loss(
        self, tensors: dict[str, torch.Tensor], rows: torch.Tensor, labels: torch.Tensor, count: torch.Tensor, kept: dict[str, torch.Tensor]
    ) -> torch.Tensor:
        """Return what a client's rows add to the mean of its losses: of softmax with cross-entropy, or a sigmoid for each class."""
        scores = functional_call(self.module, tensors | kept, (rows,))
        if scores.shape == labels.shape:
            return functional.binary_cross_entropy_with_logits(scores, labels.to(scores.dtype), reduction="sum") / count
        if scores.shape[:-1] != labels.shape:
            raise ValueError(f"model must fit labels of shape {tuple(labels.shape)}, got {self.name}, which gives {tuple(scores.shape)}")
        return functional.cross_entropy(scores.flatten(0, -2), labels.flatten(), ignore_index=-1, reduction="sum") / count

    def _check_words(self, inputs: FloatArray) -> None:
        words = next((part.words for part in self.module.modules() if isinstance(part, WordVectors)), None)
        if words is not None and not np.all((inputs >= 0) & (inputs < words) & (inputs == np.floor(inputs))):
            raise ValueError(f"data must be whole numbers from 0 to {words - 1}, of characters or words, for the model {self.name}")


@dataclass(frozen=True, eq=False)
class TorchSequenceNetwork(TorchNetwork):
    """A module that gives scores of shape (n, positions, classes)."""

    def answers(self, parameters: FloatArray, inputs: FloatArray) -> IntegerArray:
        """As the protocol says."""
        return np.concatenate([scores.argmax(dim=-1).numpy() for scores in self._scores(parameters, inputs)])

    @property
    def _each_position(self) -> bool:
        return True


def _part_of(name: str) -> str:
    """Return the name of the part whose tensor it is."""
    return name.rpartition(".")[0]


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
