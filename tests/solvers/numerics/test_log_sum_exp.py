import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from quietbits.solvers.numerics.log_sum_exp import log_sum_exp

LOGARITHMS = arrays(
    float, st.tuples(st.integers(1, 5), st.integers(1, 40)), elements=st.floats(-1e3, 1e3) | st.sampled_from((-np.inf, np.inf))
)


@settings(max_examples=50)
@given(LOGARITHMS, st.sampled_from((None, 0, 1)))
def test_it_is_what_scipy_finds(logarithms: np.ndarray, axis: int | None) -> None:
    result = log_sum_exp(logarithms, axis)
    assert result == pytest.approx(np.asarray(scipy.special.logsumexp(logarithms, axis=axis)), rel=1e-14, abs=1e-14)


def test_terms_may_have_weights_of_both_signs() -> None:
    logarithms, weights = np.array([700.0, 701.0, -np.inf]), np.array([-1.0, 2.0, 5.0])
    assert float(log_sum_exp(logarithms, weights=weights)) == pytest.approx(
        float(scipy.special.logsumexp(logarithms, b=weights)), rel=1e-15
    )
    assert float(log_sum_exp(np.array([-np.inf, -np.inf]))) == -np.inf
