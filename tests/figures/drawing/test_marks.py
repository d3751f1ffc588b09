"""Marks are distinct, complete, and survive colour blindness."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

from quietbits.analysis.catalogue.registry import BUILT_IN, REGISTRY
from quietbits.figures.drawing.marks import (
    ANSWER_ZERO,
    LOWER_BOUND,
    MECHANISM_MARKS,
    PAPER_VALUE,
    PROVEN_ACCOUNT,
    PUBLISHED_ACCOUNT,
    SERIES_MARKS,
    TRUST_MARKS,
    TRUSTED_SERVER,
    Mark,
    mechanism_mark,
    series_marks,
)

# Machado, Oliveira, Fernandes 2009, A physiologically-based model for simulation of color vision deficiency: full severity, on linear RGB.
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}
# CIE 1976 difference from which colours of marks are told apart easily; a just noticeable one is about 2.3.
DISTINCT = 10.0


def lab(colour: str, blindness: str) -> NDArray[np.float64]:
    encoded = np.array(to_rgb(colour))
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    seen = np.clip(BLINDNESS[blindness] @ linear, 0.0, 1.0)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    ratios = to_xyz @ seen / np.array([0.9505, 1.0, 1.089])
    roots = np.where(ratios > (6 / 29) ** 3, np.cbrt(ratios), ratios / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * roots[1] - 16, 500 * (roots[0] - roots[1]), 200 * (roots[1] - roots[2])])


def difference(first: str, second: str, blindness: str) -> float:
    return float(np.linalg.norm(lab(first, blindness) - lab(second, blindness)))


def test_every_mechanism_of_the_package_has_a_mark_of_its_own() -> None:
    own = set(BUILT_IN)
    assert set(MECHANISM_MARKS) == own
    pairs = [(mark.colour, mark.marker) for mark in MECHANISM_MARKS.values()]
    assert len(set(pairs)) == len(pairs)


def test_references_differ_from_every_mechanism_but_the_trusted_server() -> None:
    looks = {(mark.colour, mark.marker) for mark in MECHANISM_MARKS.values()}
    references = [(mark.colour, mark.marker) for mark in (LOWER_BOUND, ANSWER_ZERO, PAPER_VALUE)]
    assert len(set(references)) == 3
    assert not looks & set(references)
    assert mechanism_mark("central-gaussian") == TRUSTED_SERVER
    assert PROVEN_ACCOUNT.colour != PUBLISHED_ACCOUNT.colour
    assert PROVEN_ACCOUNT.line != PUBLISHED_ACCOUNT.line


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_equal_markers_have_colours_that_everybody_can_tell_apart(blindness: str) -> None:
    for first, second in combinations(MECHANISM_MARKS, 2):
        if MECHANISM_MARKS[first].marker == MECHANISM_MARKS[second].marker:
            colours = (MECHANISM_MARKS[first].colour, MECHANISM_MARKS[second].colour)
            assert difference(*colours, blindness) > DISTINCT, (first, second)
    for first_trust, second_trust in combinations(TRUST_MARKS.values(), 2):
        assert difference(first_trust.colour, second_trust.colour, blindness) > DISTINCT
    for darker, lighter in combinations(SERIES_MARKS, 2):
        assert difference(darker.colour, lighter.colour, blindness) > DISTINCT


def test_trust_models_have_distinct_marks_for_all_models_of_the_registry() -> None:
    assert set(TRUST_MARKS) == {entry.trust_model for entry in REGISTRY.values()}
    for kind in ("colour", "marker", "line"):
        assert len({getattr(mark, kind) for mark in TRUST_MARKS.values()}) == len(TRUST_MARKS)


def test_a_plug_in_has_a_spare_mark_that_depends_on_its_name_alone() -> None:
    looks = {(mark.colour, mark.marker) for mark in MECHANISM_MARKS.values()}
    spares = {name: mechanism_mark(name) for name in ("my-mechanism", "noisy-votes", "another")}
    assert all((mark.colour, mark.marker) not in looks for mark in spares.values())
    assert len(set(spares.values())) == 3
    assert spares["my-mechanism"] == mechanism_mark("my-mechanism")


@pytest.mark.parametrize("count", [1, 2, 5, 7])
def test_settings_have_ordered_marks_from_dark_to_light(count: int) -> None:
    marks = series_marks(count)
    assert len(set(marks)) == count
    lightness = [lab(mark.colour, "none")[0] for mark in marks]
    assert lightness == sorted(lightness)
    assert all(isinstance(mark, Mark) for mark in marks)


def test_more_settings_than_marks_are_refused() -> None:
    with pytest.raises(ValueError, match="count must be between 1 and 7, got 8"):
        series_marks(8)
