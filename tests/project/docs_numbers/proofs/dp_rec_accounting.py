"""Numbers of docs/proofs/dp-rec-accounting.md."""

from quietbits.figures.dp_rec.references import PUBLISHED_SETTINGS
from quietbits.tests.project.docs_numbers.explanations.dp_rec_accounting import enough, epsilon


def conservative_ratios() -> list[float]:
    """Return the ratios of the conservative account to the published account.

    Messages have enough bits.
    """
    return [epsilon(setting, "conservative") / epsilon(setting, "published") for setting in map(enough, PUBLISHED_SETTINGS)]
