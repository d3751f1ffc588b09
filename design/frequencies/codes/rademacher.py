"""Compressed sensing of a histogram: random signs, decoded over the real numbers, which knows neither that counts are whole nor their sum.

Candès, Romberg, Tao 2006, and Donoho 2006: the vector of least L1 norm with the given measurements (basis pursuit).
"""

from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....arrays import FloatArray, IntegerArray
from ....errors import ConvergenceError, InfeasibleError
from ....solvers.numerics.highs_program import new_highs
from ...secure_sum.modular_arithmetic import centred_representatives
from .bernoulli import BernoulliCode
from .histogram import HistogramCode


@dataclass(frozen=True)
class RademacherCode(HistogramCode):
    """Entries 1 and -1, where `BernoulliCode` of the same fields has 1 and 0; modulus 2 n + 1, as sums are from -n to n.

    What is decoded is the vector of least L1 norm, rounded to whole numbers: fewer measurements are enough for fewer different items.
    """

    dimension: int
    clients: int
    measurements: int
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the fields."""
        self._bits()

    @property
    def modulus(self) -> int:
        """2 n + 1."""
        return 2 * self.clients + 1

    def columns(self, items: ArrayLike) -> NDArray[np.int8]:
        """Return columns of signs."""
        return (2 * self._bits().columns(items).astype(np.int8) - 1).astype(np.int8)

    def _decoded(self, residues: IntegerArray, clients: int, time_limit: float) -> IntegerArray:
        signs: FloatArray = 2.0 * self._bits().matrix().astype(np.float64) - 1
        sums = centred_representatives(residues, self.modulus)
        real = least_l1_norm(signs, sums.astype(np.float64), time_limit)
        counts = np.rint(real).astype(np.int64)
        if (counts < 0).any() or int(counts.sum()) != clients or not np.array_equal(signs @ counts, sums):
            raise InfeasibleError(
                f"the vector of least L1 norm is not a histogram of {clients} items: {self.measurements} measurements are too few for "
                "compressed sensing, or the sum is not one of that many clients"
            )
        return counts

    def _bits(self) -> BernoulliCode:
        return BernoulliCode(self.dimension, self.clients, self.measurements, self.seed)


def least_l1_norm(matrix: FloatArray, values: FloatArray, time_limit: float) -> FloatArray:
    """Return a vector x of least L1 norm with ``matrix @ x = values``, within HiGHS's tolerances; InfeasibleError if none meets them."""
    rows, columns = matrix.shape
    highs = new_highs()
    highs.setOptionValue("time_limit", time_limit)
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = rows, 2 * columns
    model.col_cost_ = np.ones(2 * columns)
    model.col_lower_, model.col_upper_ = np.zeros(2 * columns), np.full(2 * columns, highspy.kHighsInf)
    model.row_lower_ = model.row_upper_ = values
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.arange(0, 2 * rows * columns + 1, rows, dtype=np.int32)
    model.a_matrix_.index_ = np.tile(np.arange(rows, dtype=np.int32), 2 * columns)
    model.a_matrix_.value_ = np.concatenate([matrix.T.ravel(), -matrix.T.ravel()])
    highs.passModel(model)
    highs.run()
    status = highs.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        raise InfeasibleError("no vector has these measurements")
    if status != highspy.HighsModelStatus.kOptimal:
        raise ConvergenceError(
            f"basis pursuit ended with status {highs.modelStatusToString(status)!r}; the time limit was {time_limit:g} s"
        )
    solution = np.array(highs.getSolution().col_value)
    difference: FloatArray = solution[:columns] - solution[columns:]
    return difference
