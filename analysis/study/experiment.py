"""The notice of every study that it is an experiment, not a private release."""


def experiment_notice(truth: str, mechanisms: int = 1) -> str:
    """Return a notice that a study must not be published as a private release.

    Parameters
    ----------
    truth : str
        Values that the study computes from the clients' values without privacy.
    mechanisms : int
        Number of mechanisms that run on the same values.

    Examples
    --------
    >>> experiment_notice("the true mean", 5)  # doctest: +ELLIPSIS
    'This is an experiment, not a private release: it shows the true mean, and its seed repeats the noise. 5 mechanisms run on ...
    """
    why = f"This is an experiment, not a private release: it shows {truth}, and its seed repeats the noise."
    several = f" {mechanisms} mechanisms run on the same values, and each guarantee covers one of them alone." if mechanisms > 1 else ""
    return f"{why}{several} Do not publish it where the values must stay private."
