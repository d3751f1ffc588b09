"""What all tests have in common: the suites that others import have their assertions explained, whoever imports them first."""

import pytest

pytest.register_assert_rewrite("mechanism_cases", "mechanism_suite", "message_suite", "privacy_suite")
