"""Tests of figures by name: files and pictures, remains of a killed run, and refusals."""

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

import quietbits
from quietbits.analysis.sweeps.calls import SOURCE
from quietbits.analysis.sweeps.run import IncompleteSweepError
from quietbits.analysis.training.task import TrainedMechanism
from quietbits.errors import InfeasibleError
from quietbits.figures import registry
from quietbits.figures.agreement.claims import NO_COLUMN
from quietbits.figures.beyond.secure_sum_bits import sum_points
from quietbits.figures.cpsgd.binomial_slack import SlackPoint
from quietbits.figures.cpsgd.fig1 import NoisePoint
from quietbits.figures.dp_rec import references as dp_rec_references
from quietbits.figures.dp_rec.mean import mean_points
from quietbits.figures.drawing import save
from quietbits.figures.drawing.style import TITLE_CHARACTERS, print_style, solve_layout
from quietbits.figures.drawing.ticks import LEAST_LABELS, LogarithmicTicks
from quietbits.figures.frequencies.regimes import winners
from quietbits.figures.listing import LISTING
from quietbits.figures.markdown import MOST_BYTES
from quietbits.figures.mvu import fig2 as scalar_mean
from quietbits.figures.mvu import table_entries
from quietbits.figures.mvu.fig3 import BITS_EPSILON, COMPARISONS, vector_mean_tasks, with_small_tables
from quietbits.figures.registry import FIGURES, reproduce

# One format of the picture suffices: the other formats have the same drawing.
KINDS = ("csv", "md", "svg")
MEANS: dict[str, Any] = {
    "clients": 100,
    "dimension": 12,
    "repetitions": 2,
    "sqkr_repetitions": 2,
    "bits": (1, 3),
    "grouped_bits": (3,),
    "coded_bits": (),
    "sqkr_bits": (1,),
    "clip_ratios": (0.7,),
    "epsilons": (4.0,),
    "sqkr_epsilons": (4.0,),
    "mmrc_epsilons": (4.0,),
}
VECTORS: dict[str, Any] = {
    "comparisons": tuple(with_small_tables(comparison, bits_in=2, most_bits_out=1) for comparison in COMPARISONS),
    # The epsilon is that of the comparison by bits, so that both share their tables.
    "epsilons": (BITS_EPSILON,),
    "clients": 30,
    "dimension": 4,
    "repetitions": 2,
}


TRAININGS = (
    *("mvu-fig4", "mvu-fig6", "cpsgd-fig2"),
    *("dprec-table1", "dprec-table3", "dprec-fig1", "dprec-fig2", "dprec-fig3", "dprec-local-epsilon"),
    *("price-training", "price-training-heat-map", "price-training-cohort", "price-training-model", "price-training-threshold"),
)
PRICES = tuple(name for name in FIGURES if name.startswith("price-") and name not in TRAININGS)
FREQUENCIES = tuple(name for name in FIGURES if name.startswith("freq-") and name != "freq-codes")


