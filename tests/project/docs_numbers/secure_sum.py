"""Numbers of docs/secure-sum.md."""

from collections.abc import Iterator

from quietbits.design.transforms.conditional_rounding import ConditionalRounding


def norm_rows() -> Iterator[list[object]]:
    """Return bounds on rounded norms; those of systematic rounding and of drawn vectors are not computed here."""
    for ratio, digits in ((10, 3), (20, 3), (50, 3), (100, 3), (1000, 4)):
        bounds = [ConditionalRounding(2**16, 1 / ratio, 1.0, bound=bound).norm_bound for bound in ("published", "sharp")]
        yield [str(ratio), *(f"{bound:.{digits}f}" for bound in bounds), ..., ...]
