"""Design choices: options of mechanisms, which become command-line options, TOML keys, columns of tables and lines of the docs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from ...arguments import check_choice, check_integer, check_real, number_text
from .privacy import Scalar

Values = Mapping[str, Any]
"""Values of options, by name."""


class Required:
    """The default of an option that must be given."""

    def __repr__(self) -> str:
        """Return what help texts show."""
        return "required"


REQUIRED = Required()
# Messages of fractional bits are computed up to rounding.
BITS_ROUNDING = 1 + 1e-9
NONE = "none"
"""What stands for None where values are typed: the default of an option that is as good as left out."""


@dataclass(frozen=True)
class Option:
    """One parameter of a mechanism: a command-line option, a TOML key, a column, a line of the docs.

    Attributes
    ----------
    name : str
        As in Python and TOML; the command line writes it with dashes.
    kind : type
        int, float, str, bool or Path.
    help : str
        One line.
    default : object
        Its value where it is not given; `REQUIRED` where it must be, and None, which TOML and
        ``--option NAME=VALUE`` write as ``none``, where the help says what follows.
    low, high : float
        Range of a number; infinite for both where what uses it checks it.
    unit : str
        Unit of a number, such as ``"bits"``.
    choices : tuple of str
        Values of a text, where they are a few.
    flags : str
        How the command line writes a switch: ``"--rotated/--plain"``.
    budget : str
        What a task's number of bits makes of an option that is not given: for ``"coordinate"`` its default is `Task.most_bits`, for
        ``"sketch"`` too, whose coordinates are fewer than the task's, for ``"at most"`` its usual default or `Task.most_bits` if that is
        less, for ``"message"`` `Task.most_message_bits`; empty for nothing.
    at_most : str
        Name of another parameter, or of a sampling's field such as ``"population"``, that the number may not exceed where both are given.
    numeric : bool
        Whether a text may be given as the number that it writes: p of a norm, which may be ``"inf"`` or ``"l2"``.
    """

    name: str
    kind: type
    help: str
    default: Any = REQUIRED
    low: float = -math.inf
    high: float = math.inf
    unit: str = ""
    choices: tuple[str, ...] = ()
    flags: str = ""
    budget: str = ""
    at_most: str = ""
    numeric: bool = False

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return isinstance(self.default, Required)

    def check(self, value: Any) -> Any:
        """Return a value of the option's kind, or raise ValueError with its name, the value and what is allowed.

        ``"none"`` is the default of an option that may be left out: neither the command line nor TOML can say None.
        """
        if self.default is None and value in (None, NONE):
            return None
        if self.kind is int:
            return check_integer(self.name, value, low=int(self.low), high=int(self.high))
        if self.kind is float and math.isinf(self.low) and math.isinf(self.high) and isinstance(value, int | float):
            return float(value)
        if self.kind is float:
            return check_real(self.name, value, low=self.low, high=self.high)
        if self.kind is bool and not isinstance(value, bool):
            raise ValueError(f"{self.name} must be true or false, got {value!r}")
        if self.numeric and isinstance(value, Real) and not isinstance(value, bool):
            return number_text(float(value))
        if self.kind is str and not isinstance(value, str):
            raise ValueError(f"{self.name} must be a {'number or a ' if self.numeric else ''}text, got {value!r}")
        if self.choices:
            check_choice(self.name, value, self.choices)
        return Path(value) if self.kind is Path and isinstance(value, str) else value

    def within(self, message_bits: float, dimension: int) -> Any:
        """Return the default for a budget of bits of a message, in the option's range."""
        # A budget of whole bits for each coordinate was multiplied by their number.
        allowed = message_bits if self.budget == "message" else float(math.floor(message_bits / dimension * BITS_ROUNDING))
        if self.budget == "at most":
            allowed = min(allowed, self.default)
        return self.kind(min(max(allowed, self.low), self.high))

    def fewest_bits(self, dimension: int) -> float:
        """Return the least budget of bits of a message that the option's range allows."""
        return {"message": self.low, "sketch": 0.0}.get(self.budget, self.low * dimension)

    def document(self) -> dict[str, Scalar | list[str]]:
        """Return the option as JSON holds it."""
        return {
            "name": self.name,
            "type": self.kind.__name__,
            "help": self.help,
            "required": self.required,
            "default": None if self.required else self.default,
            "low": self.low if math.isfinite(self.low) else None,
            "high": self.high if math.isfinite(self.high) else None,
            "choices": list(self.choices),
            "unit": self.unit or None,
        }


def check_pairs(options: tuple[Option, ...], values: Values) -> None:
    """Raise ValueError where a number exceeds another one that bounds it (`Option.at_most`), which may be a sampling's."""
    for option in options:
        value, most = values.get(option.name), values.get(option.at_most)
        if value is not None and most is not None and value > most:
            raise ValueError(f"{option.name} must be at most the {option.at_most}, {most}, got {value}")


def check_values(what: str, options: tuple[Option, ...], values: Values) -> dict[str, Any]:
    """Return a value for every option: those that were given, checked, and defaults.

    Raises
    ------
    ValueError
        If a value is missing, out of range, or no option has its name; the message says which there are.
    """
    names = [option.name for option in options]
    for name, value in values.items():
        if name not in names:
            raise ValueError(f"{name} is not a parameter of {what}: it has {', '.join(names) or 'none'}; got {name} = {value!r}")
    for option in options:
        if option.required and option.name not in values:
            raise ValueError(f"{option.name} is missing: {what} needs {', '.join(one.name for one in options if one.required)}")
    return {option.name: option.check(values[option.name]) if option.name in values else option.default for option in options}
