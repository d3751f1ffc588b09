"""The conformance suite: tests that every mechanism passes, for pytest, which only this package needs.

``python -m quietbits.analysis.conformance NAME`` runs it on a mechanism of the registry, such as one of an installed plug-in.
"""

import pytest

# pytest then explains assertions that fail.
for module in ("mechanism_cases", "mechanism_suite", "message_suite", "privacy_suite"):
    pytest.register_assert_rewrite(f"{__name__}.{module}")
