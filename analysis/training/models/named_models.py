"""Models by their names in files of trainings."""

import re

from ....extras import installed, require
from .network import Network, check_widths, shape_of_images
from .relu_networks import ConvolutionalNetwork, DenseNetwork

SCATTER_SOFTMAX = "scatter-softmax"
# Names of published models, which consist of torch's layers (`torch_models`).
TORCH_MODELS = ("lenet-5", "dp-rec-cnn", "femnist-cnn", "mvu-cnn", "character-lstm", "next-word-lstm")


def network_named(
    name: str, features: int, classes: int, image_shape: tuple[int, int, int] | None = None, *, precision: int = 64
) -> Network:
    """Return a model by its name.

    Parameters
    ----------
    name : str
        Name of the model: ``"softmax"``; ``"mlp-60-60-60"``, with the widths of hidden layers of ReLU units; ``"cnn-8-32"``, with the
        channels of a 3 by 3 convolution, ReLU, average pooling by 2, and the widths of hidden layers; ``"scatter-softmax"``, softmax on
        fixed wavelet features; or one of `TORCH_MODELS`, if torch is installed.
    features, classes : int
        Number of values of an input, and number of classes.
    image_shape : tuple of int or None
        (height, width, channels) of an input, if it is an image.
    precision : int
        Number of bits of a number, 32 or 64, in torch's computations; other models compute with 64 bits.

    Examples
    --------
    >>> [network_named(name, 64, 10, (8, 8, 1)).layers.dimension for name in ("softmax", "mlp-60-60-60", "cnn-8-32")]
    [650, 11830, 2746]
    """
    check_model(name)
    check_installed(name)
    if name == SCATTER_SOFTMAX:
        from .scatter_network import ScatterNetwork

        return ScatterNetwork(shape_of_images(name, image_shape), classes)
    if needs_torch(name):
        from .torch_models import torch_model

        return torch_model(name, classes, image_shape, precision)
    kind, *numbers = name.split("-")
    widths = [int(number) for number in numbers]
    if kind == "cnn":
        return ConvolutionalNetwork(shape_of_images(name, image_shape), widths[0], (*widths[1:], classes))
    return DenseNetwork((features, *widths, classes))


def check_model(name: str) -> None:
    """Raise ValueError unless the name is a model's, with possible widths of layers."""
    written = isinstance(name, str) and re.fullmatch(r"softmax|(mlp|cnn)(-\d+)+", name)
    if not written and name not in (SCATTER_SOFTMAX, *TORCH_MODELS):
        others = ", ".join((SCATTER_SOFTMAX, *TORCH_MODELS))
        raise ValueError(f"model must be softmax, mlp-WIDTH-..., cnn-CHANNELS-WIDTH-..., or one of {others}, got {name!r}")
    if written:
        check_widths(tuple(int(width) for width in name.split("-")[1:]))


def needs_torch(name: str) -> bool:
    """Return whether a model is made of torch's layers."""
    return name in TORCH_MODELS


def lacks_torch(name: str) -> bool:
    """Return whether a model needs torch, and torch is not installed."""
    return needs_torch(name) and not installed("torch")


def check_installed(name: str) -> None:
    """Raise `MissingExtraError` if a model needs torch, and torch is not installed."""
    if needs_torch(name):
        require("torch", f"model {name!r}")
