"""Entries of the registry in words, for lists of mechanisms, terminals and notebooks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...shown import html_table
from .domains import Interval
from .mechanism import Mechanism
from .norm_ball import NormBall
from .options import Option, Values
from .task import Task

# Headings of `DescribedEntry.listed`.
LISTED = ("name", "trust model", "clients hold", "adjacency", "what it does")
# Warning about the guarantee of an entry whose mechanism is on real numbers.
REAL_NUMBERS = (
    "the guarantee is of the mechanism on real numbers; noise in floating-point numbers reveals more in its low bits: "
    "a reference for comparisons, not for releases"
)


class DescribedEntry:
    """The description of a registry entry, as texts and rows of lists."""

    def listed(self) -> tuple[str, ...]:
        """Return the row of a list of mechanisms, under the headings `LISTED`."""
        own: Any = self
        held = ", ".join(_held(own, domain) for domain in own.domains)
        return own.name, own.trust_model, held, ", ".join(own.adjacencies), own.title

    def described(self) -> dict[str, str]:
        """Return all facts about the entry by their names; options are named as in commands."""
        own: Any = self
        text = {"title": own.title, "paper": own.paper}
        if own.use:
            text["when to use it"] = own.use
        text |= {"trust model": own.trust_model}
        text |= {"adjacency": ", ".join(own.adjacencies), "accounts": ", ".join(own.accounts)}
        if own.account_adjacencies != own.adjacencies:
            title = own.title if own.noise is None else own.noise.title
            text["account, calibrate"] = f"{title}; {' or '.join(own.account_adjacencies)} adjacency"
        if own.on_real_numbers:
            text["note"] = REAL_NUMBERS
        commands = {"simulate": own.options, "account": own.account_options, "calibrate": own.calibration_options}
        for command, options in commands.items():
            text |= {f"{command} --{option.name.replace('_', '-')}": option.in_words() for option in options}
        return text

    def _repr_html_(self) -> str:
        own: Any = self
        return html_table(own.name, self.described().items())


def _held(entry: Any, domain: type) -> str:
    """Return what clients of a domain hold, in words."""
    if domain is not NormBall:
        return "numbers" if domain is Interval else "items"
    return "vectors" if entry.norms is None else f"vectors of an {' or '.join(f'L{norm:g}' for norm in entry.norms)} ball"


@dataclass(frozen=True, eq=False)
class InPlaceOfBudget:
    """A parameter, such as the noise, that trainings may state in place of a budget.

    The account then says which budget the training keeps.

    Attributes
    ----------
    option : Option
        The parameter, None by default.
    build : callable
        Function that returns the mechanism for a value of the parameter; the task's epsilon and rounds have no effect.
    """

    option: Option
    build: Callable[[Task, Values], Mechanism]
