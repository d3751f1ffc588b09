"""Small tables for all figures of tables."""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import pytest

from quietbits.figures.mvu.table_entries import DesignPoint


@pytest.fixture(scope="session")
def entries(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> pd.DataFrame:
    """Return tables with 2 bits in and 1 to 4 bits out, for two epsilons."""
    return rows_of([DesignPoint(seed=0, epsilon=epsilon, bits_in=2, bits_out=bits) for epsilon in (1.0, 5.0) for bits in (1, 2, 3, 4)])
