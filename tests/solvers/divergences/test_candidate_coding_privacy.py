"""Tests of minimal random coding over all arrangements of the candidates' densities."""

import itertools
import math

import pytest

from quietbits.solvers.divergences.candidate_coding_privacy import minimal_random_coding_epsilon


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 2.0])
@pytest.mark.parametrize("candidates", [1, 2, 3, 5])
def test_no_two_inputs_are_further_apart_and_some_are_as_far(epsilon: float, candidates: int) -> None:
    densities = list(itertools.product((1.0, math.exp(epsilon)), repeat=candidates))
    ratios = [own[0] / sum(own) / (other[0] / sum(other)) for own in densities for other in densities]
    assert minimal_random_coding_epsilon(epsilon, candidates) == pytest.approx(math.log(max(ratios)), rel=1e-8, abs=1e-15)
    assert minimal_random_coding_epsilon(epsilon, 2**62) <= 2 * epsilon
