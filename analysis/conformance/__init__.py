"""The conformance suite, a set of pytest tests that every mechanism passes.

``python -m quietbits.analysis.conformance NAME`` runs it on a mechanism of the registry, such as the mechanism of an installed plug-in.
Only this package needs pytest.
"""

from ...extras import optional

with optional("pytest", "the conformance suite"):
    import pytest

# Registered modules get detailed assertion messages from pytest.
for module in ("mechanism_cases", "mechanism_suite", "message_suite", "privacy_suite"):
    pytest.register_assert_rewrite(f"{__name__}.{module}")
