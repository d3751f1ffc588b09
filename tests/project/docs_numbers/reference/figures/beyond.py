"""Numbers of docs/reference/figures/beyond.md."""

import pandas as pd


def bits_within(frame: pd.DataFrame, series: str, factor: float) -> int:
    """Return the fewest bits per coordinate with which a sum's error is within a factor of a trusted server's, in a picture's table."""
    close = frame["worst_mean_variance"] <= factor * frame["central_squared_error"]
    return int(frame.loc[(frame["series"] == series) & close, "bits"].min())
