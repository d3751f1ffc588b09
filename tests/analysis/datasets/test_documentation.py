"""The commands and figures in the documentation of the data give the stated results."""

import re
from pathlib import Path

import pytest

import quietbits
from quietbits.analysis.datasets.named_data import DATA_NAMES, digits_data

TEXT = (Path(quietbits.__file__).parent / "docs" / "reference" / "data.md").read_text(encoding="utf-8")


def test_its_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE)
    exec(block, {})  # noqa: S102 - our own
    assert capsys.readouterr().out.splitlines() == re.findall(r"# (.*)$", block, flags=re.MULTILINE)


def test_all_data_are_listed_with_their_sizes() -> None:
    assert tuple(re.findall(r"^\| `([a-z0-9-]+)` \|", TEXT, flags=re.MULTILINE)) == DATA_NAMES
    data = digits_data(1, seed=0)
    assert f"One in five of each class, {len(data.test)}, is the test" in TEXT
    assert f"Up to {len(data.client_examples(0))} clients are dealt" in TEXT
