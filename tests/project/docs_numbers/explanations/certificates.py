"""Numbers of docs/explanations/certificates.md."""

from collections.abc import Iterator

import quietbits


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
        ("lower bound", f"{certificate.lower_bound:.6f}"),
        ("optimality gap", f"{certificate.optimality_gap:.4f}"),
    ):
        yield [line, value, ...]
