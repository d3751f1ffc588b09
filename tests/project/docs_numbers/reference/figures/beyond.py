"""Numbers of docs/reference/figures/beyond.md."""

import pandas as pd


def bits_within(frame: pd.DataFrame, series: str, factor: float) -> int:
    """Return the fewest bits per coordinate that bring a sum near a trusted server's error.

    The error is within `factor` of the trusted server's, by the table of a figure.
    """
    close = frame["worst_mean_variance"] <= factor * frame["central_squared_error"]
    return int(frame.loc[(frame["series"] == series) & close, "bits"].min())
