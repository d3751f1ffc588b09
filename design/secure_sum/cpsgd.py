"""cpSGD: clients quantise their vectors to a few levels and add binomial noise, and a secure sum of whole numbers is all that is seen.

Agarwal, Suresh, Yu, Kumar, McMahan 2018, *cpSGD: communication-efficient and differentially-private distributed SGD*.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import FloatArray, IntegerArray, WordArray
from ..noise.binomial_noise import sample_binomial
from ..noise.random_words import WordsLike, word_source
from ..transforms.k_level_quantisation import quantisation_error, quantise_k_levels
from .cpsgd_parameters import CpsgdParameters
from .modular_arithmetic import aggregate_residues, messages_modulo, summed_messages


@dataclass(frozen=True)
class CpsgdMechanism(CpsgdParameters):
    """Clients round each coordinate to one of a few levels and add binomial noise; the server sees the sum, which cannot wrap.

    A vector is clipped, rotated if so wished, and rounded to levels 0 to k - 1 on [-X, X], independently in each coordinate; to each,
    Bin(m, p) is added. A message is at most k - 1 + m, and the modulus is one more than n such messages can add up to.

    Without rotation X is the clip norm D. With it, X = D sqrt(2 ln(2 n d / q) / d), d the padded dimension and q = delta / 3: with
    probability 1 - q over the seed, no coordinate of n vectors is beyond. Those that are beyond are cut off, which moves no two vectors
    further apart, but biases the estimate (`bias_bound`). Vectors must not depend on the seed of the rotation.

    The guarantee is that of the noise of all `clients` together: a client that drops out takes its noise with it, and `decode` refuses a
    sum over another number of clients. Noise is drawn exactly.

    The fields are those of `CpsgdParameters`.

    Examples
    --------
    >>> from quietbits.design.contracts.norm_ball import NormBall
    >>> mechanism = CpsgdMechanism(NormBall(dimension=3, norm=2.0), clients=1000, levels=65, trials=400, delta=1e-5)
    >>> print(mechanism.guarantee)
    epsilon = 0.771764, delta = 1e-05, replace-one adjacency, secure-sum trust model
    >>> messages = mechanism.encode(np.tile([0.6, 0.0, -0.8], (1000, 1)), np.random.default_rng(0))
    >>> messages.dtype, mechanism.decode(mechanism.aggregate(messages), 1000).round(1).tolist()
    (dtype('uint32'), [0.6, 0.0, -0.8])
    """

    @property
    def coordinate_wrap_probability(self) -> float:
        """0.0, as `wrap_probability`."""
        return 0.0

    def noisy_steps(self, vectors: ArrayLike, words: WordsLike) -> IntegerArray:
        """Clip, rotate if so wished, quantise and add noise, from 0 to levels - 1 + trials. Six arrays of the padded shape are in use."""
        words = word_source(words)
        noisy = quantise_k_levels(self._flattened(vectors), self.levels, self.level_bound, words)
        noisy += sample_binomial(self.trials, self.probability, noisy.shape, words)
        return noisy

    def encode(self, vectors: ArrayLike, words: WordsLike) -> NDArray[Any]:
        """Return `noisy_steps` as messages of a secure sum: the same numbers, which are below the modulus."""
        return messages_modulo(self.noisy_steps(vectors, words), self.modulus)

    def aggregate(self, messages: NDArray[Any]) -> WordArray:
        """Return the sum of the messages: what a secure sum reveals.

        Parameters
        ----------
        messages : ndarray of int, shape (clients of the chunk, padded_dimension)
            What clients sent.

        Returns
        -------
        ndarray of uint64, shape (padded_dimension,)
            Sums below the modulus, which add up over chunks.

        Raises
        ------
        ValueError
            If the shape is wrong, or a number is not from 0 to modulus - 1.
        """
        return summed_messages(messages, self.padded_dimension, self.modulus)

    def recovered_steps(self, aggregate: NDArray[Any]) -> IntegerArray:
        """Return the sum of `noisy_steps`: always right.

        Parameters
        ----------
        aggregate : ndarray of uint64, shape (padded_dimension,)
            Sum over all clients.

        Returns
        -------
        ndarray of int64, shape (padded_dimension,)
            From 0 to modulus - 1.

        Raises
        ------
        ValueError
            If the aggregate's shape or type is wrong.
        """
        return aggregate_residues(aggregate, self.padded_dimension, self.modulus).astype(np.int64)

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the estimate of the mean: the sum without the noise's mean, in the vectors' units, rotated back.

        Parameters
        ----------
        aggregate : ndarray of uint64, shape (padded_dimension,)
            Sum over all clients.
        clients : int
            Number of clients in it: exactly those that the mechanism was made for.

        Returns
        -------
        ndarray of float64, shape (dimension,)
            The estimate.

        Raises
        ------
        ValueError
            If the number of clients is another one, or the aggregate's shape or type is wrong.
        """
        if clients != self.clients:
            raise ValueError(f"clients must be {self.clients}, for whose noise the guarantee is stated, got {clients!r}")
        centred = self.recovered_steps(aggregate) / self.clients - self.trials * self.probability
        flattened = centred * self.step - self.level_bound
        return self._rotation.inverse(flattened) if self.rotated else flattened

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return the expected squared L2 distance between each clipped vector and its decoded message, noise and rounding.

        Divided by the number of clients, the mean of these is the expected squared error of the estimate.

        Parameters
        ----------
        vectors : array_like of shape (clients, dimension)
            Finite vectors.

        Returns
        -------
        ndarray of float64, shape (clients,)
            ``dimension step**2 m p (1 - p)``, and ``step**2 sum f (1 - f)`` with f the fractional parts in steps, times
            dimension / padded_dimension, as what falls on the padding is dropped; exact where no rotated coordinate is beyond
            `level_bound`.

        Raises
        ------
        ValueError
            If the shape is wrong, or a coordinate is NaN or infinite.
        """
        # Entries of a Hadamard matrix are 1 and -1: of each rotated coordinate's error, the same share is left.
        kept = self.ball.dimension / self.padded_dimension
        return self._noise_variance + kept * quantisation_error(self._flattened(vectors), self.levels, self.level_bound)

    def _flattened(self, vectors: ArrayLike) -> FloatArray:
        clipped = self.ball.clip(vectors)
        return self._rotation.forward(clipped) if self.rotated else clipped
