"""Results have a line, a table and a picture."""

import pydoc
import re
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

import quietbits
from quietbits.shown import FIRST_COLUMNS, Shown, html_table, printable, results_first

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


def shown_by(html: str) -> str:
    """Return the text of HTML."""
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


@pytest.mark.parametrize("name", ["cldp", "gaussian", "privunit-g", "distributed-skellam", "cpsgd"])
def test_a_notebook_shows_a_mechanism_with_its_parameters_and_its_guarantee(name: str) -> None:
    mechanism = quietbits.build_mechanism(name, TASK)
    shown = mechanism._repr_html_()
    assert shown.startswith(f"<p>{type(mechanism).__name__}</p><table>")
    assert f"guarantee of one round {mechanism.guarantee}" in shown_by(shown)
    assert f"bits per client {mechanism.bits_per_client:.6g}" in shown_by(shown).replace(".0 ", " ")
    for field in (field for field in fields(mechanism) if field.repr):
        assert f">{field.name}</td>" in shown


def test_a_notebook_shows_the_registry_and_an_entry() -> None:
    registry = shown_by(quietbits.REGISTRY._repr_html_())
    assert registry.startswith(f"{len(quietbits.REGISTRY)} mechanisms name trust model clients hold adjacency what it does mvu local ")
    for name, entry in quietbits.REGISTRY.items():
        assert f"{name} {entry.trust_model} " in registry
    assert repr(quietbits.REGISTRY).startswith("<Registry: mvu, ")
    shown = quietbits.REGISTRY["cpsgd"]._repr_html_()
    for heading in quietbits.REGISTRY["cpsgd"].described():
        assert f">{heading}</td>" in shown


def test_text_is_escaped_in_a_notebook() -> None:
    shown = html_table("<b>", [("a & b", 0.1 + 0.2), ("long", "x" * 1000), ("words", "word " * 1000)], ["<i>"])
    assert shown.startswith('<p>&lt;b&gt;</p><table><thead><tr><th style="text-align: left">&lt;i&gt;</th>')
    assert ">a &amp; b</td>" in shown
    assert ">0.3</td>" in shown
    assert len(shown) < 1000


def test_results_come_first_and_other_columns_keep_their_order() -> None:
    columns = ["run", "label", "clients", "epsilon", "accuracy", "version_python", "bits_per_client", "round"]
    expected = ["label", "round", "accuracy", "epsilon", "bits_per_client", "run", "clients", "version_python"]
    assert results_first(columns) == expected
    assert len(set(FIRST_COLUMNS)) == len(FIRST_COLUMNS)


# The first ten columns, which pandas shows of a wide table, are the most important for readers.
RESULTS_OF = {"training": {"label", "round", "accuracy", "epsilon"}, "sweep": {"label", "metric", "value", "epsilon", "bits_per_client"}}
WIDE = {
    "training": """
clients = 10
clients_per_round = 2
rounds = 1
delta = 0.0
adjacency = "replace-one"
[[mechanism]]
name = "none"
""",
    "sweep": """
population = "sphere"
clients = 3
dimension = 2
norm = 2
epsilon = 1
delta = 1e-5
adjacency = "replace-one"
[[mechanism]]
name = "gaussian"
""",
}


@pytest.mark.parametrize("kind", WIDE)
def test_wide_tables_show_their_results(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "spec.toml"
    file.write_text(WIDE[kind])
    if kind == "training":
        path = quietbits.run_training(quietbits.load_training(file), tmp_path / "results")
        summary = quietbits.summarise_training
    else:
        path = quietbits.run_sweep(quietbits.load_sweep(file).tasks(), tmp_path / "results")
        summary = quietbits.summarise_sweep
    results = pd.read_parquet(path)
    assert len(results.columns) > 40
    assert RESULTS_OF[kind] <= set(results.columns[:10])
    assert {"label", "epsilon", "standard_error"} <= set(summary(results).columns[:10])


def test_help_is_a_page() -> None:
    assert len(pydoc.render_doc(quietbits, renderer=pydoc.plaintext).splitlines()) < 80


@pytest.mark.parametrize(
    ("text", "encoding", "shown"),
    [
        ("dose [/mg], 体重, 山田\u3000太郎, a\u200cb\u200dc", "utf-8", "dose [/mg], 体重, 山田\u3000太郎, a\u200cb\u200dc"),
        ("a\x1b[31mb\r\n\tc\x9b", "utf-8", r"a\x1b[31mb\r\n\tc\x9b"),
        ("\u202eabc\u2066\u200f", "utf-8", r"\u202eabc\u2066\u200f"),
        ("a\u2028b\ufeff", "utf-8", r"a\u2028b\ufeff"),
        # Python represents undecodable bytes of a file name in this way.
        ("\udcff", "utf-8", r"\udcff"),
        ("12 µs", "ascii", r"12 \xb5s"),
        ("12 µs, 年", "cp932", r"12 \xb5s, 年"),
    ],
)
def test_text_is_shown_as_it_is_but_for_what_controls_or_cannot_be_encoded(text: str, encoding: str, shown: str) -> None:
    assert printable(text, encoding) == shown
    assert printable(shown, encoding) == shown
