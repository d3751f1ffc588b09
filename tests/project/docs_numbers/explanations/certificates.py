"""Numbers of docs/explanations/certificates.md."""

from collections.abc import Iterator

import quietbits
from quietbits.shown import percent_up


def certificate_rows() -> Iterator[list[object]]:
    """Return the lines of the certificate of the page's table, without their typed explanations."""
    table = quietbits.design_mvu(epsilon=1.0, bits_in=3, bits_out=3)
    certificate = table.certificate
    assert certificate.lower_bound is not None
    for line, value in (
        ("guarantee", str(table.guarantee)),
        ("realised epsilon", f"{certificate.realised_epsilon:.9f}"),
        ("largest bias", f"{certificate.max_bias:g}"),
        ("mean variance", f"{certificate.mean_variance:.6f}"),
        ("worst variance", f"{certificate.worst_variance:.5f}"),
        ("solver", f"{table.provenance.solver}, seed {table.provenance.seed}"),
        ("objective", certificate.objective),
        ("lower bound, any size", f"{certificate.lower_bound:.6f}"),
        ("gaps", table.gaps),
    ):
        yield [line, value, ...]


def proven() -> Iterator[list[object]]:
    """Return both gaps of tables: of a closed form, of a search of a second, and of the stored proof."""
    for epsilon, bits_in, bits_out in ((1.0, 3, 1), (5.0, 3, 3), (3.0, 5, 3)):
        table = quietbits.design_mvu(epsilon=epsilon, bits_in=bits_in, bits_out=bits_out)
        if bits_in == 3:
            table = quietbits.certify_letters(table).table
        gaps = table.certificate.letters_gap, table.certificate.optimality_gap
        yield [f"{epsilon:g}", bits_in, bits_out, *(percent_up(gap) for gap in gaps if gap is not None)]
