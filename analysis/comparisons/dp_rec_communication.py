"""Bytes that DP-REC sends in its paper's federations, in both directions, beside those of uncompressed models.

Numbers of clients, of messages per round and of rounds are the paper's, and so is the number of bits of a group. The models are not:
they are the ones that the literature has for these data, with their layers given below.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

from ...arguments import check_choice
from ...design.relative_entropy.group_layout import uniform_layout
from ...design.relative_entropy.message import message_bytes
from ..random_streams import named_stream
from ..simulation.two_way_compression import communication_totals, simulate_participation
from .dp_rec_references import PUBLISHED_SETTINGS
from .point import Point

BITS_PER_GROUP = 7
FLOAT_BYTES = 4
FIRST_MODELS = ("public", "sent")
_SETTINGS = {setting.dataset: setting for setting in PUBLISHED_SETTINGS}


@dataclass(frozen=True)
class Federation:
    """A training: who takes part, and what is learnt.

    Attributes
    ----------
    dataset : str
        Name of the data, one of the paper's.
    model : str
        The model, in words.
    tensors : tuple of tuple of int
        Shapes of its tensors.
    groups : int
        Number of groups that are coded independently.
    """

    dataset: str
    model: str
    tensors: tuple[tuple[int, ...], ...]
    groups: int

    def __str__(self) -> str:
        """Return the data's name."""
        return self.dataset

    @property
    def population(self) -> int:
        """Number of clients."""
        return _SETTINGS[self.dataset].population

    @property
    def clients_per_round(self) -> int:
        """Messages of a round."""
        return _SETTINGS[self.dataset].clients_per_round

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return _SETTINGS[self.dataset].rounds

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        return sum(math.prod(shape) for shape in self.tensors)

    @property
    def message_bytes(self) -> int:
        """Bytes of a message: the seed, and seven bits for each group."""
        return message_bytes(uniform_layout(self.parameters, self.groups, BITS_PER_GROUP))


def _lstm(inputs: int, units: int) -> tuple[tuple[int, ...], ...]:
    """Return the tensors of a layer as TensorFlow has them: input and recurrent weights and biases of four gates."""
    return (inputs, 4 * units), (units, 4 * units), (4 * units,)


# LeNet-5 as in Caffe's examples: two convolutions of 5 by 5, 20 and 50 channels, 500 hidden units, 10 classes.
_LENET = ((5, 5, 1, 20), (20,), (5, 5, 20, 50), (50,), (4 * 4 * 50, 500), (500,), (500, 10), (10,))
# The three others as in Reddi et al. 2021, *Adaptive Federated Optimization*. Two convolutions of 3 by 3, 32 and 64 channels,
# 128 hidden units, 62 classes.
_CONVOLUTIONAL = ((3, 3, 1, 32), (32,), (3, 3, 32, 64), (64,), (12 * 12 * 64, 128), (128,), (128, 62), (62,))
# 90 characters in 8 dimensions, two LSTM layers of 256 units.
_CHARACTERS = ((90, 8), *_lstm(8, 256), *_lstm(256, 256), (256, 90), (90,))
# 10 000 words and 4 other tokens in 96 dimensions, an LSTM layer of 670 units, back to 96 dimensions, and to words.
_WORDS = ((10_004, 96), *_lstm(96, 670), (670, 96), (96,), (96, 10_004), (10_004,))

FEDERATIONS = (
    Federation("MNIST", "LeNet-5 (Caffe)", _LENET, len(_LENET)),
    Federation("FEMNIST", "convolutional network", _CONVOLUTIONAL, len(_CONVOLUTIONAL)),
    Federation("Shakespeare", "character LSTM", _CHARACTERS, len(_CHARACTERS)),
    # Six groups are the paper's.
    Federation("StackOverflow", "next-word LSTM", _WORDS, 6),
)


@dataclass(frozen=True, kw_only=True)
class CommunicationPoint(Point):
    """A training whose participants are simulated, and whose bytes are counted.

    Clients are drawn with replacement. The server's optimiser is plain SGD, so that a model is its float32 parameters; one that remembers
    moments makes models two or three times as long.

    Attributes
    ----------
    federation : Federation
        The training.
    first_model : str
        ``"public"`` if clients know the first model, ``"sent"`` if it is sent to them. The same clients take part.
    """

    federation: Federation
    first_model: str

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row with the training's sizes and its bytes: the fields of `TwoWayTotals`, and by what factor they are fewer.

        Adjacency and trust model are those of DP-REC's promise, on which bytes do not depend.

        Examples
        --------
        >>> rows = [CommunicationPoint(seed=0, federation=FEDERATIONS[0], first_model=first).run()[0] for first in FIRST_MODELS]
        >>> [(row["first_model"], row["bytes_up"], row["full_models"]) for row in rows]
        [('public', 150000, 0), ('sent', 150000, 100)]
        """
        check_choice("first_model", self.first_model, FIRST_MODELS)
        federation = self.federation
        frame = simulate_participation(
            federation.population,
            federation.clients_per_round,
            federation.rounds,
            FLOAT_BYTES * federation.parameters,
            federation.message_bytes,
            named_stream(self.seed, f"participation, {federation.dataset}"),
            public_start=self.first_model == "public",
        )
        totals = communication_totals(frame)
        return [
            {
                "dataset": federation.dataset,
                "model": federation.model,
                "tensors": len(federation.tensors),
                "groups": federation.groups,
                "parameters": federation.parameters,
                "message_bytes": federation.message_bytes,
                "population": federation.population,
                "clients_per_round": federation.clients_per_round,
                "rounds": federation.rounds,
                "first_model": self.first_model,
                **asdict(totals),
                "compression_up": totals.compression_up,
                "compression_down": totals.compression_down,
                "compression": totals.compression,
                "adjacency": "add-or-remove-one",
                "trust_model": "central",
            }
        ]
