"""Each paper's page has an entry for every item of the paper.

An entry has a verdict, a place in quietbits and a reason.
"""

import math
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import quietbits
from quietbits.analysis.training.baselines import baselines
from quietbits.analysis.training.models.named_models import SCATTER_SOFTMAX, TORCH_MODELS, network_named
from quietbits.analysis.training.reference_mechanisms import rounded_within
from quietbits.design.federated.model_layers import MODELS
from quietbits.design.local.cldp import CLDPL2Mechanism
from quietbits.design.local.vector_table import VectorTableMechanism
from quietbits.design.tables.table_privacy import table_privacy
from quietbits.figures.listing import LISTING
from quietbits.figures.training_settings import training_settings
from quietbits.solvers.divergences.dp_rec_privacy import fewest_dp_rec_bits, lost_delta

ROOT = Path(quietbits.__file__).parent
PAGES = ROOT / "docs" / "papers"
PAPERS = tomllib.loads(Path(__file__).with_name("paper_items.toml").read_text(encoding="utf-8"))
VERDICTS = ("right", "different", "missing")
HEAD = "| item | verdict | here | what differs, and why |"
FOLDERS = ("analysis", "cli", "design", "figures", "solvers")
SOURCES = "\n".join(file.read_text(encoding="utf-8") for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py")))
DEFINED = frozenset(re.findall(r"^\s*(?:def|class) (\w+)", SOURCES, flags=re.MULTILINE))
# Known names of figures, mechanisms, accounts and models.
NAMED = frozenset(
    {*LISTING, *quietbits.REGISTRY, *(entry.name for entry in baselines()), *TORCH_MODELS, SCATTER_SOFTMAX}
    | {name for entry in quietbits.REGISTRY.values() for name in entry.accounts}
)
# Known words for keys of trainings, columns of tables, and commands.
WRITTEN = re.compile(r"quietbits \w+|(\w+) = \".*\"|(\w+)|mlp(?:-\d+)+")


@dataclass(frozen=True)
class PageEntry:
    """A row of a page's table."""

    item: str
    verdict: str
    here: str
    reason: str


def entries(paper: str) -> list[PageEntry]:
    """Return the rows of a page's table of items."""
    text = (PAGES / PAPERS[paper]["page"]).read_text(encoding="utf-8")
    _, head, rest = text.partition(HEAD)
    assert head, f"{PAPERS[paper]['page']} has no table of items"
    table = rest.partition("\n\n")[0].strip().splitlines()[1:]
    return [PageEntry(*(cell.strip() for cell in row.strip().strip("|").split("|"))) for row in table]


def exists(name: str) -> bool:
    """Return whether a name in backticks names a file, a definition or a known word."""
    if "/" in name:
        return (ROOT / name).is_file()
    if name in NAMED:
        return True
    called = re.fullmatch(r"(\w+)(?:\.(\w+))?(?:\(.*\))?", name)
    if called is not None and all(part is None or part in DEFINED for part in called.groups()):
        return True
    written = WRITTEN.fullmatch(name)
    return written is not None and all(part is None or f'"{part}"' in SOURCES or f"{part}:" in SOURCES for part in written.groups())


def test_each_page_has_a_list_of_items_and_each_list_a_page() -> None:
    assert sorted(paper["page"] for paper in PAPERS.values()) == sorted(page.name for page in PAGES.glob("*.md") if page.name != "index.md")
    for paper in PAPERS.values():
        assert len(paper["items"]) == len(set(paper["items"])) > 20


@pytest.mark.parametrize("paper", PAPERS)
def test_the_page_has_every_item_once_and_in_order(paper: str) -> None:
    assert [entry.item for entry in entries(paper)] == PAPERS[paper]["items"]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_entry_has_a_verdict_a_place_and_a_reason(paper: str) -> None:
    for entry in entries(paper):
        assert entry.verdict in VERDICTS, entry
        assert (entry.here == "") <= (entry.verdict == "missing"), f"{entry.item}: say where it is"
        assert entry.reason or entry.verdict == "right", f"{entry.item}: say what differs, or why it is missing"


@pytest.mark.parametrize("paper", PAPERS)
def test_every_place_exists(paper: str) -> None:
    names = [(entry.item, name) for entry in entries(paper) for name in re.findall(r"`([^`]+)`", entry.here) if not name.startswith('"')]
    assert len(names) > 10
    assert [(item, name) for item, name in names if not exists(name.removesuffix(" --data"))] == []


def test_places_that_do_not_exist_are_seen() -> None:
    assert exists("dither")
    assert exists("CountMeanSketch.decode")
    assert not exists("CountMeanSketch.decoded_twice")
    assert not exists("design/transforms/nothing.py")
    assert not exists("price-nothing")


def test_a_lost_entry_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (PAGES / "cpsgd.md").read_text(encoding="utf-8")
    (tmp_path / "cpsgd.md").write_text("\n".join(line for line in text.splitlines() if not line.startswith("| Corollary 2 ")))
    monkeypatch.setitem(globals(), "PAGES", tmp_path)
    assert set(PAPERS["cpsgd"]["items"]) - {entry.item for entry in entries("cpsgd")} == {"Corollary 2"}


def test_every_numbered_figure_and_table_of_a_paper_is_listed() -> None:
    """The numbers of figures and tables are consecutive, so the typed lists are complete."""
    for name, paper in PAPERS.items():
        for kind in ("Figure", "Table"):
            numbers = {int(match[1]) for item in paper["items"] if (match := re.match(rf"{kind} (\d+)", item))}
            assert numbers == set(range(1, len(numbers) + 1)), f"{name}: {kind}"


def test_numbers_of_cpsgd() -> None:
    # Section 1.3 compares 4 bits with 32, each with log2(1024) bits of secure aggregation.
    assert round(1 - (4 + math.log2(1024)) / (32 + math.log2(1024)), 2) == 0.67


def test_numbers_of_dp_rec() -> None:
    assert 12 * math.exp(0.74**2) / 2**21 < 1e-5 < 12 / 2**20
    assert lost_delta(0.74, 1, 21) == pytest.approx(12 * math.exp(0.74**2) / 2**21)
    assert fewest_dp_rec_bits(0.74, 1, 1e-5) == fewest_dp_rec_bits(0.01, 1, 1e-5) == 21
    assert fewest_dp_rec_bits(0.75, 1, 1e-5) == 22
    assert fewest_dp_rec_bits(0.59, 10_000, 1e-5) == 34
    assert fewest_dp_rec_bits(1.227, 1500 * 60, 342_477**-1.1) == 43


def test_eight_bits_on_the_page_of_dp_rec() -> None:
    rng = np.random.default_rng(0)
    vector = rng.normal(size=(1, 582_026))
    vector /= np.linalg.norm(vector)
    largest, clip_norm = (rounded_within(vector, reach, 8, 1.0, rng) for reach in (np.abs(vector).max(axis=1), np.ones(1)))
    assert round(100 * float(np.sum((largest - vector) ** 2)), 2) == 0.02
    assert round(float((clip_norm @ vector.T).item()), 2) == 0.46
    reported = training_settings("dp-rec", "mnist").reported[0]
    assert (reported.epsilon, reported.accuracy["dp-fedavg-8-bits"], reported.accuracy["dp-fedavg"]) == (3, 58, 82.1)


def test_numbers_of_linear_compression() -> None:
    # The largest singular value of a Gaussian ensemble is about sqrt(m) + sqrt(d); the necessary clip norm is 1.1 sqrt(m).
    assert [round((1 + math.sqrt(rate)) ** 2 / 1.1**2, -1) for rate in (16, 500)] == [20, 450]
    dense = network_named("mlp-200-200", 784, 62).layers
    assert dense.dimension == MODELS["femnist-mlp"].dimension == 209_662
    assert dense.sizes == MODELS["femnist-mlp"].sizes == (157_000, 40_200, 12_462)


def test_draws_of_cldp_on_the_page_of_mvu() -> None:
    """Draws of one private vector of length M add M**2 each, for noise and for the quantiser."""
    mechanism = CLDPL2Mechanism(2.0, quietbits.NormBall(128, 2.0))
    assert mechanism.bits_per_client == 8
    of_vector = (mechanism.variance_bound + 1) / 128
    assert round(mechanism.variance_bound / (of_vector * (2 - 1 / 128) - 1)) == 64


def test_half_of_epsilon_on_the_page_of_mvu() -> None:
    """An L1-metric table for epsilon/2 gives about epsilon at half distance (appendix B.3)."""
    table = quietbits.design_mvu(1.0, bits_in=5, bits_out=3, metric="l1")
    mechanism = VectorTableMechanism(table, quietbits.NormBall(128, 2.0), delta=1e-5)
    radii = (mechanism.input_distance / 2, mechanism.input_distance)
    result = [table_privacy(table, dimension=128, norm=2.0, radius=radius).epsilon(1 / 10_001, "replace-one") for radius in radii]
    assert result == pytest.approx([2.0155, 4.4328], rel=1e-3)
    text = (PAGES / "mvu.md").read_text(encoding="utf-8")
    assert all(f"{math.ceil(100 * number) / 100:.2f}" in text for number in result)
