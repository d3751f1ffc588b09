"""Scattering transform of images: fixed features from wavelets and moduli, by products in Fourier space.

Bruna and Mallat 2013, *Invariant scattering convolution networks*, with two scales, eight angles and depth two. Wavelets, padding and the
order of channels are those of Kymatio (Andreux et al. 2020), which Tramer and Boneh 2021 and MVU's figure 4 use.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ....arrays import FloatArray

ANGLES = 8
# Of a plane of an image: itself smoothed, the moduli of two scales, and those of the coarser scale of the finer one's.
CHANNELS = 1 + 2 * ANGLES + ANGLES**2
# Pixels between two places of a feature, and pixels by which an image is mirrored beyond each edge.
STRIDE, MARGIN = 4, 4
# Width of the finest wavelet, its frequency, and how much narrower it is along its waves.
WIDTH, FREQUENCY, SLANT = 0.8, 0.75 * math.pi, 4 / ANGLES
# Multiples of 2 pi, either way, at which the narrowest Gaussian's transform is not yet nothing.
ALIASES = 3
# Planes that are transformed at a time.
PLANES = 8


def scattered(planes: FloatArray) -> FloatArray:
    """Return features of planes, shape (n, height, width), with sides that are multiples of 4, at least 8.

    They are of shape (n, 81, height / 4, width / 4): the smoothed plane, then moduli of the fine and the coarse scale at eight angles each,
    then, for each angle of the fine scale, those of the coarse one on it.
    """
    found = np.empty((len(planes), CHANNELS, planes.shape[1] // STRIDE, planes.shape[2] // STRIDE))
    for start in range(0, len(planes), PLANES):
        found[start : start + PLANES] = _scattered(planes[start : start + PLANES])
    return found


def _scattered(planes: FloatArray) -> FloatArray:
    padded = np.pad(planes, ((0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN)), mode="reflect")
    sides = padded.shape[1], padded.shape[2]
    fine, coarse = (_wavelets(scale, *sides) for scale in (0, 1))
    spectra = fft.fft2(padded)[:, None]
    of_fine = np.abs(fft.ifft2(spectra * fine))
    of_coarse = np.abs(fft.ifft2(_every_second(spectra * coarse)))
    of_both = np.abs(fft.ifft2(_every_second(fft.fft2(of_fine)[:, :, None] * coarse)))
    moduli = (padded[:, None], of_fine, of_coarse, of_both.reshape(len(planes), ANGLES**2, *of_both.shape[3:]))
    return np.concatenate([_smoothed(one, sides) for one in moduli], axis=1)


def _smoothed(moduli: FloatArray, sides: tuple[int, int]) -> FloatArray:
    """Return every fourth pixel of smoothed planes, of which the moduli are every pixel or every second one; mirrored ones are left out."""
    step = sides[0] // moduli.shape[-2]
    return np.asarray(_weights(sides[0], step) @ moduli @ _weights(sides[1], step).T)


@cache
def _weights(side: int, step: int) -> FloatArray:
    """Return the matrix that smooths along a side by a Gaussian, as wide as the coarse wavelets: every 4th pixel from every `step`-th."""
    spectrum = _bell(2 * WIDTH * _frequencies(side)).sum(axis=1)
    # Every second pixel has the lower half of the frequencies.
    cycles = np.fft.fftfreq(side) * step
    kernel = np.fft.ifft(np.where((cycles >= -0.5) & (cycles < 0.5), spectrum, 0.0)).real * step
    return np.asarray(kernel[np.subtract.outer(np.arange(MARGIN, side - MARGIN, STRIDE), np.arange(0, side, step)) % side])


@cache
def _wavelets(scale: int, height: int, width: int) -> FloatArray:
    """Return the Morlet wavelets of a scale in Fourier space, where they are real, shape (angles, height, width)."""
    found = []
    for number in range(ANGLES):
        angle = (ANGLES // 2 - 1 - number) * math.pi / ANGLES
        waves, envelope = (_gabor(WIDTH * 2**scale, angle, one, height, width) for one in (FREQUENCY / 2**scale, 0.0))
        # The mean of a wavelet is zero.
        found.append(waves - envelope * (waves[0, 0] / envelope[0, 0]))
    return np.array(found)


def _gabor(deviation: float, angle: float, frequency: float, height: int, width: int) -> FloatArray:
    """Return the transform of waves under a Gaussian that is `SLANT` times as narrow along them."""
    down = _frequencies(height)[:, None, :, None] - frequency * math.cos(angle)
    right = _frequencies(width)[:, None] - frequency * math.sin(angle)
    along, across = math.cos(angle) * down + math.sin(angle) * right, math.cos(angle) * right - math.sin(angle) * down
    return np.asarray((_bell(deviation * along) * _bell(deviation / SLANT * across)).sum(axis=(2, 3)))


def _frequencies(side: int) -> FloatArray:
    """Return the frequencies of a side, and their aliases: samples of a function have the sum of its transform over them."""
    return np.asarray(2 * math.pi * np.add.outer(np.fft.fftfreq(side), np.arange(-ALIASES, ALIASES + 1)))


def _bell(values: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-(values**2) / 2))


def _every_second(spectra: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return the spectra of every second pixel along each side."""
    height, width = spectra.shape[-2] // 2, spectra.shape[-1] // 2
    rows = spectra[..., :height, :] + spectra[..., height:, :]
    return np.asarray((rows[..., :width] + rows[..., width:]) / 4)
