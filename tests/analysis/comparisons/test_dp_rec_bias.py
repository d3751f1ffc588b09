"""What few bits cost DP-REC: exact bias and error against enumeration, quadrature and the coder; the figure."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from quietbits.analysis.comparisons.dp_rec_bias import BiasStudySize, bias_by_bits, measure_message
from quietbits.design.noise.random_words import seeded_words
from quietbits.design.relative_entropy.coding import decode_relative_entropy, encode_relative_entropy
from quietbits.figures.dp_rec import bits as dprec_bits
from quietbits.figures.dp_rec.bits import draw_bias, draw_dprec_bits
from quietbits.figures.drawing.style import print_style
from quietbits.solvers.divergences.dp_rec_privacy import lost_delta

SMALL = BiasStudySize(clip_ratios=(0.5, 1.5), bits=tuple(range(17)), dimensions=(1, 3), measured_bits=(1, 6), seeds=800)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return bias_by_bits(SMALL, seed=2)


@pytest.fixture(scope="module")
def picture(frame: pd.DataFrame) -> Figure:
    with print_style():
        return draw_bias(frame)


def test_no_bits_and_one_bit_by_hand(frame: pd.DataFrame) -> None:
    for (clip_ratio, dimension), own in frame.groupby(["clip_ratio", "dimension"]):
        none, one = own.iloc[0], own.iloc[1]
        # The only sample is sent, whatever the update.
        assert none["relative_bias"] == pytest.approx(1.0)
        assert none["squared_error"] == pytest.approx(dimension + clip_ratio**2)
        # Of two samples the mean is half their difference D times tanh(c D / 2), and D is N(0, 2). Squared norms: nothing is preferred.
        points, step = np.linspace(-20, 20, 20_001, retstep=True)
        density = np.exp(-(points**2) / 4) / math.sqrt(4 * math.pi)
        mean = float(points / 2 * np.tanh(clip_ratio * points / 2) @ density) * step
        assert one["relative_bias"] == pytest.approx(1 - mean / clip_ratio, abs=1e-6)
        assert one["squared_error"] == pytest.approx(dimension + clip_ratio**2 - 2 * clip_ratio * mean, abs=1e-6)


def test_the_bias_vanishes_as_one_over_the_number_of_samples(frame: pd.DataFrame) -> None:
    many = frame[frame["bits"] == 16]
    assert many["relative_bias"].to_numpy() == pytest.approx(many["leading_bias"].to_numpy(), rel=5e-3)
    assert (many["squared_error"] / many["dimension"]).to_numpy() == pytest.approx(1.0, abs=1e-3)
    assert many["relative_error"].to_numpy() == pytest.approx(many["floor"].to_numpy(), rel=1e-3)
    assert frame["fitted_slope"].between(-1.001, -0.95).all()
    assert frame["relative_bias"].between(0, 1 + 1e-9).all()
    # At the lemma's bits, coding costs the part of delta that it may.
    for _, row in many.iterrows():
        assert lost_delta(row["clip_ratio"], 1, math.ceil(row["lemma_bits"])) <= row["lost"]
        assert lost_delta(row["clip_ratio"], 1, math.ceil(row["lemma_bits"]) - 1) > row["lost"]


def test_measured_messages_are_as_computed(frame: pd.DataFrame) -> None:
    measured = frame[frame["seeds"] > 0]
    assert len(measured) == 8
    assert frame.loc[frame["seeds"] == 0, "measured_relative_bias"].isna().all()
    # 16 numbers, each within 5 standard errors, which are estimated from 800 seeds.
    for name in ("relative_bias", "squared_error"):
        gaps = (measured[f"measured_{name}"] - measured[name]) / measured[f"measured_{name}_error"]
        assert gaps.abs().max() < 5
    # And they tell: the bias of one bit would be seen.
    one = measured[measured["bits"] == 1]
    assert (one["measured_relative_bias"] > 5 * one["measured_relative_bias_error"]).all()


def test_indices_drawn_by_the_coder_have_the_averages_over_the_index() -> None:
    found = measure_message(1.2, dimension=2, bits=3, seeds=1500, rng=np.random.default_rng(1))
    update = np.array([1.2, 0.0])
    words = seeded_words(np.random.default_rng(2))
    decoded = np.stack([decode_relative_entropy(encode_relative_entropy(update, 3, seed, words), 2, seed) for seed in range(3000)])
    squares = np.sum((decoded - update) ** 2, axis=1)
    along = 1 - decoded[:, 0] / 1.2
    for value, draws, error in (
        (found.relative_bias, along, found.relative_bias_error),
        (found.squared_error, squares, found.squared_error_error),
    ):
        assert abs(draws.mean() - value) < 5 * math.hypot(draws.std() / math.sqrt(3000), error)


def test_too_few_small_biases_have_no_slope() -> None:
    few = bias_by_bits(BiasStudySize(clip_ratios=(1.0,), bits=(0, 1, 2), dimensions=(1,), measured_bits=()), seed=0)
    assert few["fitted_slope"].isna().all()
    assert (few["seeds"] == 0).all()


def test_faults() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"clip_ratio must be .*, got 4"):
        measure_message(4.0, dimension=2, bits=3, seeds=10, rng=rng)
    with pytest.raises(ValueError, match=r"seeds must be .*, got 1"):
        measure_message(1.0, dimension=2, bits=3, seeds=1, rng=rng)


def test_the_figure_draws_every_line_and_every_point(frame: pd.DataFrame, picture: Figure) -> None:
    left, *right = picture.axes
    assert len(right) == 2
    lines = [np.asarray(line.get_ydata()).tolist() for line in left.lines]
    for _, own in frame[frame["dimension"] == 1].groupby("clip_ratio"):
        assert own["relative_bias"].tolist() in lines
        assert any(line.get_xdata()[0] == own["lemma_bits"].iloc[0] and len(line.get_xdata()) == 1 for line in left.lines)
    for axes, (_, panel) in zip(right, frame.groupby("dimension"), strict=True):
        lines = [np.asarray(line.get_ydata()).tolist() for line in axes.lines]
        for clip_ratio, own in panel.groupby("clip_ratio"):
            assert own["relative_error"].tolist() in lines
            measured = own.loc[own["seeds"] > 0, "measured_squared_error"] / clip_ratio**2
            assert any(len(line) == len(measured) and line == pytest.approx(measured.tolist()) for line in lines)
            assert [own["floor"].iloc[0]] * 2 in lines


def test_the_figure_fits_a_page_and_says_what_the_guarantee_is(picture: Figure, check_page: Callable[..., None]) -> None:
    check_page(picture, "add-or-remove-one adjacency, central trust model")


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = BiasStudySize(clip_ratios=(1.0,), bits=(0, 3, 6, 9, 12, 15), dimensions=(1,), measured_bits=(3,), seeds=20)
    monkeypatch.setattr(dprec_bits, "SIZE", size)
    steps: list[tuple[int, int, str]] = []
    for folder in ("first", "second"):
        draw_dprec_bits(tmp_path / folder, 5, lambda *step: steps.append(step))
    assert steps == [(1, 1, "clip ratio 1")] * 2
    names = [f"dprec-bits.{kind}" for kind in ("csv", "pdf", "png", "svg")]
    assert sorted(path.name for path in (tmp_path / "first").iterdir()) == names
    for name in names:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    table = pd.read_csv(tmp_path / "first" / "dprec-bits.csv")
    assert set(table["seed"]) == {5}
    assert table["seeds"].tolist() == [0, 20, 0, 0, 0, 0]
