"""Points of a projective space over the numbers modulo a prime: numbers for them, points of hyperplanes, sums over hyperplanes."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...arrays import FloatArray, IntegerArray

MOST_POINTS = 2**40


@dataclass(frozen=True)
class ProjectiveSpace:
    """Lines through the origin of F^length, where F is the numbers modulo a prime.

    A line is named by its one vector whose last digit other than 0 is 1, and points are numbered in the order of these vectors, which are
    read as numbers whose first digit counts the least. Two lines are incident if their vectors' inner product is 0: the points that are
    incident with one point are its hyperplane.

    Attributes
    ----------
    prime : int
        At least 2. It is not checked that it is a prime.
    length : int
        Number of digits, at least 1; there are at most 2**40 points.

    Examples
    --------
    The Fano plane: seven points, three on each line.

    >>> plane = ProjectiveSpace(prime=2, length=3)
    >>> plane.points, plane.vectors(np.arange(3)).tolist()
    (7, [[1, 0, 0], [0, 1, 0], [1, 1, 0]])
    >>> plane.on_hyperplanes(np.array([6, 6, 6]), np.arange(3)).tolist()
    [4, 5, 2]
    """

    prime: int
    length: int

    def __post_init__(self) -> None:
        """Check the size."""
        if self.prime < 2 or self.length < 1 or self.points > MOST_POINTS:
            raise ValueError(
                f"prime and length must be at least 2 and 1, and give 2**40 points at most, got {self.prime} and {self.length}"
            )

    @property
    def points(self) -> int:
        """Their number, ``(prime**length - 1) / (prime - 1)``."""
        return self._points_of(self.length)

    @property
    def hyperplane_points(self) -> int:
        """Number of points of a hyperplane."""
        return self._points_of(self.length - 1)

    @property
    def common_points(self) -> int:
        """Number of points that two hyperplanes have in common."""
        return self._points_of(max(self.length - 2, 0))

    def vectors(self, points: IntegerArray) -> IntegerArray:
        """Return the digits of points, shape (..., length)."""
        last = self._last_digits(points)
        code = points - self._starts[last] + self._powers[last]
        return np.asarray(code[..., None] // self._powers % self.prime)

    def numbers(self, vectors: IntegerArray) -> IntegerArray:
        """Return the points that vectors other than 0 lie on, shape (...,)."""
        last = self.length - 1 - np.argmax(vectors[..., ::-1] != 0, axis=-1)
        scales = self._inverses[np.take_along_axis(vectors, last[..., None], axis=-1)]
        code = (vectors * scales % self.prime) @ self._powers
        return np.asarray(code - self._powers[last] + self._starts[last])

    def on_hyperplanes(self, points: IntegerArray, ranks: IntegerArray) -> IntegerArray:
        """Return a point of the hyperplane of each point: for ranks from 0 to ``hyperplane_points - 1``, each of them once."""
        normals = self.vectors(points)
        # The digit at which the normal has its 1 follows from the others, which are those of any point of a space of one dimension less.
        free = np.arange(self.length) != self._last_digits(points)[:, None]
        vectors = np.zeros(normals.shape, dtype=np.int64)
        vectors[free] = ProjectiveSpace(self.prime, self.length - 1).vectors(ranks).ravel()
        vectors[~free] = -(normals * vectors).sum(axis=1) % self.prime
        return self.numbers(vectors)

    def are_incident(self, points: IntegerArray, others: IntegerArray) -> "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]":
        """Return whether points lie on the hyperplanes of others."""
        return np.asarray((self.vectors(points) * self.vectors(others)).sum(axis=-1) % self.prime == 0)

    def hyperplane_sums(self, counts: IntegerArray, normals: int) -> FloatArray:
        """Return how many of some points lie on the hyperplane of each of the first points, of which `normals` are asked for.

        An inner product is 0 modulo the prime in ``1/prime sum_s exp(-2 pi i s <x, y> / prime)`` cases, over all s modulo the prime. For
        points y whose last digit is the m-th, the sum over y is a Fourier transform in m dimensions, at s x: time is proportional to
        ``points log(points) + normals length prime``, instead of ``points normals``. Exact as long as there are at most 2**40 of each.

        Parameters
        ----------
        counts : ndarray of shape (..., points)
            How many there are of each point.
        normals : int
            Number of hyperplanes.
        """
        spectra = [self._spectrum(counts, digit) for digit in range(self.length)]
        vectors = self.vectors(np.arange(normals))
        roots = np.exp(-2j * np.pi * np.arange(self.prime) / self.prime)
        total = np.zeros((*counts.shape[:-1], normals))
        # The sums for s and for prime - s are conjugate.
        for scale in range(1, self.prime // 2 + 1):
            digits = vectors * scale % self.prime
            place = np.zeros(normals, dtype=np.int64)
            part = np.zeros(total.shape)
            for digit, spectrum in enumerate(spectra):
                part += (roots[digits[:, digit]] * spectrum[..., place]).real
                place += digits[:, digit] * self._powers[digit]
            total += part if 2 * scale == self.prime else 2 * part
        return np.asarray(np.rint((counts.sum(axis=-1, keepdims=True) + total) / self.prime))

    def _spectrum(self, counts: IntegerArray, digit: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.complex128]]":
        """Return the Fourier transform of the counts of points with that last digit, shape (..., prime**digit)."""
        of_these = counts[..., self._starts[digit] : self._starts[digit + 1]]
        if digit == 0:
            return np.asarray(of_these, dtype=complex)
        cube = of_these.reshape(*counts.shape[:-1], *[self.prime] * digit)
        return np.asarray(np.fft.fftn(cube, axes=range(-digit, 0)).reshape(of_these.shape))

    def _points_of(self, length: int) -> int:
        return int((self.prime**length - 1) // (self.prime - 1))

    def _last_digits(self, points: IntegerArray) -> IntegerArray:
        return np.searchsorted(self._starts[1:], points, side="right")

    @cached_property
    def _powers(self) -> IntegerArray:
        return np.array([self.prime**digit for digit in range(self.length)], dtype=np.int64)

    @cached_property
    def _starts(self) -> IntegerArray:
        """Number of the first point with each last digit, and that of all points."""
        return np.array([self._points_of(digit) for digit in range(self.length + 1)], dtype=np.int64)

    @cached_property
    def _inverses(self) -> IntegerArray:
        return np.array([0, *(pow(digit, -1, self.prime) for digit in range(1, self.prime))], dtype=np.int64)