def small_prices(name: str, seed: int) -> Sequence[Any]:
    """Return tasks of a figure of linear compression on a few short vectors."""
    tasks = FIGURES[name].tasks(seed, True)
    match name:
        case "price-rate":
            return [replace(task, dimension=650, clients=20) for task in tasks if task.noise_multiplier in (0.1, 0.7) and task.rate != 2.0]
        case "price-layers":
            return [replace(task, hidden=(), clients=20) for task in tasks if task.repetition < 2 and task.rate in (2.0, 10.0)]
        case "price-rounds":
            return [replace(task, dimension=64, clients=5, rounds=10) for task in tasks if task.rate in (1.0, 4.0)]
        case "price-needed-bits":
            chosen = ("bounds", "sqkr", "distributed-discrete-gaussian", "central-sketch")
            return [replace(task, dimension=16) for task in tasks if task.mechanism in chosen and task.clients <= 100]
        case "price-sparse":
            return [replace(task, dimension=256, measurements=64) for task in tasks if task.sparsity <= 4]
        case "price-dimension":
            return [replace(task, dimension=task.dimension // 16, clients=20) for task in tasks]
        case "price-cohort":
            # Gradients belong to the largest number of clients.
            return [
                replace(task, dimension=650, clients=task.clients // 5)
                for task in tasks
                if task.clients != 100 and task.rate in (1.0, 11.5)
            ]
    return [replace(task, dimension=650, clients=20) for task in tasks if task.rate in (1.0, 4.0, 10.0) and task.rows in (5, 15)]


def small_frequencies(name: str, seed: int) -> Sequence[Any]:
    """Return tasks of a figure of frequencies on a few items."""
    tasks = FIGURES[name].tasks(seed, True)
    match name:
        case "freq-limits":
            return [replace(task, categories=20, clients=20) for task in tasks if task.clients == 100]
        case "freq-regimes":
            tasks = [replace(task, categories=task.categories // 20, clients=20) for task in tasks if task.clients == 1000]
            return [replace(task, budgets=(min(task.budgets), max(task.budgets))) for task in tasks]
        case "freq-fig3":
            # The tasks are those of figure 2, with other items.
            tasks = [task for task in tasks if task.clients == 1000]
    return [replace(task, categories=50, clients=task.clients // 100) for task in tasks if task.epsilon == 10.0 and task.clients <= 2000]


def small_trainings(name: str, seed: int) -> Sequence[Any]:
    """Return tasks of a figure of trainings with two rounds of a few clients."""
    tasks = FIGURES[name].tasks(seed, True)
    match name:
        case "mvu-fig4" | "mvu-fig6":
            given = {"noise_multiplier": (2.5, 5), "table_epsilon": (0.5,)}
            tasks = [task for task in tasks if all(value in given[key] for key, value in task.mechanism.options if key in given)]
            # Each kind of training keeps one step.
            tasks = list({(task.mechanism, task.training.sampling): task for task in tasks if task.seed == seed}.values())
            tasks = [replace(task, mechanism=with_fewer_inputs(task.mechanism)) for task in tasks]
            changed = {"clients": 100, "clients_per_round": 20, "model": "softmax"}
        case "cpsgd-fig2":
            tasks = [task for task in tasks if dict(task.mechanism.options).get("bits", 18) == 18 and task.training.epsilon in (None, 4.0)]
            changed = {"clients": 100, "clients_per_round": 50}
        case name if name.startswith("dprec-"):
            changed = {"clients": 100, "clients_per_round": 10}
            tasks = [
                task for task in tasks if task.seed == seed and (task.training.epsilon or task.training.round_epsilon or 6) in (3, 6, 16)
            ]
            tasks = [task for task in tasks if dict(task.mechanism.options).get("group_bits", 7) in (4, 7)]
            # Accounts of sampled sums take long; DP-REC's accounts need secret draws.
            tasks = [replace(task, training=replace(task.training, secret_sampling="dp-rec" in task.mechanism.name)) for task in tasks]
        case "price-training-model":
            changed = {"clients": 200, "clients_per_round": 20}
            tasks = [task for task in tasks if task.seed == seed and task.training.model == "softmax"]
        case _:
            changed = {"clients": 200, "model": "softmax"}
            cohort = 100 if name == "price-training-heat-map" else 50
            kept = [task for task in tasks if task.seed == seed and task.training.clients_per_round == cohort]
            kept = [item for item in kept if dict(item.mechanism.options).get("bits", 16) in (8, 16)]
            tasks = [replace(item, mechanism=shorter(item.mechanism)) for item in kept]
    return [replace(task, training=replace(task.training, rounds=2, evaluate_every=2, **changed)) for task in tasks]


def shorter(mechanism: TrainedMechanism) -> TrainedMechanism:
    """Return a mechanism with sketches for a model of 650 parameters."""
    options = {name: 15 * max(1, int(value) // 60) if name == "sketch_dimension" else value for name, value in mechanism.options}
    return replace(mechanism, options=tuple(options.items()))


def with_fewer_inputs(mechanism: TrainedMechanism) -> TrainedMechanism:
    """Return a mechanism whose tables, if any, are quick to design."""
    return replace(mechanism, options=tuple((name, 4 if name == "bits_in" else value) for name, value in mechanism.options))


def smaller(name: str, seed: int) -> Sequence[Any]:
    """Return tasks of a figure that take a second or two."""
    tasks = FIGURES[name].tasks(seed, True)
    chosen = {
        "mvu-fig1": lambda: [replace(task, bits_in=2, bits_out=2) for task in tasks[:1]],
        "mvu-fig2": lambda: [replace(task, clients=100, batches=10, runs=1) for task in tasks if task.epsilon == 3.0],
        "mvu-fig3": lambda: vector_mean_tasks(seed, **VECTORS),
        "mvu-fig5": lambda: [replace(task, bits_in=2) for task in tasks if task.bits_out <= (2 if task.epsilon == 3.0 else 1)],
        "cpsgd-fig1": lambda: [task for task in tasks if task.scale not in (0.01, 0.001) and task.epsilon in (0.2, 1.0)],
        "binomial-slack": lambda: [task for task in tasks if task.trials in (10**4, 10**5)],
        "letters-gap": lambda: [replace(task, bits_in=2) for task in tasks if task.epsilon == 3.0],
        "secure-sum-bits": lambda: sum_points(seed, dimension=16, clients=(150,), bits=(12,), simulated_bits=(12,), repetitions=2),
        "sampled-coordinates": lambda: [replace(task, clients=100, dimension=512) for task in tasks if task.share == 1 / 8],
        "mechanism-map": lambda: [replace(task, clients=5, size=4) for task in tasks if task.epsilon != 0.5 and task.data == "items"],
        "error-parts": lambda: [task for task in tasks if task.case == "local vectors"],
        "plan-pareto": lambda: [replace(task, clients=5, dimension=4) for task in tasks],
        "dprec-accounting": lambda: tasks,
        "dprec-mean": lambda: mean_points(seed, **MEANS),
        "dprec-communication": lambda: [task for task in tasks if task.federation.dataset in ("MNIST", "Shakespeare")],
        "dprec-bits": lambda: [replace(task, seeds=min(task.seeds, 20)) for task in tasks if task.dimension == 1],
        "freq-codes": lambda: [replace(task, clients=5, dimension=40) for task in tasks if task.repetition == 0 and task.measurements > 30],
        **{name: lambda name=name: small_prices(name, seed) for name in PRICES},
        **{name: lambda name=name: small_trainings(name, seed) for name in TRAININGS},
        **{name: lambda name=name: small_frequencies(name, seed) for name in FREQUENCIES},
    }
    return chosen[name]()


# Expected captions; those of private trainings state an adjacency.
LOCAL = "replace-one adjacency, local trust model"
SUMS = "replace-one adjacency, secure-sum trust model"
CENTRAL = "add-or-remove-one adjacency, central trust model"
SKETCHED = "add-or-remove-one adjacency, secure-sum trust model"
GUARANTEES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("mvu-fig1", "mvu-fig2", "mvu-fig3", "mvu-fig5", "letters-gap"), (LOCAL,)),
    **dict.fromkeys(("cpsgd-fig1", "binomial-slack", "secure-sum-bits"), (SUMS,)),
    **dict.fromkeys(("dprec-accounting", "dprec-communication", "dprec-bits", "sampled-coordinates"), (CENTRAL,)),
    **dict.fromkeys(("price-rate", "price-bits", "price-dimension", "price-rounds", "price-rows"), (SKETCHED,)),
    **dict.fromkeys(FREQUENCIES, ("secure-sum trust model", "local trust model", "replace-one adjacency")),
    "freq-limits": ("local trust model", "replace-one adjacency"),
    **dict.fromkeys(("mechanism-map", "plan-pareto"), ("replace-one adjacency",)),
    "dprec-mean": (CENTRAL, LOCAL),
    "price-cohort": (SKETCHED, "central trust model", "errors over that without a sketch"),
    "price-needed-bits": ("replace-one adjacency",),
    **dict.fromkeys(("price-layers", "price-sparse", "error-parts", "dprec-table3"), ()),
    "freq-codes": ("5 clients with one item each of 40", "Nothing here is private beyond the secure sum"),
}
# Columns in which every number is the height of a point.
HEIGHTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("price-layers", "price-rate", "price-cohort", "price-rounds", "price-rows"), ("squared_error",)),
    **dict.fromkeys(("freq-fig2", "freq-fig3", "freq-fig4", "freq-fig5"), ("largest_error", "error")),
    "freq-limits": ("bits_per_client",),
}


# Figures whose small tables have no number for some finding, since no private estimate of a few clients is useful.
WITHOUT_NUMBERS = ("freq-limits",)
POWERS = str.maketrans("\N{MULTIPLICATION SIGN}⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "x-0123456789")
# Words with which a title would claim a result: numbers, comparisons, quantifiers, and verbs of findings.
CLAIMS = re.compile(
    r"\b(one|two|three|four|five|six|seven|eight|nine|ten|dozens?|hundreds?|hundredth|thousands?|half|halves?|thirds?|quarters?|fifth|tenth"
    r"|twice|double|times|factors?|every|all|any|always|never|none|nothing|whatever|hardly|nearly|almost|mostly|not|no"
    r"|more|less|fewer|larger|smaller|higher|lower|closer|better|worse|greater|good|well|than|equals|until|where|while|because"
    r"|is|are|was|were|has|have|had|does|do|can|cannot|may|must"
    r"|beats?|wins?|loses?|saves?|costs?|gains?|reach|reaches|suffices?|decides?|matters?|helps?|stops?|hides?|overtakes?|overstates?"
    r"|grows?|rises?|drowns?|remains?|recovers?|adds up|exceeds?|dominates?|matches|outperforms?|improves?)\b",
    re.IGNORECASE,
)


@contextmanager
def made_smaller() -> Iterator[pytest.MonkeyPatch]:
    figures = {name: replace(entry, tasks=lambda seed, _, name=name: smaller(name, seed)) for name, entry in FIGURES.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "FIGURES", MappingProxyType(figures))
        # Near-optimal tables, which are faster to design, suffice for this test.
        for module in (scalar_mean, table_entries):
            patch.setattr(module, "design_mvu", partial(module.design_mvu, starts=1))
        # Accounts of sampled Gaussian noise take long, and have separate tests.
        patch.setattr(dp_rec_references, "gaussian_reference_epsilon", lambda noise_multiplier, *_: 3 / noise_multiplier)
        yield patch


@pytest.fixture
def small_figures() -> Iterator[None]:
    with made_smaller():
        yield


@pytest.fixture
def one_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write one format of pictures; other tests cover all formats and `quietbits reproduce`."""
    monkeypatch.setattr(save, "METADATA", {"svg": save.METADATA["svg"]})


def test_all_figures_are_there() -> None:
    assert list(FIGURES) == [
        *("mvu-fig1", "mvu-fig2", "mvu-fig3", "mvu-fig5", "cpsgd-fig1", "binomial-slack", "letters-gap"),
        *("secure-sum-bits", "sampled-coordinates", "mechanism-map", "error-parts", "plan-pareto"),
        *("dprec-accounting", "dprec-mean", "dprec-communication", "dprec-bits"),
        *("price-rate", "price-bits", "price-cohort", "price-dimension", "price-rounds", "price-layers", "price-rows"),
        *("price-needed-bits", "price-sparse"),
        *("freq-fig2", "freq-fig3", "freq-fig4", "freq-fig5", "freq-limits", "freq-regimes", "freq-codes"),
        *TRAININGS,
    ]
    assert set(GUARANTEES) == set(FIGURES) - set(TRAININGS) | {"dprec-table3"}
    for name, entry in FIGURES.items():
        assert entry.name == name
        assert len(textwrap.wrap(entry.title, TITLE_CHARACTERS)) == 1 or name in TRAININGS
        assert entry.paper
        assert 0 < LISTING[name].quick_seconds <= LISTING[name].seconds


@pytest.mark.parametrize("name", FIGURES)
def test_quick_figures_are_smaller_or_quick_anyway(name: str) -> None:
    full, quick = FIGURES[name].tasks(0, False), FIGURES[name].tasks(0, True)
    assert len(quick) <= len(full)
    if name not in ("mvu-fig1", "binomial-slack", "dprec-communication"):
        assert {task.name for task in quick} != {task.name for task in full}


@pytest.mark.parametrize("name", FIGURES)
def test_workers_compare_the_source_of_tasks(name: str) -> None:
    root = Path(quietbits.__file__).parent
    hashed = {path for pattern in SOURCE for path in root.glob(pattern)}
    kinds = {kind for task in FIGURES[name].tasks(0, True) for kind in type(task).__mro__ if kind.__module__.startswith("quietbits")}
    assert kinds
    assert {Path(inspect.getfile(kind)) for kind in kinds} <= hashed


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@dataclass
class Reproduced:
    """A reproduced figure: name, files, table, drawing, and picture without its title."""

    name: str
    files: list[Path]
    table: pd.DataFrame
    picture: Figure


# Each figure is a parameter of the fixture, so that parallel test processes share the figures.
@pytest.fixture(scope="module", params=FIGURES)
def reproduced(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tables: Path) -> Reproduced:
    drawn: list[tuple[pd.DataFrame, Figure]] = []

    def save_and_keep(figure: Figure, frame: pd.DataFrame, *others: Any) -> list[Path]:
        files = save.save_figure(figure, frame, *others)
        figure.texts[-1].remove()
        drawn.append((frame, figure))
        return files

    with made_smaller() as patch:
        patch.setattr(save, "METADATA", {"svg": save.METADATA["svg"]})
        patch.setattr(registry, "save_figure", save_and_keep)
        files = reproduce([request.param], tmp_path_factory.mktemp("figure") / "new" / "folder", seed=7, cache=tables)
    ((table, picture),) = drawn
    return Reproduced(request.param, files, table, picture)


def test_every_figure_writes_its_files(reproduced: Reproduced) -> None:
    name, files = reproduced.name, reproduced.files
    output = files[0].parent
    assert sorted(path.name for path in files) == sorted([*(f"{name}.{kind}" for kind in KINDS), "index.html"])
    assert sorted(path.name for path in output.iterdir()) == sorted([*(path.name for path in files), "results"])
    entry = FIGURES[name]
    table = pd.read_csv(output / f"{name}.csv", engine="python")
    assert set(table["seed"]) == {7}
    assert set(table["experiment"]) == {entry.experiment}
    assert table["version_numpy"].notna().all()
    assert (output / f"{name}.md").read_text(encoding="utf-8").startswith(f"# {entry.heading(table)}\n")
    assert (output / "results" / name / "results.parquet").is_file()
    # Claims name columns of the figure's own table.
    assert NO_COLUMN.lower() not in (output / "index.html").read_text(encoding="utf-8").lower()


def test_every_figure_fits_a_page_and_can_be_read(reproduced: Reproduced, check_page: Callable[..., None]) -> None:
    # The number of ticks depends on the style.
    with print_style():
        check_page(reproduced.picture, *GUARANTEES.get(reproduced.name, ("adjacency",)))


def test_every_logarithmic_axis_has_labels(reproduced: Reproduced) -> None:
    # The axes of colour bars count as axes of the picture.
    solve_layout(reproduced.picture)
    for axes in reproduced.picture.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axes.axison and axis.get_visible() and axis.get_scale() == "log":
                low, high = sorted(axis.get_view_interval())
                places = [place for place in axis.get_majorticklocs() if low <= place <= high]
                labels = axis.get_major_formatter().format_ticks(places)
                locator = axis.get_major_locator()
                least = LEAST_LABELS if isinstance(locator, LogarithmicTicks) else min(2, len(locator()))
                assert len(set(labels) - {""}) >= least, (axis, labels)


def test_text_is_dark_on_white(reproduced: Reproduced) -> None:
    for axes in [None, *reproduced.picture.axes]:
        # Text on the cells of a map has the colour that its cell needs.
        if axes is None or not (axes.images or any(isinstance(drawn, QuadMesh) for drawn in axes.collections)):
            texts = reproduced.picture.texts if axes is None else axes.findobj(Text)
            pale = {text.get_text(): text.get_color() for text in texts if text.get_text() and contrast_with_white(text.get_color()) < 4.5}
            assert pale == {}


def contrast_with_white(colour: Any) -> float:
    """Return the contrast ratio of the Web Content Accessibility Guidelines 2.1."""
    encoded = np.array(to_rgb(colour))
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    return float(1.05 / (linear @ (0.2126, 0.7152, 0.0722) + 0.05))


def test_pages_beside_figures_begin_with_the_findings_and_are_short(reproduced: Reproduced) -> None:
    (page,) = (file for file in reproduced.files if file.suffix == ".md")
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {FIGURES[reproduced.name].heading(reproduced.table)}\n\n")
    assert len(text.encode()) <= MOST_BYTES


def test_titles_state_nothing_but_ranges_of_the_table(reproduced: Reproduced) -> None:
    entry, table = FIGURES[reproduced.name], reproduced.table
    heading = entry.heading(table)
    assert len(textwrap.wrap(heading, TITLE_CHARACTERS)) <= 2
    assert reproduced.picture.get_suptitle() == ""
    stated = re.findall(r": (none|-?[\d.,x-]+|infinite)(?: to ([\d.,x-]+|infinite))?(?=; |$)", heading.translate(POWERS))
    assert len(stated) == len(entry.findings)
    for finding, (low, high) in zip(entry.findings, stated, strict=True):
        numbers = np.asarray(finding.numbers(table), dtype=float)
        if low == "none":
            assert reproduced.name in WITHOUT_NUMBERS
            assert np.isnan(numbers).all()
            continue
        least, largest = np.nanmin(numbers), np.nanmax(numbers)
        low, high = (float(end.replace(",", "").replace("x10", "e").replace("infinite", "inf")) for end in (low, high or low))
        assert low <= least <= largest <= high
        assert np.allclose([low, high], [least, largest], rtol=0.01)
        # The title's ranges change with the numbers of the table.
        columns = table.select_dtypes("number")
        others = [finding.range(table.assign(**{name: bent(table[name], scale)})) for name in columns for scale in (1.7, 1e-6)]
        assert any(ends is not None and not np.allclose(ends, (least, largest), rtol=1e-9, atol=0) for ends in others)


def bent(column: "pd.Series[float]", scale: float) -> "pd.Series[float]":
    """Return other numbers in the same order, with the same ties."""
    numbers = column.astype(float)
    return np.sign(numbers) * numbers.abs() ** 1.3 * scale


def test_titles_and_quantities_have_no_findings_of_their_own(reproduced: Reproduced) -> None:
    entry, table = FIGURES[reproduced.name], reproduced.table
    words = "; ".join([entry.title, *(finding.quantity for finding in entry.findings)])
    # Names in the table may contain digits, and settings in the title are no findings.
    for column in table.select_dtypes(["object", "string", "category"]):
        for name in sorted({str(value) for value in table[column].dropna()}, key=len, reverse=True):
            words = words.replace(name, "") if re.search(r"\d", name) else words
    settings = {f"{value:g}" for column in table.select_dtypes("number") for value in table[column].unique()}
    assert [number for number in re.findall(r"\d+(?:\.\d+)?", words) if number not in settings] == []
    assert CLAIMS.findall(words) == []


@pytest.mark.parametrize(
    "title",
    [
        "A secure sum beats local messages at every epsilon",
        "Compression adds the rate times the square, whatever the noise",
        "Three bits have half of Laplace noise's variance or less",
        "The refitted Lasso is as good as an oracle",
        "DP-REC: the first model decides",
    ],
)
def test_words_of_findings_are_seen(title: str) -> None:
    assert CLAIMS.search(title)


def test_captions_never_round_epsilon_down(reproduced: Reproduced) -> None:
    table = reproduced.table
    names = [name for name in table.select_dtypes("number") if "epsilon" in name]
    values = np.unique(table[names].to_numpy(dtype=float))
    values = values[np.isfinite(values) & (values > 0)]
    text = reproduced.picture.get_supxlabel().replace("\n", " ").replace("\N{NO-BREAK SPACE}", " ")
    for clause in re.findall(r"ε(?: at δ = [^:]*:| =| of(?: at most)?) ([\d., ]+)", text):
        for number in re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", clause):
            stated = float(number.replace(",", ""))
            # A table's number just above the stated number would mean that it was rounded down, unless the stated number is in the table.
            above = values[(values > stated) & (values < 1.01 * stated)]
            assert above.size == 0 or np.isin(stated, values), (number, above)


def test_legends_group_mechanisms_by_the_trust_models_that_are_drawn(reproduced: Reproduced) -> None:
    if reproduced.name not in ("price-needed-bits", "freq-limits"):
        return
    table = reproduced.table[reproduced.table["bits_per_client"].notna()]
    entries = [text.get_text() for text in reproduced.picture.legends[0].get_texts()]
    headings = {entry.removesuffix(" trust model:") for entry in entries if entry.endswith(" trust model:")}
    # Exact codes go through a secure sum, and are not private.
    assert headings == set(table.loc[~table["mechanism"].str.endswith(" code"), "trust_model"])


def test_the_numbers_of_the_table_are_drawn(reproduced: Reproduced) -> None:
    lines = [line for axes in reproduced.picture.axes for line in axes.lines]
    points = [np.ravel(np.asarray(line.get_ydata(), dtype=float)) for line in lines]
    for column in HEIGHTS.get(reproduced.name, ()):
        for value in reproduced.table[column].dropna():
            assert np.isclose(np.concatenate(points), value, rtol=1e-12).any()
    if reproduced.name == "freq-regimes":
        # Each field of the map names its winning mechanism.
        assert sum(len(axes.texts) for axes in reproduced.picture.axes) == len(winners(reproduced.table)) >= 4
    if reproduced.name == "plan-pareto":
        # The front of each trust model is the least error of releasable designs within a number of bits.
        fronts = {str(line.get_label()): np.asarray(line.get_ydata()) for line in lines if line.get_drawstyle() == "steps-post"}
        releasable = reproduced.table[~reproduced.table["on_real_numbers"].astype(bool)]
        others = reproduced.table[~reproduced.table["trust_model"].isin(releasable["trust_model"])]
        least = pd.concat([releasable, others]).groupby("trust_model")["predicted_error"].min().to_dict()
        assert {name: errors[-1] for name, errors in fronts.items()} == least
        assert all((np.diff(errors) <= 0).all() for errors in fronts.values())
        # Each drawn bound is that of the best design of a trust model. Bounds for more restricted messages may exceed that design's error.
        named = {str(line.get_label()): np.asarray(line.get_ydata())[0] for line in lines}
        bounds = {label.removeprefix("proven bound, "): height for label, height in named.items() if label.startswith("proven bound")}
        assert "local" in bounds
        assert [name for name, height in bounds.items() if height > least[name]] == []


@pytest.mark.usefixtures("small_figures", "one_picture")
def test_without_names_all_figures_are_made_and_are_one_count_of_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = ("binomial-slack", "dprec-communication")
    monkeypatch.setattr(registry, "FIGURES", {name: registry.FIGURES[name] for name in few})
    steps: list[tuple[int, int, str]] = []
    files = reproduce(None, tmp_path, seed=7, on_step=lambda *step: steps.append(step))
    assert sorted(path.name for path in files) == sorted(["index.html", *(f"{name}.{kind}" for name in few for kind in KINDS)])
    # Progress never falls, and ends at the total.
    done = [step[0] for step in steps]
    assert done == sorted(done)
    assert {step[1] for step in steps} == {done[-1]}
    assert steps[0][2].startswith("binomial-slack: ")
    # The steps are seconds of the recorded work, in which drawing a figure is a separate step after its tasks.
    total = done[-1]
    assert str(steps[0][1]) == f"{sum(ceil(LISTING[name].seconds) + 1 for name in few)} s of work"
    assert steps[-2:] == [(total - 1, total, "drawing dprec-communication"), (total, total, "drew dprec-communication")]


@pytest.mark.usefixtures("small_figures", "one_picture")
def test_a_run_that_was_cut_off_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []
    run = SlackPoint.run

    def until_the_third(self: SlackPoint, _: None = None) -> list[dict[str, Any]]:
        if len(ran) == 3:
            raise KeyboardInterrupt
        ran.append(self.trials)
        return run(self)

    monkeypatch.setattr(SlackPoint, "run", until_the_third)
    with pytest.raises(KeyboardInterrupt):
        reproduce(["binomial-slack"], tmp_path, seed=1)
    assert not (tmp_path / "binomial-slack.csv").exists()
    total = len(smaller("binomial-slack", 1))
    ran.clear()
    monkeypatch.setattr(SlackPoint, "run", lambda self, _=None: ran.append(self.trials) or run(self))
    reproduce(["binomial-slack"], tmp_path, seed=1)
    assert len(ran) == total - 3
    reproduce(["binomial-slack"], tmp_path / "whole", seed=1)
    for kind in KINDS:
        name = f"binomial-slack.{kind}"
        assert (tmp_path / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.usefixtures("small_figures", "one_picture")
def test_a_figure_does_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    for workers in (1, 2):
        reproduce(["dprec-mean", "dprec-mean"], tmp_path / str(workers), workers=workers)
    for kind in KINDS:
        assert (tmp_path / "1" / f"dprec-mean.{kind}").read_bytes() == (tmp_path / "2" / f"dprec-mean.{kind}").read_bytes()


def test_a_figure_that_is_unknown_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"figure must be a name that quietbits reproduce --help lists, got 'fig9'"):
        reproduce(["mvu-fig1", "fig9"], tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.usefixtures("small_figures")
def test_a_task_that_fails_is_named_and_no_figure_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: NoisePoint, _: None = None) -> list[dict[str, Any]]:
        raise InfeasibleError(f"no noise for {self.epsilon:g}")

    monkeypatch.setattr(NoisePoint, "run", fail)
    with pytest.raises(IncompleteSweepError, match=r"tasks failed: .*no noise for 0\.2"):
        reproduce(["cpsgd-fig1"], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


@pytest.mark.usefixtures("small_figures", "one_picture")
def test_a_figure_that_fails_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: NoisePoint, _: None = None) -> list[dict[str, Any]]:
        raise InfeasibleError(f"no noise for {self.epsilon:g}")

    monkeypatch.setattr(NoisePoint, "run", fail)
    names = ("cpsgd-fig1", "dprec-communication", "binomial-slack")
    few = {name: registry.FIGURES[name] for name in names}
    few[names[1]] = replace(few[names[1]], summary=lambda table: table["no column"])
    monkeypatch.setattr(registry, "FIGURES", few)
    steps: list[tuple[int, int, str]] = []
    failures = r"2 of 3 figures failed, the others are drawn: cpsgd-fig1: .*no noise.*; dprec-communication: 'no column'"
    with pytest.raises(ValueError, match=failures):
        reproduce(None, tmp_path, seed=7, on_step=lambda *step: steps.append(step))
    assert (tmp_path / "binomial-slack.svg").is_file()
    assert not (tmp_path / "cpsgd-fig1.svg").exists()
    assert steps[-1][0] == steps[-1][1]
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "no noise for 0.2" in page
    assert "as its drawing failed" in page
