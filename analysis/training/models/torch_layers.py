"""Layers that torch lacks, or whose gradients of single clients it cannot compute: made of operations that `torch.func.vmap` knows."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from ....arrays import FloatArray


class Images(nn.Module):
    """Rows of numbers as images of (height, width, channels)."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return images with their channels first."""
        return rows.reshape(-1, *self.shape).permute(0, 3, 1, 2)


class Dropout(nn.Module):
    """Units times factors that come from outside, as a buffer: each example can have its own."""

    kept: torch.Tensor

    def __init__(self, units: int, rate: float) -> None:
        super().__init__()
        self.units, self.rate = units, rate
        self.register_buffer("kept", torch.ones(1))

    def forward(self, units: torch.Tensor) -> torch.Tensor:
        """Return the units that are kept, and zeros."""
        return units * self.kept

    def draw(self, rng: np.random.Generator, examples: tuple[int, ...]) -> FloatArray:
        """Return factors: zeros at the rate, and others so much larger than 1 that the mean is 1."""
        return np.asarray((rng.random((*examples, self.units)) >= self.rate) / (1 - self.rate))


class WordVectors(nn.Module):
    """A vector for each word or character, which come as numbers."""

    def __init__(self, words: int, length: int) -> None:
        super().__init__()
        self.words = words
        self.vectors = nn.Parameter(torch.empty(words, length))

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """Return vectors, shape (examples, positions, length)."""
        return functional.embedding(numbers.long(), self.vectors)


class LongShortTermMemory(nn.Module):
    """A layer of LSTM cells with one bias for each gate: torch's own has two, and no rule for `vmap`."""

    def __init__(self, inputs: int, units: int) -> None:
        super().__init__()
        self.size = units
        self.inputs = nn.Parameter(torch.empty(inputs, 4 * units))
        self.units = nn.Parameter(torch.empty(units, 4 * units))
        self.biases = nn.Parameter(torch.empty(4 * units))

    def forward(self, sequences: torch.Tensor) -> torch.Tensor:
        """Return what the units put out at each position, shape (examples, positions, units)."""
        fed = sequences @ self.inputs + self.biases
        output = memory = fed.new_zeros(fed.shape[0], self.size)
        found = []
        for now in fed.unbind(1):
            write, forget, new, show = (now + output @ self.units).chunk(4, dim=-1)
            memory = forget.sigmoid() * memory + write.sigmoid() * new.tanh()
            output = show.sigmoid() * memory.tanh()
            found.append(output)
        return torch.stack(found, dim=1)

    def first_biases(self) -> FloatArray:
        """Return zeros, and ones for the gates that forget (Jozefowicz, Zaremba, Sutskever 2015)."""
        found = np.zeros((4, self.size))
        found[1] = 1.0
        return found.ravel()


class LastPosition(nn.Module):
    """The end of sequences."""

    def forward(self, sequences: torch.Tensor) -> torch.Tensor:
        """Return the last position's units, shape (examples, units)."""
        return sequences[:, -1]
