import pytest

pytest.register_assert_rewrite("mechanism_cases", "mechanism_suite", "message_suite", "privacy_suite")
