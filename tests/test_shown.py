"""Results show themselves in one line, a table and a picture."""

import pydoc
from collections.abc import Callable
from functools import cache

import pytest

import quietbits
from quietbits.shown import Shown, printable

TASK = quietbits.Task(quietbits.NormBall(8, 2.0), clients=100, epsilon=2.0, delta=1e-5, adjacency="replace-one")


@cache
def table() -> quietbits.LookupTable:
    return quietbits.design_mvu(3.0, 2, 2)


# Tests build each result when they need it, because every test process imports this module, even for other tests.
RESULTS: dict[str, Callable[[], Shown]] = {
    "table": table,
    "certificate": lambda: table().certificate,
    "account": lambda: quietbits.account("table", table=table(), delta=1e-5),
    "privacy": lambda: quietbits.account("gaussian", noise_multiplier=2.0, delta=1e-5, rounds=3).privacy,
    "calibration": lambda: quietbits.calibrate("gaussian", epsilon=1.0, delta=1e-5),
    "plan": lambda: quietbits.plan_task(TASK, trust="central", timed=False),
}


@pytest.fixture(scope="module", params=RESULTS)
def result(request: pytest.FixtureRequest) -> Shown:
    return RESULTS[request.param]()


class TestShown:
    def test_a_result_is_one_line(self, result: Shown) -> None:
        assert "\n" not in repr(result)
        assert len(repr(result)) < 300
        assert repr(result).startswith(f"<{type(result).__name__}: ")

    def test_a_notebook_shows_the_line_and_the_table(self, result: Shown) -> None:
        shown = result._repr_html_()
        assert shown.startswith("<p>")
        for name in result.to_frame():
            assert f"<th>{name}</th>" in shown

    def test_a_picture_has_labels(self, result: Shown) -> None:
        from matplotlib import pyplot as plt

        axes = result.plot()
        assert axes.get_xlabel()
        assert axes.has_data()
        assert result.plot(axes) is axes
        plt.close(axes.figure)


def test_the_frame_of_a_table_has_its_numbers() -> None:
    frame = table().to_frame()
    assert frame.groupby("input")["weight"].sum().unique() == [table().total]
    # The table is unbiased: the mean decoded value equals the input.
    means = (frame["decoded"] * frame["probability"]).groupby(frame["input"]).sum()
    assert means.to_numpy() == pytest.approx(means.index.to_numpy(), abs=1e-12)


def test_help_is_a_page() -> None:
    assert len(pydoc.render_doc(quietbits, renderer=pydoc.plaintext).splitlines()) < 80


@pytest.mark.parametrize(
    ("text", "encoding", "shown"),
    [
        ("dose [/mg], 体重, 山田\u3000太郎, a\u200cb\u200dc", "utf-8", "dose [/mg], 体重, 山田\u3000太郎, a\u200cb\u200dc"),
        ("a\x1b[31mb\r\n\tc\x9b", "utf-8", r"a\x1b[31mb\r\n\tc\x9b"),
        ("\u202eabc\u2066\u200f", "utf-8", r"\u202eabc\u2066\u200f"),
        ("a\u2028b\ufeff", "utf-8", r"a\u2028b\ufeff"),
        # Python represents undecodable bytes of a file name so.
        ("\udcff", "utf-8", r"\udcff"),
        ("12 µs", "ascii", r"12 \xb5s"),
        ("12 µs, 年", "cp932", r"12 \xb5s, 年"),
    ],
)
def test_text_is_shown_as_it_is_but_for_what_controls_or_cannot_be_encoded(text: str, encoding: str, shown: str) -> None:
    assert printable(text, encoding) == shown
    assert printable(shown, encoding) == shown
