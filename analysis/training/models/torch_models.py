"""Published models with exactly their numbers of parameters, made of torch's modules.

Any module of torch can be a network: its parameters form one numpy vector, and `torch.func` computes gradients of many clients at a time.
Layers that torch lacks, or whose gradients of single clients it cannot compute, consist of operations that `torch.func.vmap` supports.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....arrays import FloatArray, IntegerArray
from ....design.federated.model_layers import Layer, ModelLayers
from ....extras import optional
from .network import shape_of_images

with optional("torch", "models of torch's layers"):
    import torch
    from torch import nn
    from torch.func import functional_call, grad, vmap
    from torch.nn import functional

# Number of examples per batch, as units' outputs of more examples would fill the memory.
ROWS = 256
# Largest absolute value of initial word vectors, which are uniform.
WORD_LIMIT = 0.05
Shape = tuple[int, int, int]
Parts = list[nn.Module]
NEXT_WORD = "next-word-lstm"


class Images(nn.Module):
    """Rows of numbers as images of (height, width, channels)."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return images with their channels first."""
        return rows.reshape(-1, *self.shape).permute(0, 3, 1, 2)


class Dropout(nn.Module):
    """Dropout by factors from an outside buffer, so that each example has its own factors."""

    kept: torch.Tensor

    def __init__(self, units: int, rate: float) -> None:
        super().__init__()
        self.units, self.rate = units, rate
        self.register_buffer("kept", torch.ones(1))

    def forward(self, units: torch.Tensor) -> torch.Tensor:
        """Return the kept units, and zeros."""
        return units * self.kept

    def draw(self, rng: np.random.Generator, examples: tuple[int, ...]) -> FloatArray:
        """Draw factors: zeros at the rate, and larger factors otherwise, so that the mean is 1."""
        return np.asarray((rng.random((*examples, self.units)) >= self.rate) / (1 - self.rate))


class WordVectors(nn.Module):
    """Layer that maps numbers of words or characters to vectors."""

    def __init__(self, words: int, length: int) -> None:
        super().__init__()
        self.words = words
        self.vectors = nn.Parameter(torch.empty(words, length))

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """Return vectors, shape (examples, positions, length)."""
        return functional.embedding(numbers.long(), self.vectors)


class LongShortTermMemory(nn.Module):
    """An LSTM layer with one bias per gate.

    torch's own layer has two biases per gate, and no rule for `vmap`.
    """

    def __init__(self, inputs: int, units: int) -> None:
        super().__init__()
        self.size = units
        self.inputs = nn.Parameter(torch.empty(inputs, 4 * units))
        self.units = nn.Parameter(torch.empty(units, 4 * units))
        self.biases = nn.Parameter(torch.empty(4 * units))

    def forward(self, sequences: torch.Tensor) -> torch.Tensor:
        """Return the units' outputs at each position, shape (examples, positions, units)."""
        fed = sequences @ self.inputs + self.biases
        output = memory = fed.new_zeros(fed.shape[0], self.size)
        outputs = []
        for now in fed.unbind(1):
            write, forget, new, show = (now + output @ self.units).chunk(4, dim=-1)
            memory = forget.sigmoid() * memory + write.sigmoid() * new.tanh()
            output = show.sigmoid() * memory.tanh()
            outputs.append(output)
        return torch.stack(outputs, dim=1)

    def first_biases(self) -> FloatArray:
        """Return biases of zero, and of one for the forget gates.

        The biases of the forget gates are those of Jozefowicz, Zaremba, Sutskever 2015.
        """
        parameters = np.zeros((4, self.size))
        parameters[1] = 1.0
        return parameters.ravel()


class LastPosition(nn.Module):
    """Layer that keeps the last position of each sequence."""

    def forward(self, sequences: torch.Tensor) -> torch.Tensor:
        """Return the last position's units, shape (examples, units)."""
        return sequences[:, -1]


