"""The models that papers train, with exactly their numbers of parameters: convolutional networks and LSTMs."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from torch import nn

from .network import shape_of_images
from .torch_layers import Dropout, Images, LastPosition, LongShortTermMemory, WordVectors
from .torch_network import TorchNetwork, TorchSequenceNetwork

Shape = tuple[int, int, int]
Parts = list[nn.Module]
NEXT_WORD = "next-word-lstm"


def torch_model(name: str, classes: int, image_shape: Shape | None, precision: int) -> TorchNetwork:
    """Return a model of `named_models.TORCH_MODELS`."""
    # On this device nothing is drawn, and torch's own random numbers stay where they were.
    with torch.device("meta"):
        if name in _FOR_SEQUENCES:
            if image_shape is not None:
                raise ValueError(f"model must not be one for characters or words, as inputs are images, got {name!r}")
            made = TorchSequenceNetwork if name == NEXT_WORD else TorchNetwork
            return made(name, nn.Sequential(*_FOR_SEQUENCES[name](classes)), precision)
        return TorchNetwork(name, _for_images(name, classes, shape_of_images(name, image_shape)), precision)


def _for_images(name: str, classes: int, shape: Shape) -> nn.Module:
    """Return convolutions, and fully connected layers on what they put out for images of this shape."""
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
        # DP-REC on MNIST, as in TensorFlow's tutorials.
        "lenet-5": (_lenet, _lenet_dense),
        # DP-REC on FEMNIST: inferred from its bytes (`dprec-communication`).
        "dp-rec-cnn": (_dp_rec, _dp_rec_dense),
        # Linear compression on F-EMNIST: by its size, the network with dropout of TensorFlow Federated's EMNIST baseline.
        "femnist-cnn": (_femnist, _femnist_dense),
        # MVU, figure 6: that of Papernot et al. 2021, *Tempered sigmoid activations for deep learning with differential privacy*.
        "mvu-cnn": (_mvu, _mvu_dense),
    }
)
# Both as in Reddi et al. 2021, *Adaptive federated optimization*: DP-REC's on Shakespeare, linear compression's on StackOverflow.
_FOR_SEQUENCES: Mapping[str, Callable[[int], Parts]] = MappingProxyType({"character-lstm": _characters, NEXT_WORD: _next_words})
