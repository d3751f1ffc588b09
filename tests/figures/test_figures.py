"""Figures: the numbers they are drawn from, what is drawn, and the files."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from xml.dom import minidom

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.text import Text

from quietbits.analysis.calibration.table_cache import TableCache
from quietbits.analysis.comparisons import dp_rec_references
from quietbits.analysis.comparisons import vector_mean as vector_mean_comparison
from quietbits.analysis.comparisons.dp_rec_bias import BiasStudySize
from quietbits.analysis.comparisons.dp_rec_mean import MeanComparisonSize
from quietbits.analysis.comparisons.secure_sum import ComparisonSize
from quietbits.analysis.comparisons.table_entries import design_entries
from quietbits.analysis.comparisons.vector_mean import BITS_EPSILON, COMPARISONS, Comparison, Series, compare_vector_means
from quietbits.analysis.simulation.scalar_mean import SimulationSize, scalar_mean_variances, simulate_variance
from quietbits.design.local.cldp import CLDPMechanism
from quietbits.design.tables.mvu import design_mvu
from quietbits.figures.beyond import secure_sum_bits
from quietbits.figures.cpsgd import binomial_slack
from quietbits.figures.cpsgd import fig1 as cpsgd_fig1
from quietbits.figures.dp_rec import bits as dprec_bits
from quietbits.figures.dp_rec import mean as dprec_mean
from quietbits.figures.drawing.directed_rounding import rounded_down, rounded_up
from quietbits.figures.drawing.probability_map import sent_letters
from quietbits.figures.drawing.save import save_figure
from quietbits.figures.drawing.style import print_style
from quietbits.figures.mvu import fig1 as mvu_fig1
from quietbits.figures.mvu import fig2 as mvu_fig2
from quietbits.figures.mvu import fig3 as mvu_fig3
from quietbits.figures.mvu import fig5 as mvu_fig5
from quietbits.figures.registry import FIGURES

DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
SMALL = SimulationSize(clients=10_000, batches=500, runs=2)
SMALL_SUMS = ComparisonSize(dimension=16, clients=(150, 300), bits=(10, 12), simulated_bits=(12,), repetitions=2)
SMALL_MEANS = MeanComparisonSize(
    clients=100,
    dimension=12,
    repetitions=2,
    sqkr_repetitions=2,
    bits=(1, 3),
    groups=6,
    grouped_bits=(3,),
    coded_bits=(),
    sqkr_bits=(1,),
    prior_errors=(0.1,),
    prior_bits=(1,),
    epsilons=(4.0,),
    sqkr_epsilons=(4.0,),
)
# The second epsilon is that of the comparison by bits: their tables are the same.
SMALL_RUN: dict[str, Any] = {"epsilons": (1.0, BITS_EPSILON), "clients": 300, "dimension": 4, "repetitions": 20}


def small(comparison: Comparison) -> Comparison:
    """Return a comparison whose tables have 3 bits in, and at most 2 out."""

    def smaller(series: tuple[Series, ...]) -> tuple[Series, ...]:
        tables = [
            replace(one, mechanism=replace(one.mechanism, bits_in=3, bits_out=min(one.mechanism.bits_out, 2)))
            if one.mechanism.bits_in
            else one
            for one in series
        ]
        return tuple(dict.fromkeys(tables))

    return replace(comparison, by_epsilon=smaller(comparison.by_epsilon), by_bits=smaller(comparison.by_bits))


SMALL_COMPARISONS = tuple(small(comparison) for comparison in COMPARISONS)


@pytest.fixture(scope="module")
def entries() -> pd.DataFrame:
    return design_entries([1.0, 5.0], 2, [1, 2, 3, 4], seed=0)


@pytest.fixture(scope="module")
def variances() -> pd.DataFrame:
    return scalar_mean_variances([1.0, 5.0], SMALL, seed=0)


def texts(figure: Figure) -> list[Text]:
    return [text for text in figure.findobj(Text) if text.get_text()]


def read_rounded(text: str) -> Fraction:
    number, _, exponent = text.partition("\N{MULTIPLICATION SIGN}10⁻")
    return Fraction(number) / 10 ** int(exponent.translate(DIGITS) or "0")


def one_per_table(entries: pd.DataFrame) -> pd.DataFrame:
    return entries.drop_duplicates(["epsilon", "bits_out"]).reset_index(drop=True)


# The numbers.


def test_entries_are_the_designed_tables(entries: pd.DataFrame) -> None:
    assert len(entries) == 2 * 4 * (2 + 4 + 8 + 16)
    table = design_mvu(5.0, 2, 2, seed=0)
    rows = entries[(entries["epsilon"] == 5.0) & (entries["bits_out"] == 2)]
    assert np.array_equal(rows["probability"].to_numpy().reshape(4, 4), table.probabilities)
    assert np.array_equal(rows["letter"].to_numpy()[:4], [float(letter) for letter in table.alphabet])
    mean = (rows["probability"] * rows["letter"]).groupby(rows["input_index"]).sum()
    assert mean.to_numpy() == pytest.approx([0.0, 1 / 3, 2 / 3, 1.0], abs=1e-12)
    spread = (rows["probability"] * (rows["letter"] - rows["input"]) ** 2).groupby(rows["input_index"]).sum()
    assert spread.to_numpy() == pytest.approx(rows["input_variance"].to_numpy()[::4], rel=1e-9)
    assert spread.mean() == pytest.approx(rows["mean_variance"].iloc[0], rel=1e-9)


def test_bounds_of_every_number_of_bits_agree_and_more_bits_do_not_hurt(entries: pd.DataFrame) -> None:
    for _, designs in one_per_table(entries).groupby("epsilon"):
        assert (designs["mean_variance"] >= designs["lower_bound"]).all()
        assert designs["lower_bound"].to_numpy() == pytest.approx(designs["lower_bound"].iloc[0], rel=1e-5)
        assert (designs["mean_variance"].diff().dropna() <= 1e-6 * designs["mean_variance"].iloc[0]).all()
        assert designs["optimality_gap"].iloc[-1] < 1e-6
    assert (entries["realised_epsilon"] <= entries["epsilon"]).all()


def test_every_row_says_how_it_came_about(entries: pd.DataFrame, variances: pd.DataFrame) -> None:
    for frame in (entries, variances):
        assert {"epsilon", "delta", "metric", "adjacency", "trust_model", "seed", "version_quietbits", "version_numpy"} <= set(frame)
        assert set(frame["adjacency"]) == {"replace-one"}
        assert set(frame["trust_model"]) == {"local"}


def test_one_bit_mvu_is_cldp_exactly(variances: pd.DataFrame) -> None:
    for epsilon in (1.0, 3.0, 5.0):
        table = design_mvu(epsilon, 3, 1, interval=(-1.0, 1.0))
        low, high = table.alphabet
        contrast = Fraction(int(table.weights[-1, 1] - table.weights[0, 1]), table.total)
        # CLDP with the contrast C that the weights have, on the unit interval's scale, in rational arithmetic: letters 1/C apart, variance
        # 1 / (2 C)**2 - (x - middle)**2; the middle is 1/2 as nearly as the letters' grid allows.
        assert high - low == 1 / contrast
        middle = (low + high) / 2
        assert abs(middle - Fraction(1, 2)) < 1e-15
        assert table.moments.variances == tuple((2 * contrast) ** -2 - (Fraction(i, 7) - middle) ** 2 for i in range(8))
        # What is kept back of epsilon for the rounding is all that tells the two contrasts apart.
        assert math.tanh(epsilon / 2) * (1 - 1e-8) <= contrast <= math.tanh(epsilon / 2)
    exact = variances.pivot_table(index=["epsilon", "value"], columns="mechanism", values="exact_variance")
    assert exact["MVU(1)"].to_numpy() == pytest.approx(exact["CLDP"].to_numpy(), rel=1e-7)


def test_simulated_variances_sit_on_the_exact_ones(variances: pd.DataFrame) -> None:
    points = variances.dropna(subset="simulated_variance")
    assert len(points) == 2 * 6 * 21
    # 252 nearly normal deviates: one beyond 5 standard errors has a chance of about 1e-4; the seed is fixed.
    deviates = (points["simulated_variance"] - points["exact_variance"]) / points["simulated_standard_error"]
    assert deviates.abs().max() < 5
    assert abs(deviates.mean()) < 5 / math.sqrt(len(points))
    ratio = points["simulated_variance"] / points["exact_variance"]
    assert ratio.between(0.8, 1.25).all()


def test_a_biased_protocol_is_seen() -> None:
    class Biased(CLDPMechanism):
        def decode(self, aggregate: np.ndarray, clients: int) -> float:
            return super().decode(aggregate, clients) + 1.0

    protocol = Biased(5.0, (-1.0, 1.0))
    simulated = simulate_variance(protocol, 0.5, SMALL, np.random.default_rng(0))
    assert simulated.variance - protocol.variance(0.5) > 10 * simulated.standard_error
    assert simulated.squared_error == pytest.approx(1.0, rel=0.1)


def test_no_mechanism_averages_below_the_certified_bound(variances: pd.DataFrame) -> None:
    grid = variances[np.isclose((variances["value"] + 1) * 3.5 % 1, 0) | np.isclose((variances["value"] + 1) * 3.5 % 1, 1)]
    averages = grid.groupby(["epsilon", "mechanism"]).agg(
        variance=("exact_variance", "mean"), bound=("lower_bound", "first"), inputs=("value", "size")
    )
    assert (averages["inputs"] == 8).all()
    assert (averages["variance"] >= averages["bound"]).all()
    mvu = averages.xs("MVU(3)", level="mechanism")
    assert (mvu["variance"] <= 1.02 * mvu["bound"]).all()


def test_a_simulation_does_not_depend_on_the_others(variances: pd.DataFrame) -> None:
    alone = scalar_mean_variances([5.0], SMALL, seed=0)
    together = variances[variances["epsilon"] == 5.0].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, together, check_exact=True)
    other_seed = scalar_mean_variances([5.0], SMALL, seed=1)
    assert not other_seed["simulated_variance"].equals(alone["simulated_variance"])


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ({"clients": 0}, "clients must be a whole number from 1"),
        ({"clients": 10, "batches": 3}, "batches must divide the number of clients, 10, got 3"),
        ({"clients": 10, "batches": 20}, "batches must be a whole number from 1 to 10, got 20"),
        ({"batches": 1, "runs": 1}, "batches must be a whole number from 2"),
        ({"runs": 0}, "runs must be a whole number from 1"),
    ],
)
def test_a_simulation_that_cannot_be_is_refused(size: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SimulationSize(**size)


@given(st.floats(1e-12, 1e6), st.integers(1, 10))
def test_rounding_errs_to_the_side_that_is_asked_for(value: float, digits: int) -> None:
    low, high = read_rounded(rounded_down(value, digits)), read_rounded(rounded_up(value, digits))
    assert low <= Fraction(value) <= high
    # Relative to the number, a step of the last digit is at most 10**(1 - digits).
    assert high - low <= Fraction(10) ** (1 - digits) * high


# The pictures.


@pytest.fixture(scope="module")
def table_cache(tmp_path_factory: pytest.TempPathFactory) -> TableCache:
    return TableCache(tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="module")
def vector_means(tmp_path_factory: pytest.TempPathFactory, table_cache: TableCache) -> pd.DataFrame:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_mean_comparison, "COMPARISONS", SMALL_COMPARISONS)
        return compare_vector_means(tmp_path_factory.mktemp("vectors"), **SMALL_RUN, cache=table_cache)


@pytest.fixture(scope="module")
def pictures(entries: pd.DataFrame, variances: pd.DataFrame, vector_means: pd.DataFrame) -> dict[str, Figure]:
    with print_style():
        return {
            "mvu-fig1": mvu_fig1.draw_tables(entries[entries["bits_out"] == 2]),
            "mvu-fig2": mvu_fig2.draw_variances(variances),
            "mvu-fig3": mvu_fig3.draw_comparison(vector_means),
            "mvu-fig5": mvu_fig5.draw_bits_out(entries, 5.0),
        }


# Pictures of secure sums and of DP-REC are looked at in test_secure_sum_figures.py and beside their studies.
@pytest.mark.parametrize("name", [name for name in FIGURES if name.startswith("mvu")])
def test_figures_fit_a_page_and_can_be_read(pictures: dict[str, Figure], name: str, check_page: Callable[..., None]) -> None:
    check_page(pictures[name], "replace-one adjacency, local trust model")


def test_fig1_shows_the_tables_and_their_certificates(pictures: dict[str, Figure]) -> None:
    figure = pictures["mvu-fig1"]
    for axes, epsilon in zip(figure.axes, (1.0, 5.0), strict=False):
        table = design_mvu(epsilon, 2, 2, seed=0)
        (image,) = axes.images
        assert image.origin == "lower"
        assert np.array_equal(image.get_array(), table.probabilities)
        shown = {text.get_text() for text in texts(figure)}
        certificate = table.certificate
        assert rounded_up(certificate.mean_variance, 5) in shown
        assert rounded_down(certificate.lower_bound, 5) in shown
        assert f"{rounded_up(100 * certificate.optimality_gap, 2)} %" in shown


def test_fig2_draws_lines_and_points_of_every_mechanism(pictures: dict[str, Figure], variances: pd.DataFrame) -> None:
    figure = pictures["mvu-fig2"]
    legend = {text.get_text() for text in figure.legends[0].get_texts()}
    assert legend == {*variances["mechanism"], "certified lower bound on the average"}
    for axes, (_, panel) in zip(figure.axes, variances.groupby("epsilon"), strict=True):
        drawn = [line.get_ydata() for line in axes.lines]
        for _, series in panel.groupby("mechanism"):
            for column in ("exact_variance", "simulated_variance"):
                assert any(np.array_equal(series[column], data, equal_nan=True) for data in drawn)
        assert any(np.all(np.asarray(data) == panel["lower_bound"].iloc[0]) for data in drawn)
        assert len(drawn) == 2 * 6 + 1


def test_fig3_draws_every_series_against_epsilon_and_against_bits(pictures: dict[str, Figure], vector_means: pd.DataFrame) -> None:
    figure = pictures["mvu-fig3"]
    for row, panel in enumerate(("epsilon", "bits")):
        for column, comparison in enumerate(("L1", "L2")):
            axes = figure.axes[2 * row + column]
            own = vector_means[(vector_means["comparison"] == comparison) & (vector_means["panel"] == panel)]
            drawn = [np.asarray(line.get_ydata()).tolist() for line in axes.lines]
            for _, series in own.groupby("series"):
                ordered = series if panel == "epsilon" else series.sort_values("bits_per_client")
                assert ordered["mean_squared_error"].tolist() in drawn
            heights = {height for data in drawn for height in data}
            assert heights >= {*own["central_error"], *own.loc[own["series"] == "MVU, L1 metric", "certified_error"]}


def test_the_vector_comparison_states_what_it_measured(vector_means: pd.DataFrame) -> None:
    frame = vector_means
    assert set(frame["adjacency"]) == {"replace-one"}
    assert set(frame["trust_model"]) == {"local"}
    assert (frame["realised_epsilon"] <= frame["epsilon"]).all()
    # A mean of 20 repetitions with 4 coordinates each, chi-square with 80 degrees of freedom: 5 sigma are 0.8.
    assert (np.abs(frame["mean_squared_error"] / frame["predicted_squared_error"] - 1) <= 0.8).all()
    tables = frame[frame["mechanism"] == "mvu"]
    assert (tables["certified_error"] <= tables["predicted_squared_error"] * 1.05).all()
    assert frame.loc[frame["mechanism"] != "mvu", "certified_error"].isna().all()
    assert (frame["central_error"] < frame["predicted_squared_error"]).all()


def test_fig5_draws_variances_over_the_bound_and_marks_where_more_bits_stop_helping(
    pictures: dict[str, Figure], entries: pd.DataFrame
) -> None:
    figure = pictures["mvu-fig5"]
    axes = figure.axes[-1]
    drawn = [np.asarray(line.get_ydata()) for line in axes.lines]
    bold = {text.get_text() for text in axes.texts if text.get_fontweight() == "bold"}
    for _, designs in one_per_table(entries).groupby("epsilon"):
        assert any(np.array_equal(designs["mean_variance"], data) for data in drawn)
        assert any(np.all(data == designs["lower_bound"].max()) for data in drawn if data.size)
        first = designs.loc[designs["optimality_gap"] < 0.01, "optimality_gap"].iloc[0]
        assert f"{rounded_up(100 * first, 2)} %" in bold
    assert len(axes.texts) == 8


def test_letters_never_sent_are_left_out_of_the_maps(pictures: dict[str, Figure], entries: pd.DataFrame) -> None:
    table = entries[(entries["epsilon"] == 5.0) & (entries["bits_out"] == 4)]
    sent = sent_letters(table)
    # A basic optimum has at most twice as many letters as inputs: of 16, at least 8 are spare.
    assert sent["letter_index"].nunique() <= 8
    assert sent["probability"].sum() == pytest.approx(4.0)
    assert pictures["mvu-fig5"].axes[3].images[0].get_array().shape == (4, sent["letter_index"].nunique())


# The files.


def test_files_are_the_same_each_time_and_the_table_reads_back(entries: pd.DataFrame, tmp_path: Path) -> None:
    frame = entries[entries["bits_out"] == 2].reset_index(drop=True)
    for folder in ("one", "two"):
        with print_style():
            save_figure(mvu_fig1.draw_tables(frame), frame, tmp_path / folder, "figure")
    names = ["figure.csv", "figure.pdf", "figure.png", "figure.svg"]
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == names
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    back = pd.read_csv(tmp_path / "one" / "figure.csv", dtype=str, keep_default_na=False)
    assert list(back) == list(frame)
    for column, values in frame.items():
        if column == "metric":
            assert set(back[column]) == {""}
        elif values.dtype.kind in "if":
            assert [float(text) for text in back[column]] == values.tolist()
        else:
            assert back[column].tolist() == values.tolist()


def test_the_svg_stands_alone(entries: pd.DataFrame, tmp_path: Path) -> None:
    with print_style():
        save_figure(mvu_fig5.draw_bits_out(entries, 1.0), entries, tmp_path, "figure")
    text = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    svg = minidom.parseString(text).documentElement  # noqa: S318 - our own file
    assert svg.tagName == "svg"
    assert svg.getElementsByTagName("dc:date") == []
    # Type is drawn as outlines, so that no font has to be there.
    assert svg.getElementsByTagName("text") == []
    pictures = [image.getAttribute("xlink:href") for image in svg.getElementsByTagName("image")]
    assert all(link.startswith("data:image/png;base64,") for link in pictures)


def test_registered_figures_write_their_files(tmp_path: Path, table_cache: TableCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mvu_fig1, "EPSILONS", (1.0,))
    monkeypatch.setattr(mvu_fig1, "BITS", 2)
    monkeypatch.setattr(mvu_fig2, "EPSILONS", (3.0,))
    monkeypatch.setattr(mvu_fig2, "SIZE", SimulationSize(clients=100, batches=10, runs=1))
    monkeypatch.setattr(mvu_fig5, "EPSILONS", (3.0,))
    monkeypatch.setattr(mvu_fig5, "BITS_IN", 2)
    monkeypatch.setattr(mvu_fig5, "BITS_OUT", (1, 2))
    monkeypatch.setattr(vector_mean_comparison, "COMPARISONS", SMALL_COMPARISONS)
    run = SMALL_RUN | {"repetitions": 2, "cache": table_cache}
    monkeypatch.setattr(mvu_fig3, "compare_vector_means", partial(compare_vector_means, **run))
    monkeypatch.setattr(cpsgd_fig1, "EPSILONS", (1.0,))
    monkeypatch.setattr(cpsgd_fig1, "EXACT_SCALES", (1.0, 0.1))
    monkeypatch.setattr(binomial_slack, "TRIALS", (10**4, 10**5))
    monkeypatch.setattr(secure_sum_bits, "SIZE", SMALL_SUMS)
    monkeypatch.setattr(dprec_mean, "SIZE", SMALL_MEANS)
    monkeypatch.setattr(
        dprec_bits, "SIZE", BiasStudySize(clip_ratios=(1.0,), bits=(0, 3, 6, 9), dimensions=(1,), measured_bits=(), seeds=20)
    )
    # Accounts of sampled Gaussian noise take long, and are tested where they are computed.
    monkeypatch.setattr(dp_rec_references, "gaussian_reference_epsilon", lambda noise_multiplier, *_: 3 / noise_multiplier)
    assert [name for name in FIGURES if not name.startswith(("mvu", "dprec"))] == ["cpsgd-fig1", "binomial-slack", "secure-sum-bits"]
    assert [name for name in FIGURES if name.startswith("mvu")] == ["mvu-fig1", "mvu-fig2", "mvu-fig3", "mvu-fig5"]
    assert [name for name in FIGURES if name.startswith("dprec")] == ["dprec-accounting", "dprec-mean", "dprec-communication", "dprec-bits"]
    for name, reproduce in FIGURES.items():
        reproduce(tmp_path / "new" / "folder", 7, lambda *_: None)
        written = {path.name for path in (tmp_path / "new" / "folder").iterdir() if path.is_file() and path.stem == name}
        assert written == {f"{name}.{kind}" for kind in ("svg", "pdf", "png", "csv")}
        assert set(pd.read_csv(tmp_path / "new" / "folder" / f"{name}.csv")["seed"]) == {7}
    # Four files each, and the folder of the sweep behind figure 3.
    assert len(list((tmp_path / "new" / "folder").iterdir())) == 45


def test_what_is_drawn_by_default() -> None:
    assert mvu_fig1.EPSILONS == (1.0, 3.0, 5.0, 10.0)
    assert (mvu_fig1.BITS, mvu_fig5.BITS_IN, list(mvu_fig5.BITS_OUT)) == (3, 5, [1, 2, 3, 4, 5, 6])
    assert mvu_fig2.EPSILONS == mvu_fig5.EPSILONS == (1.0, 3.0, 5.0)
    assert mvu_fig2.SIZE.clients == 100_000
    assert (secure_sum_bits.SIZE.clients, secure_sum_bits.SIZE.dimension) == ((100, 1000, 10_000), 1024)
    assert (cpsgd_fig1.DELTA, cpsgd_fig1.THEOREM_SCALES) == (1e-6, (1.0, 0.1, 0.01, 0.001))