@dataclass(frozen=True, eq=False)
class TorchNetwork:
    """A network made of a torch module with outside parameters.

    The network computes in a single thread, so that results are the same with any number of workers.

    Attributes
    ----------
    name : str
        Name of the model.
    module : torch.nn.Module
        Module on the device ``"meta"``, with shapes and no numbers; it takes rows of inputs.
    precision : int
        Number of bits of a number, 32 or 64.
    rng : numpy.random.Generator or None
        Source of dropout in gradients; None for no dropout.
    """

    name: str
    module: nn.Module
    precision: int = 64
    rng: np.random.Generator | None = None

    @cached_property
    def layers(self) -> ModelLayers:
        """A layer for each part of the module that has tensors."""
        layers = []
        for part, names in groupby(self._shapes, _part_of):
            kind = type(self.module.get_submodule(part)).__name__.lower()
            layers.append(Layer(f"{kind}-{part}", tuple(self._shapes[name] for name in names)))
        return ModelLayers(self.name, tuple(layers))

    def start(self, rng: np.random.Generator) -> FloatArray:
        """Draw weights as Glorot and Bengio 2010 do; biases are zeros.

        Word vectors are drawn from a small cube, as Keras does.
        """
        parameters = np.zeros(self.layers.dimension)
        for (name, shape), place in zip(self._shapes.items(), self._places, strict=True):
            part = self.module.get_submodule(_part_of(name))
            if len(shape) > 1:
                fans = (shape[0] + shape[1]) * np.prod(shape[2:])
                limit = WORD_LIMIT if isinstance(part, WordVectors) else (6 / fans) ** 0.5
                parameters[place] = rng.uniform(-limit, limit, place.stop - place.start)
            elif isinstance(part, LongShortTermMemory):
                parameters[place] = part.first_biases()
        return parameters

    def drawing(self, rng: np.random.Generator) -> "TorchNetwork":
        """Return the model with dropout drawn from `rng`, by the protocol of `RandomNetwork`."""
        return replace(self, rng=rng) if self._dropouts else self

    def scores(self, parameters: FloatArray, inputs: FloatArray) -> FloatArray:
        """Return scores by the protocol of `Network`."""
        return np.concatenate([scores.numpy() for scores in self._scores(parameters, inputs)]).astype(float)

    def gradients(self, parameters: FloatArray, inputs: FloatArray, labels: IntegerArray, *, scale: float = 1.0) -> FloatArray:
        """Return gradients by the protocol of `Network`."""
        self._check_words(inputs)
        clients, examples = inputs.shape[:2]
        asked = (labels >= 0).reshape(clients, -1).sum(axis=1)
        # A client's mean is over all of its examples, in any number of batches.
        counts = self._tensor(np.full(clients, examples) if labels.ndim == 3 and not self._each_position else np.maximum(asked, 1))
        of_clients = vmap(grad(self._loss), in_dims=(None if parameters.ndim == 1 else 0, 0, 0, 0, 0))
        gradients, step = np.zeros((clients, self.layers.dimension)), max(1, ROWS // clients)
        with _one_thread():
            tensors = self._tensors(parameters)
            for start in range(0, examples, step):
                rows, own = inputs[:, start : start + step], torch.tensor(labels[:, start : start + step])
                parts = of_clients(tensors, self._tensor(rows), own, counts, self._kept(rows.shape[:2]))
                for place, part in zip(self._places, parts.values(), strict=True):
                    gradients[:, place] += part.reshape(clients, -1).numpy()
        gradients *= scale
        return gradients

    @property
    def _each_position(self) -> bool:
        """Whether scores are of shape (n, positions, classes)."""
        return False

    def _scores(self, parameters: FloatArray, inputs: FloatArray) -> Iterator[torch.Tensor]:
        """Return the scores of examples, batch by batch."""
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
        """Place of each tensor in a vector."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes.values()]).tolist()
        return tuple(slice(*pair) for pair in zip([0, *ends[:-1]], ends, strict=True))

    @cached_property
    def _dropouts(self) -> Mapping[str, Dropout]:
        return {f"{name}.kept": part for name, part in self.module.named_modules() if isinstance(part, Dropout)}

    def _tensor(self, values: NDArray[Any]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float32 if self.precision == 32 else torch.float64)

    def _tensors(self, parameters: FloatArray) -> dict[str, torch.Tensor]:
        """Return the module's tensors; tensors of several clients have a first axis for clients."""
        numbers, lead = self._tensor(parameters), parameters.shape[:-1]
        named = zip(self._shapes.items(), self._places, strict=True)
        return {name: numbers[..., place].reshape(*lead, *shape) for (name, shape), place in named}

    def _kept(self, examples: tuple[int, ...]) -> dict[str, torch.Tensor]:
        """Return the dropout factors of units."""
        if self.rng is None:
            return {name: torch.ones((*examples, 1)) for name in self._dropouts}
        return {name: self._tensor(part.draw(self.rng, examples)) for name, part in self._dropouts.items()}

    def _loss(
        self, tensors: dict[str, torch.Tensor], rows: torch.Tensor, labels: torch.Tensor, count: torch.Tensor, kept: dict[str, torch.Tensor]
    ) -> torch.Tensor:
        """Return the share of a client's rows in its mean loss.

        The loss is softmax with cross-entropy, or a sigmoid for each class.
        """
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
        """Return the best class at each position, by the protocol of `SequenceNetwork`."""
        return np.concatenate([scores.argmax(dim=-1).numpy() for scores in self._scores(parameters, inputs)])

    @property
    def _each_position(self) -> bool:
        return True


def _part_of(name: str) -> str:
    """Return the name of a tensor's part."""
    return name.rpartition(".")[0]


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def torch_model(name: str, classes: int, image_shape: Shape | None, precision: int) -> TorchNetwork:
    """Return a model of `named_models.TORCH_MODELS`."""
    # The device ``"meta"`` draws no random numbers, and does not advance torch's generator.
    with torch.device("meta"):
        if name in _FOR_SEQUENCES:
            if image_shape is not None:
                raise ValueError(f"model must not be one for characters or words, as inputs are images, got {name!r}")
            made = TorchSequenceNetwork if name == NEXT_WORD else TorchNetwork
            return made(name, nn.Sequential(*_FOR_SEQUENCES[name](classes)), precision)
        return TorchNetwork(name, _for_images(name, classes, shape_of_images(name, image_shape)), precision)


def _for_images(name: str, classes: int, shape: Shape) -> nn.Module:
    """Return the network of convolutions and fully connected layers for images of a shape."""
    convolutions, dense = _FOR_IMAGES[name]
    first = nn.Sequential(Images(shape), *convolutions(shape[2]), nn.Flatten())
    try:
        units = first(torch.empty(1, shape[0] * shape[1] * shape[2])).shape[1]
    except RuntimeError:
        raise ValueError(f"model must be one for images of {shape[0]} by {shape[1]}, got {name!r}, which needs larger ones") from None
    return nn.Sequential(*first, *dense(units, classes))


def _lenet(channels: int) -> Parts:
    return [nn.Conv2d(channels, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2)]


def _lenet_dense(units: int, classes: int) -> Parts:
    return [nn.Linear(units, 512), nn.ReLU(), nn.Linear(512, classes)]


def _dp_rec(channels: int) -> Parts:
    return [nn.Conv2d(channels, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2)]


def _dp_rec_dense(units: int, classes: int) -> Parts:
    return [nn.Linear(units, 128), nn.ReLU(), nn.Linear(128, classes)]


def _femnist(channels: int) -> Parts:
    return [nn.Conv2d(channels, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU()]


def _femnist_dense(units: int, classes: int) -> Parts:
    return [Dropout(units, 0.25), nn.Linear(units, 128), nn.ReLU(), Dropout(128, 0.5), nn.Linear(128, classes)]


def _mvu(channels: int) -> Parts:
    pool = nn.AvgPool2d(2, stride=1)
    return [nn.Conv2d(channels, 16, 8, stride=2, padding=2), nn.Tanh(), pool, nn.Conv2d(16, 32, 4, stride=2), nn.Tanh(), pool]


def _mvu_dense(units: int, classes: int) -> Parts:
    return [nn.Linear(units, 32), nn.Tanh(), nn.Linear(32, classes)]


def _characters(classes: int) -> Parts:
    memories = [LongShortTermMemory(8, 256), LongShortTermMemory(256, 256)]
    return [WordVectors(classes, 8), *memories, LastPosition(), nn.Linear(256, classes)]


def _next_words(classes: int) -> Parts:
    return [WordVectors(classes, 96), LongShortTermMemory(96, 670), nn.Linear(670, 96), nn.Linear(96, classes)]


_FOR_IMAGES: Mapping[str, tuple[Callable[[int], Parts], Callable[[int, int], Parts]]] = MappingProxyType(
    {
        # DP-REC's network for MNIST is that of TensorFlow's tutorials.
        "lenet-5": (_lenet, _lenet_dense),
        # DP-REC's network for FEMNIST is inferred from its bytes (`dprec-communication`).
        "dp-rec-cnn": (_dp_rec, _dp_rec_dense),
        # Linear compression's network for F-EMNIST is, by its size, the dropout network of TensorFlow Federated's EMNIST baseline.
        "femnist-cnn": (_femnist, _femnist_dense),
        # MVU's network of figure 6 is from Papernot et al. 2021, *Tempered sigmoid activations for deep learning with differential
        # privacy*.
        "mvu-cnn": (_mvu, _mvu_dense),
    }
)
# Both networks follow Reddi et al. 2021, *Adaptive federated optimization*: DP-REC's on Shakespeare, linear compression's on StackOverflow.
_FOR_SEQUENCES: Mapping[str, Callable[[int], Parts]] = MappingProxyType({"character-lstm": _characters, NEXT_WORD: _next_words})
