import pytest

pytest.register_assert_rewrite("mechanism_suite")
