"""Numbers in README and docs are computed by the program.

A comment in a page states the computation of the numbers that follow, up to the next heading:

    <!-- computed: the error is {ratio(2**16):.3f} times that of Gaussian noise -->
    <!-- table: slack_rows() -->

The first comment is an f-string whose text is in the page, with its numbers. The second returns the rows of the next table, without the
head, as lists of cells, in which `...` stands for a typed cell. Expressions use `quietbits`, `numpy as np`, `math`, the functions of
`docs_numbers/shared.py`, and those of the page's module: `docs_numbers/explanations/secure_sum.py` for `docs/explanations/secure-sum.md`.
Tests omit `computed slowly` and `table slowly`. A number that the program cannot print has its reason above its paragraph, list or table, a
reason of `GIVEN`:

    <!-- given: a setting -->

    python tests/project/test_docs_numbers.py           # write the numbers into the pages
    python tests/project/test_docs_numbers.py --all     # those that take long, too
    python tests/project/test_docs_numbers.py --count   # how many numbers of each page are neither computed nor have a reason
    python tests/project/test_docs_numbers.py --typed papers/mvu    # those of one page, with their lines
"""

import ast
import importlib.util
import math
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import quietbits

ROOT = Path(quietbits.__file__).parent
MODULES = Path(__file__).parent / "docs_numbers"
# Folders that Sphinx writes start with an underscore.
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("[!_]*/**/*.md")])
COMMENT = re.compile(r"<!-- (computed|table)( slowly)?:\s(.*?)\s*-->\n?", re.DOTALL)
# Spaces may separate thousands, and a sign may be typographic.
NUMBER = re.compile(r"[-\u2212]?(?:\d{1,3}(?:[ ,]\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[+-]?\d+)?")
REASON = re.compile(r"<!-- given: (.*?) -->\n*((?:[^\n]+\n?)*)")
GIVEN = {
    "a setting": "a choice of the example: clients, dimensions, budgets, seeds",
    "a formula": "constants of formulas, of definitions and of proofs",
    "a limit": "a limit or a format that the code states, and tests hold",
    "from the paper": "a number that a publication prints",
    "regenerated": "what another test regenerates",
    "measured": "the result of a run of more than five minutes; the text names its size and its seed",
}
# Numbers in headings, references and units of formulas are no results.
CODE = re.compile(
    r"```.*?```|`[^`]*`|<!--.*?-->|\]\([^)]*\)|^#.*?$|^    .*?$|^ *\d+\. |\b(?:19|20)\d\d\b"
    r"|\b(?:Figures?|Tables?|Theorems?|Lemmas?|Corollar(?:y|ies)|Propositions?|Definitions?|Algorithms?|Sections?|Equations?|Appendi(?:x|ces)|Claims?|Remarks?"
    r"|figures?|tables?|theorems?|lemmas?|corollar(?:y|ies)|propositions?|definitions?|algorithms?|sections?|equations?|appendi(?:x|ces))"
    r" \(?[A-Z]?\.?\d[\w.]*\)?(?:(?:,| and| to|, and| or) \(?[A-Z]?\.?\d[\w.]*\)?)*",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Statement:
    """A comment of a page, and the places of its computed numbers.

    Attributes
    ----------
    page : Path
        The page.
    kind : str
        ``"computed"`` for numbers in sentences, ``"table"`` for a table's rows.
    slow : bool
        Whether tests skip it.
    source : str
        The f-string, or the expression of the rows.
    start, stop : int
        Range of the page's text that the statement covers: after the comment, up to the next heading.
    """

    page: Path
    kind: str
    slow: bool
    source: str
    start: int
    stop: int

    def computed(self) -> tuple[re.Pattern[str], list[str]]:
        """Return a pattern of the printed text, and the expected values of its groups."""
        names = namespace(self.page)
        if self.kind == "table":
            rows = list(eval(self.source, names))  # noqa: S307 - the page is the project's own
            cells = [str(cell) for row in rows for cell in row if cell is not ...]
            # The groups are atomic, so that a row can be split in only one way.
            cell_patterns = ([r" *[^|\n]*? *" if cell is ... else r" *([^|\n]*?) *" for cell in row] for row in rows)
            lines = "".join(r"(?>\|" + r"\|".join(row) + r"\| *\n)" for row in cell_patterns)
            return re.compile(r"(?<=\|\n)" + lines + r"(?!\|)", re.MULTILINE), cells
        expressions = [
            ast.fix_missing_locations(ast.Expression(ast.JoinedStr([part]))) for part in self._parts() if not isinstance(part, ast.Constant)
        ]
        return self._sentence(), [eval(compile(expression, str(self.page), "eval"), names) for expression in expressions]  # noqa: S307

    def _parts(self) -> list[ast.expr]:
        literal = ast.parse(f"rf'''{self.source}'''", mode="eval").body
        return literal.values if isinstance(literal, ast.JoinedStr) else [literal]

    def _sentence(self) -> re.Pattern[str]:
        # Lines of the page may break anywhere.
        pattern = "".join(
            r"\s+".join(re.escape(word) for word in re.split(r"\s+", str(part.value)))
            if isinstance(part, ast.Constant)
            else rf"({NUMBER.pattern}|\w+|∞)"
            for part in self._parts()
        )
        # Neither end may be inside a word or a number.
        return re.compile(rf"(?<![\w.]){pattern}(?!\w)")

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the places of the printed numbers; a table counts as a whole."""
        if self.kind == "table":
            table = re.compile(r"(?:^\|.*\n)+", re.MULTILINE).search(text, self.start, self.stop)
            return [] if table is None else [table.span()]
        match = self._sentence().search(text, self.start, self.stop)
        return [] if match is None else [match.span(group) for group in range(1, match.re.groups + 1)]

    def place(self, text: str) -> tuple[re.Match[str], list[str]]:
        """Return the places of the printed numbers, and their expected values."""
        pattern, numbers = self.computed()
        match = pattern.search(text, self.start, self.stop)
        if match is None:
            raise ValueError(f"{self.page.name} has no such text or table after the comment: {self.source}")
        return match, numbers


def name(page: Path) -> str:
    """Return a page's path below `docs`, without its suffix, or the name of any other page."""
    docs = ROOT / "docs"
    return page.relative_to(docs).with_suffix("").as_posix() if page.is_relative_to(docs) else page.stem


@cache
def namespace(page: Path) -> dict[str, object]:
    """Return the names that a page's expressions may use."""
    names: dict[str, object] = {"quietbits": quietbits, "np": np, "math": math}
    for path in (MODULES / "shared.py", module_of(page)):
        if path.exists():
            names |= vars(loaded(path))
    return names


def module_of(page: Path) -> Path:
    """Return the path of a page's functions."""
    return MODULES / f"{name(page).lower().replace('-', '_')}.py"


@cache
def loaded(path: Path) -> ModuleType:
    """Load a module of `docs_numbers` from its path, as the folder has no `__init__.py`."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def statements(page: Path, text: str) -> Iterator[Statement]:
    """Return the statements of a page in order."""
    for comment in COMMENT.finditer(text):
        heading = re.compile(r"^#", re.MULTILINE).search(text, comment.end())
        stop = len(text) if heading is None else heading.start()
        yield Statement(page, comment[1], comment[2] is not None, comment[3], comment.end(), stop)


def agree(printed: str, computed: str) -> bool:
    """Return whether two texts agree, up to a unit of a fraction's last digit."""
    pairs = list(zip(NUMBER.findall(printed), NUMBER.findall(computed), strict=False))
    return NUMBER.sub("#", printed) == NUMBER.sub("#", computed) and all(close(*pair) for pair in pairs)


def close(printed: str, computed: str) -> bool:
    if "." not in printed:
        return printed == computed
    digits, _, exponent = plain(printed).partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
    return abs(float(plain(printed)) - float(plain(computed))) <= 1.01 * unit


def plain(number: str) -> str:
    return re.sub(r"[ ,]", "", number).replace("\u2212", "-")


ALL = [statement for page in PAGES for statement in statements(page, page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    "statement", [item for item in ALL if not item.slow], ids=lambda value: f"{name(value.page)}-{' '.join(value.source.split())[:40]}"
)
def test_a_page_prints_what_the_program_computes(statement: Statement) -> None:
    match, numbers = statement.place(statement.page.read_text(encoding="utf-8"))
    assert [pair for pair in zip(match.groups(), numbers, strict=True) if not agree(*pair)] == [], (
        "run `python tests/project/test_docs_numbers.py` if the program should say so"
    )


def test_every_comment_that_computes_is_understood() -> None:
    written = {page: len(re.findall(r"<!--\s*(?:computed|table)\b", page.read_text(encoding="utf-8"))) for page in PAGES}
    assert written == {page: sum(item.page == page for item in ALL) for page in PAGES}


TO_DO: set[str] = set()
"""Pages of which numbers are still typed without a reason."""


@pytest.mark.parametrize("page", [page for page in PAGES if name(page) not in TO_DO], ids=name)
def test_no_number_is_typed_without_a_reason(page: Path) -> None:
    assert typed_numbers(page.read_text(encoding="utf-8"), page)[1] == []


def test_every_reason_is_on_the_list() -> None:
    reasons = {reason[1] for page in PAGES for reason in REASON.finditer(page.read_text(encoding="utf-8"))}
    assert reasons <= set(GIVEN)


def test_a_typed_number_is_noticed(tmp_path: Path) -> None:
    given = "<!-- given: a setting -->\nWith 5 clients `7`.\n\n"
    text = f"# 1\n\n{given}Figure 3 has 4 bits.\n<!-- computed: pi is {{math.pi:.2f}} -->\npi is 3.14, e 2.72\n"
    assert typed_numbers(text, tmp_path / "page.md") == (4, ["line 6: 4", "line 8: 2.72"])


def test_every_module_has_its_page() -> None:
    assert set(MODULES.rglob("*.py")) <= {MODULES / "shared.py", *map(module_of, PAGES)}


@pytest.mark.parametrize(
    ("printed", "computed", "same"),
    [("1.008", "1.009", True), ("1.008", "1.010", False), ("40 000", "40 000", True), ("40", "41", False), ("three", "four", False)],
)
def test_numbers_agree_to_a_unit_of_their_last_digit(printed: str, computed: str, same: bool) -> None:
    assert agree(printed, computed) is same


@pytest.mark.parametrize(
    ("comment", "printed", "right"),
    [
        ("computed: about {math.pi:.2f} and\n{2**10}", "Text, about 3.14\nand 1024.", True),
        ("computed: about {math.pi:.2f} and\n{2**10}", "Text, about 3.24\nand 1024.", False),
        ("table: [['a', 1], ['b', 2]]", "| x | y |\n|---|---|\n| a | 1 |\n| b | 2 |\n", True),
        ("table: [['a', 1], ['b', 2]]", "| x | y |\n|---|---|\n| a | 1 |\n| b | 3 |\n", False),
    ],
)
def test_a_wrong_number_is_noticed_and_rewritten(comment: str, printed: str, right: bool, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n<!-- {comment} -->\n{printed}\n", encoding="utf-8")
    for expected in (right, True):
        (statement,) = statements(page, page.read_text(encoding="utf-8"))
        match, numbers = statement.place(page.read_text(encoding="utf-8"))
        assert all(agree(*pair) for pair in zip(match.groups(), numbers, strict=True)) is expected
        rewrite(page, lambda _: True)


def test_a_sentence_that_is_missing_is_noticed(tmp_path: Path) -> None:
    text = "<!-- computed: pi is {math.pi:.2f} -->\nSomething else.\n\n## Next\n\npi is 3.14\n"
    (statement,) = statements(tmp_path / "page.md", text)
    with pytest.raises(ValueError, match="no such text"):
        statement.place(text)


def rewrite(page: Path, wanted: Callable[[Statement], bool]) -> list[str]:
    """Write the computed numbers into a page, and return the changes."""
    changes = []
    # The function rewrites one statement after the other, since an earlier text may get longer.
    for index in range(len(list(statements(page, page.read_text(encoding="utf-8"))))):
        text = page.read_text(encoding="utf-8")
        statement = list(statements(page, text))[index]
        if not wanted(statement):
            continue
        match, numbers = statement.place(text)
        for group, number in reversed(list(enumerate(numbers, start=1))):
            if not agree(match[group], number):
                changes.append(f"{page.name}: {match[group]} -> {number}")
            text = text[: match.start(group)] + number + text[match.end(group) :]
        page.write_text(text, encoding="utf-8")
    return changes


def typed_numbers(text: str, page: Path) -> tuple[int, list[str]]:
    """Return a page's count of numbers, and its numbers without computation or reason."""
    hidden = [match.span() for match in CODE.finditer(text)]
    explained = [span for statement in statements(page, text) for span in statement.spans(text)]
    explained += [match.span(2) for match in REASON.finditer(text)]
    numbers = [number for number in NUMBER.finditer(text) if not inside(number, hidden)]
    return len(numbers), [
        f"line {text.count(chr(10), 0, number.start()) + 1}: {number[0]}" for number in numbers if not inside(number, explained)
    ]


def inside(number: re.Match[str], spans: list[tuple[int, int]]) -> bool:
    return any(start <= number.start() < stop for start, stop in spans)


def main() -> None:
    for page in PAGES:
        if "--count" in sys.argv:
            total, typed = typed_numbers(page.read_text(encoding="utf-8"), page)
            print(f"{page.relative_to(ROOT)}: {len(typed)} typed numbers of {total}")
        elif "--typed" in sys.argv:
            if name(page) == sys.argv[-1]:
                print("\n".join(typed_numbers(page.read_text(encoding="utf-8"), page)[1]))
        else:
            print("".join(f"{change}\n" for change in rewrite(page, lambda value: "--all" in sys.argv or not value.slow)), end="")


if __name__ == "__main__":
    main()
