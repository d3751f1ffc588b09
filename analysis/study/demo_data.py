"""A real population that ships inside a dependency: the body mass index of 442 patients."""

import numpy as np

from .column_data import DataColumn


def body_mass_index() -> DataColumn:
    """Return the body mass index of the patients in scikit-learn's diabetes data (Efron, Hastie, Johnstone, Tibshirani 2004).

    Each patient is a client who would rather keep the value private; the clinic wants the mean. The interval, 15 to 45 kg/m2, is common
    medical knowledge, from severely underweight to severely obese, and was chosen without the data.

    Examples
    --------
    >>> column = body_mass_index()
    >>> len(column.values), round(float(column.values.mean()), 2), column.clipped_count
    (442, 26.38, 0)
    """
    # scikit-learn takes a second to import, and only this needs it.
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    values = np.asarray(bunch.data[:, bunch.feature_names.index("bmi")], dtype=float)
    return DataColumn("body mass index (kg/m²)", "scikit-learn's diabetes data: 442 patients", values, (15.0, 45.0))
