"""Noise in floating-point numbers needs an explicit permission.

The low bits of such noise reveal inputs.
"""

from dataclasses import replace

import numpy as np
import pytest

from quietbits import secure_words
from quietbits.analysis.training.reference_mechanisms import CentralGaussianMechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.real_numbers import RealNumberMechanism
from quietbits.design.federated.adaptive_clipping import central_fraction
from quietbits.design.local.laplace import LaplaceMechanism
from quietbits.design.noise.random_words import SecureWords, seeded_words


def test_low_bits_of_laplace_noise_tell_inputs_apart() -> None:
    # Outputs close to zero are multiples of 2**-53, the spacing of noise near -1, for the input 1, and mostly not for the input 0. On real
    # numbers both inputs have the same multiples with probability 0.
    mechanism = LaplaceMechanism(1.0)
    finest = {}
    for value in (0.0, 1.0):
        drawn = mechanism.encode(np.full(400_000, value), np.random.default_rng(7))
        small = drawn[np.abs(drawn) < 0.25]
        finest[value] = float(np.mean(small * 2.0**53 % 1 == 0))
    assert finest[1.0] == 1.0
    # 84 % of the other messages reveal their input, as docs/explanations/federation.md says.
    assert round(1 - finest[0.0], 2) == 0.84


def test_words_for_experiments_are_taken_and_others_are_not() -> None:
    mechanism = LaplaceMechanism(1.0)
    for words in (np.random.default_rng(0), seeded_words(np.random.default_rng(0))):
        mechanism.encode([0.5], words)
    for words in (secure_words, SecureWords()):
        with pytest.raises(
            ValueError, match=r"words must be a numpy.random.Generator.* for LaplaceMechanism, got SecureWords: the low bits"
        ):
            mechanism.encode([0.5], words)
        LaplaceMechanism(1.0, allow_real_numbers=True).encode([0.5], words)
    with pytest.raises(ValueError, match=r"random_words must be quietbits.secure_words, for releases, or"):
        mechanism.encode([0.5], 0)  # type: ignore[arg-type]


def test_the_trusted_servers_references_of_trainings_are_no_releases_either() -> None:
    mechanism = CentralGaussianMechanism(NormBall(3, 2.0), 5, 1.0, 1e-5)
    assert isinstance(mechanism, RealNumberMechanism)
    with pytest.raises(ValueError, match="for CentralGaussianMechanism, got SecureWords"):
        mechanism.encode(np.zeros((5, 3)), secure_words)
    allowed = replace(mechanism, allow_real_numbers=True)
    assert allowed.encode(np.zeros((5, 3)), secure_words).shape == (5, 3)
    assert allowed.guarantee == replace(mechanism.guarantee, allow_real_numbers=True)
    with pytest.raises(ValueError, match="for central_fraction, got SecureWords"):
        central_fraction([0.5], 1.0, 10, 5.0, secure_words)
    assert np.isfinite(central_fraction([0.5], 1.0, 10, 5.0, secure_words, allow_real_numbers=True))
