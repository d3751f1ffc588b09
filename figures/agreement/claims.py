"""Claims about figures, and their judgement by the tables that are drawn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...shown import in_figures, listed
from ..findings import Finding

AGREES, PARTLY, DIFFERS = "agrees", "agrees in part", "differs"
TOO_SMALL, NOT_COMPARABLE, BEYOND = "too small to judge", "not comparable", "beyond the papers"
AGREEMENTS = (AGREES, PARTLY, DIFFERS, TOO_SMALL, NOT_COMPARABLE, BEYOND)
"""Outcomes of a figure, in the order of the index; a claim has all but the last."""
# Beginning of the reason for tables of a part of a grid in which no task has an option.
NO_COLUMN = "The table has no column"
# Relative error of computed numbers that are equal in exact arithmetic.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Criterion:
    """A condition on numbers, which a claim states of them.

    Attributes
    ----------
    words : str
        The condition in words, after the quantity.
    holds : callable
        Function that returns for each number whether it meets the condition.
    """

    words: str
    holds: Callable[[NDArray[np.float64]], NDArray[np.bool_]]


def above(limit: float) -> Criterion:
    """Return the condition that numbers are above a limit."""
    return Criterion(f"above {in_figures(limit)}", lambda numbers: numbers > limit)


def below(limit: float) -> Criterion:
    """Return the condition that numbers are below a limit."""
    return Criterion(f"below {in_figures(limit)}", lambda numbers: numbers < limit)


def at_most(limit: float) -> Criterion:
    """Return the condition that numbers are not above a limit, up to rounding."""
    return Criterion(f"at most {in_figures(limit)}", lambda numbers: numbers <= limit * (1 + ROUNDING))


def within(low: float, high: float) -> Criterion:
    """Return the condition that numbers are in a closed interval."""
    return Criterion(f"from {in_figures(low)} to {in_figures(high)}", lambda numbers: (low <= numbers) & (numbers <= high))


@dataclass(frozen=True)
class Need:
    """A condition on a table without which a claim cannot be judged.

    Attributes
    ----------
    lacking : callable
        Function that returns what the table lacks, in words, or nothing.
    agreement : str
        Outcome of a claim for a table that lacks it.
    """

    lacking: Callable[[pd.DataFrame], str]
    agreement: str = TOO_SMALL


def at_least(column: str, number: float, name: str | None = None) -> Need:
    """Return the need for a column whose largest number is at least a given one."""

    def lacking(table: pd.DataFrame) -> str:
        largest = table[column].max() if column in table else np.nan
        words = name or column.replace("_", " ")
        if largest >= number:
            return ""
        return f"{words} of at least {in_figures(number)} (the table has {'none' if np.isnan(largest) else in_figures(largest)})"

    return Need(lacking)


def several(column: str, number: int, name: str) -> Need:
    """Return the need for a column with at least a given number of different values."""

    def lacking(table: pd.DataFrame) -> str:
        count = table[column].nunique() if column in table else 0
        return "" if count >= number else f"at least {number} {name} (the table has {count})"

    return Need(lacking)


@dataclass(frozen=True, kw_only=True)
class PaperClaim:
    """A claim of a paper, with the numbers of a figure's table that agree with it or differ.

    Attributes
    ----------
    statement : str
        The paper's claim, in a sentence.
    source : str
        Place in the paper, such as ``"figure 2"``.
    measure : Finding
        Numbers that the claim is about, one for each setting of the table.
    criterion : Criterion
        Condition that the numbers of all settings meet if the claim holds.
    reason : str
        Reason why settings do not meet it, in a sentence; empty if none is known.
    evidence : sequence of Finding
        Quantities of the table that show the reason.
    needs : sequence of Need
        Conditions on the table without which the claim is not judged.
    compared : str
        Sentence on what is compared in place of the paper's measure; empty if it is the same.
    """

    statement: str
    source: str
    measure: Finding
    criterion: Criterion
    reason: str = ""
    evidence: Sequence[Finding] = ()
    needs: Sequence[Need] = ()
    compared: str = ""

    def judged(self, table: pd.DataFrame) -> "Judgement":
        """Return whether a table agrees with the claim."""
        lacking = [(need.agreement, words) for need in self.needs if (words := need.lacking(table))]
        if any(agreement == NOT_COMPARABLE for agreement, _ in lacking):
            return Judgement(self, NOT_COMPARABLE, "", _needs(lacking))
        try:
            numbers = np.asarray(self.measure.numbers(table), dtype=float)
        except KeyError as error:
            return Judgement(self, TOO_SMALL, "", f"{NO_COLUMN} {error}.")
        if lacking:
            return Judgement(self, TOO_SMALL, f"{self.measure.text(table)}.", _needs(lacking))
        numbers = numbers[~np.isnan(numbers)]
        if not numbers.size:
            return Judgement(self, TOO_SMALL, "", f"The table has no setting of: {self.measure.quantity}.")
        held = int(np.count_nonzero(self.criterion.holds(numbers)))
        agreement = AGREES if held == numbers.size else PARTLY if held else DIFFERS
        settings = f"{self.criterion.words} in {held} of {numbers.size} settings" if numbers.size > 1 else self.criterion.words
        stated = settings if held or numbers.size > 1 else f"not {settings}"
        outcome = " ".join(filter(None, (f"{self.measure.text(table)}; {stated}.", self.compared)))
        return Judgement(self, agreement, outcome, "" if agreement == AGREES else self._why(table))

    def _why(self, table: pd.DataFrame) -> str:
        shown = "; ".join(finding.text(table) for finding in self.evidence)
        return " ".join(filter(None, (self.reason or "No reason is known.", f"{shown}." if shown else "")))


def _needs(lacking: Sequence[tuple[str, str]]) -> str:
    return f"The claim needs {listed([words for _, words in lacking])}."


@dataclass(frozen=True)
class Judgement:
    """A claim as a table bears it out.

    Attributes
    ----------
    claim : PaperClaim
        The claim.
    agreement : str
        One of `AGREEMENTS`.
    outcome : str
        What came out, in a sentence with the numbers of the table; empty if it has none.
    reason : str
        Why the table does not agree, or why the claim was not judged.
    """

    claim: PaperClaim
    agreement: str
    outcome: str
    reason: str


def overall(judgements: Sequence["Judgement"]) -> str:
    """Return the agreement of a figure from that of its claims.

    A figure agrees or differs if all its claims do. Claims that cannot be judged never count as agreement.
    """
    outcomes = {judgement.agreement for judgement in judgements}
    if not outcomes:
        return BEYOND
    judged = outcomes - {TOO_SMALL, NOT_COMPARABLE}
    if not judged:
        return TOO_SMALL if TOO_SMALL in outcomes else NOT_COMPARABLE
    if len(outcomes) == 1:
        return outcomes.pop()
    return DIFFERS if judged == {DIFFERS} else PARTLY


@dataclass(frozen=True, kw_only=True)
class FigureClaims:
    """Claims of the papers about a figure, or findings that no paper has.

    Attributes
    ----------
    paper : str
        Short name of the paper, or ``"beyond the papers"``.
    place : str
        Figure, table or section of the paper that the figure reproduces or extends; empty beyond the papers.
    claims : sequence of PaperClaim
        Claims of the paper that the figure's table can judge; none beyond the papers.
    answers : sequence of Finding
        Quantities of the table that the index states beside the findings of the figure's title.
    """

    paper: str
    place: str = ""
    claims: Sequence[PaperClaim] = ()
    answers: Sequence[Finding] = ()

    def judged(self, table: pd.DataFrame) -> list[Judgement]:
        """Return the judgement of every claim."""
        return [claim.judged(table) for claim in self.claims]

    def answered(self, table: pd.DataFrame) -> list[str]:
        """Return the answers whose columns a table has, with their ranges."""
        texts = []
        for answer in self.answers:
            try:
                texts.append(answer.text(table))
            except KeyError as error:
                texts.append(f"{answer.quantity}: {NO_COLUMN.lower()} {error}")
        return texts

    def agreement(self, table: pd.DataFrame) -> str:
        """Return the agreement of the whole figure, one of `AGREEMENTS`."""
        return overall(self.judged(table))
