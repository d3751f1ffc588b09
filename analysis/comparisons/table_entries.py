"""Designed tables laid out entry by entry: what the pictures of probability tables, letters and variances are drawn from."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from ...design.tables.lookup_table import LookupTable
from ...design.tables.mvu import design_mvu
from ..provenance_columns import guarantee_columns, with_provenance


def design_entries(epsilons: Iterable[float], bits_in: int, bits_out: Iterable[int], *, seed: int) -> pd.DataFrame:
    """Design an MVU table for each epsilon and number of bits, and lay all of them out in one tidy table.

    Mean objective, local privacy (eq. 2 of Chaudhuri, Guo, Rabbat 2022), on the unit interval.

    Parameters
    ----------
    epsilons : iterable of float
        Privacy parameters, 0.001 to 20.
    bits_in : int
        Bits of the input grid, 1 to 9.
    bits_out : iterable of int
        Bits of the message, 1 to 9.
    seed : int
        Seed of the solver's random starts.

    Returns
    -------
    DataFrame
        The rows of `table_entries`, with provenance.

    Raises
    ------
    ValueError
        If an argument is out of range.
    ConvergenceError
        If a solver fails.
    """
    letters = tuple(bits_out)
    tables = [design_mvu(epsilon, bits_in, bits, seed=seed) for epsilon in epsilons for bits in letters]
    return with_provenance(pd.concat([table_entries(table) for table in tables], ignore_index=True), "MVU tables", seed)


def table_entries(table: LookupTable) -> pd.DataFrame:
    """Return one row per entry of a table, on the unit interval's scale.

    Parameters
    ----------
    table : LookupTable
        The table.

    Returns
    -------
    DataFrame
        ``mechanism``, the guarantee's columns, ``bits_in``, ``bits_out``, ``solver``; ``input_index``, ``input``, ``input_variance``,
        ``letter_index``, ``letter``, ``probability`` of the entry; and the certificate's ``objective``, ``realised_epsilon`` (errs
        upward), ``max_bias``, ``mean_variance``, ``worst_variance``, ``lower_bound`` (errs downward) and ``optimality_gap``, the same in
        every row of a table.
    """
    inputs, letters = table.weights.shape
    certificate = table.certificate
    input_index, letter_index = (index.ravel() for index in np.indices((inputs, letters)))
    variances = np.array([float(variance) for variance in table.moments.variances])
    alphabet = np.array([float(letter) for letter in table.alphabet])
    return pd.DataFrame(
        {
            "mechanism": table.mechanism,
            **guarantee_columns(table.guarantee),
            "bits_in": table.bits_in,
            "bits_out": table.bits_out,
            "solver": table.provenance.solver,
            "input_index": input_index,
            "input": input_index / (inputs - 1),
            "input_variance": variances[input_index],
            "letter_index": letter_index,
            "letter": alphabet[letter_index],
            "probability": table.probabilities.ravel(),
            "objective": certificate.objective,
            "realised_epsilon": certificate.realised_epsilon,
            "max_bias": certificate.max_bias,
            "mean_variance": certificate.mean_variance,
            "worst_variance": certificate.worst_variance,
            "lower_bound": certificate.lower_bound,
            "optimality_gap": certificate.optimality_gap,
        }
    )
