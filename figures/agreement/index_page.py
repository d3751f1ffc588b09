"""The index page of a folder of figures: the papers' claims, what came out, and whether they agree."""

import base64
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ...shown import listed, with_powers
from ..drawing.directed_rounding import rounded_up
from ..finished import FinishedFigure, all_finished
from ..listing import LISTING
from ..report.pages import fill_template, write_page
from .claims import AGREEMENTS, BEYOND, Judgement, overall
from .lookup import FIGURE_CLAIMS

INDEX_NAME = "index.html"
FOLDER = Path(__file__).parent
# Columns that describe the size of a comparison, with their names on the page, in the order of the page.
SIZES = {
    "data": "data",
    "dataset": "data",
    "model": "model",
    "clients": "clients",
    "clients_per_round": "clients a round",
    "rounds": "rounds",
    "dimension": "dimension",
    "categories": "items",
    "bits_in": "bits in",
    "epsilon": "ε",
    "repetitions": "repetitions",
    "runs": "runs",
}
SHAPE = re.compile(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"')
# Number of values of a size that the page lists; more are a range.
MOST_VALUES = 4


@dataclass(frozen=True)
class Picture:
    """A picture as an address that holds its data, with its shape, for which a page keeps the place."""

    address: str
    width: int
    height: int


@dataclass(frozen=True, kw_only=True)
class FigureCard:
    """A figure's entry in the index.

    Attributes
    ----------
    figure : FinishedFigure
        The record of the figure.
    title : str
        Title without findings.
    paper, place : str
        Short name of the paper, and the place in it.
    agreement : str
        One of `AGREEMENTS`.
    judgements : sequence of Judgement
        The judged claims.
    findings : sequence of str
        Findings of the title, and further answers, with ranges of the table.
    sizes : str
        Sizes of the comparison, from the table.
    picture : Picture
        The picture.
    """

    figure: FinishedFigure
    title: str
    paper: str
    place: str
    agreement: str
    judgements: tuple[Judgement, ...]
    findings: tuple[str, ...]
    sizes: str
    picture: Picture

    @property
    def count(self) -> str:
        """Number of claims by outcome, in words."""
        counts = Counter(judgement.agreement for judgement in self.judgements)
        return ", ".join(f"{outcome} {counts[outcome]}" for outcome in AGREEMENTS if counts[outcome])

    @property
    def size(self) -> str:
        """Size of the run in words."""
        whole = "quick" if self.figure.quick else "full size"
        return f"{whole}, part" if self.figure.part else whole


class FigureIndex:
    """The index page of a folder, which grows as figures are drawn.

    Parameters
    ----------
    output : Path
        Folder of the figures. Figures of earlier runs whose files are unchanged are on the page.
    wanted : sequence of str
        Figures of this run, which the page names until they are drawn.
    """

    def __init__(self, output: Path, wanted: Sequence[str]) -> None:
        self._output, self._wanted = output, wanted
        self._left_out: dict[str, str] = {}
        self._cards = {name: figure_card(figure, output) for name, figure in all_finished(output).items()}

    def add(self, figure: FinishedFigure) -> None:
        """Put a figure on the page, in place of an earlier one."""
        self._cards[figure.name] = figure_card(figure, self._output)

    def leave_out(self, name: str, reason: str) -> None:
        """State why a figure is not drawn in this run."""
        self._left_out[name] = reason

    def write(self) -> Path:
        """Write the page and return its path."""
        path = self._output / INDEX_NAME
        cards = [self._cards[name] for name in LISTING if name in self._cards]
        missing = [name for name in self._wanted if name not in self._cards and name not in self._left_out]
        write_page(path, index_html(cards, missing, self._left_out))
        return path


def figure_card(figure: FinishedFigure, output: Path) -> FigureCard:
    """Return the card of a figure, judged by the table beside its picture."""
    table, claims = figure.table(output), FIGURE_CLAIMS[figure.name]
    judgements = tuple(claims.judged(table))
    title = LISTING[figure.name].title
    heading = figure.heading.removeprefix(title).removeprefix(". ")
    return FigureCard(
        figure=figure,
        title=title,
        paper=claims.paper,
        place=claims.place,
        agreement=overall(judgements),
        judgements=judgements,
        findings=(*filter(None, heading.split("; ")), *claims.answered(table)),
        sizes=sizes_in_words(table),
        picture=_picture(output / f"{figure.name}.svg"),
    )


def sizes_in_words(table: pd.DataFrame) -> str:
    """Return the sizes of a comparison in words, from the columns that state them.

    Examples
    --------
    >>> sizes_in_words(pd.DataFrame({"clients": [10, 1000], "epsilon": [1.0, 1.0], "error": [2.0, 0.5]}))
    'clients 10 and 1,000; ε 1'
    """
    words = {}
    for column, name in SIZES.items():
        values = sorted(table[column].dropna().unique()) if column in table else []
        finite = [value for value in values if not isinstance(value, float) or abs(value) != float("inf")]
        if finite:
            shown = finite if len(finite) <= MOST_VALUES or isinstance(finite[0], str) else [finite[0], finite[-1]]
            texts = [
                value if isinstance(value, str) else rounded_up(value, 3) if column == "epsilon" else f"{value:,.0f}" for value in shown
            ]
            # Different numbers may have the same rounded text.
            texts = list(dict.fromkeys(texts))
            words[name] = f"{name} {' to '.join(texts) if shown is not finite else listed(texts)}"
    return "; ".join(words.values())


def index_html(cards: Sequence[FigureCard], missing: Sequence[str], left_out: Mapping[str, str]) -> str:
    """Return the page as HTML."""
    counts = Counter(card.agreement for card in cards)
    claims = Counter(judgement.agreement for card in cards for judgement in card.judgements)
    return fill_template(
        "index.html.jinja",
        {"powers": with_powers, "slug": lambda agreement: agreement.replace(" ", "-")},
        folder=FOLDER,
        cards=cards,
        missing=missing,
        left_out=[(reason, [name for name in left_out if left_out[name] == reason]) for reason in dict.fromkeys(left_out.values())],
        listed=len(LISTING),
        counts=[(agreement, counts[agreement]) for agreement in AGREEMENTS if counts[agreement]],
        claims=", ".join(f"{outcome} {claims[outcome]}" for outcome in AGREEMENTS if claims[outcome]),
        claim_count=sum(claims.values()),
        beyond=BEYOND,
        versions=listed(list(dict.fromkeys(card.figure.version for card in cards))),
        seeds=listed(list(dict.fromkeys(str(card.figure.seed) for card in cards))),
        sizes=listed(list(dict.fromkeys(card.size for card in cards))),
    )


def _picture(file: Path) -> Picture:
    content = file.read_bytes()
    shape = SHAPE.search(content)
    if shape is None:
        raise ValueError(f"{file} must have a viewBox, got none: draw the figure again")
    width, height = (round(float(side)) for side in shape.groups())
    return Picture(f"data:image/svg+xml;base64,{base64.b64encode(content).decode()}", width, height)
