"""Numbers of docs/proofs/dp-rec-accounting.md."""

from quietbits.figures.dp_rec.references import PUBLISHED_SETTINGS
from quietbits.tests.project.docs_numbers.explanations.dp_rec_accounting import enough, epsilon


def conservative_ratios() -> list[float]:
    """Return by how much the conservative account is larger than the published one, with enough bits."""
    return [epsilon(setting, "conservative") / epsilon(setting, "published") for setting in map(enough, PUBLISHED_SETTINGS)]
