"""Parameters of mechanisms and their design choices, each declared once.

A mechanism declares its parameters as fields of its dataclass (`parameter`, `parts`). `options_of` lists them, `made` builds the mechanism
from their values, `values_of` reads them from a mechanism, and `check_parameters` checks them when the mechanism is made.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

from ...arguments import check_choice, check_integer, check_real, number_text
from .privacy import Scalar

Values = Mapping[str, Any]
"""Values of options, by name."""


class Required:
    """The default of an option that must be given."""

    def __repr__(self) -> str:
        """Return the text for help texts."""
        return "required"


REQUIRED = Required()
Made = TypeVar("Made")
# Factor that covers the rounding errors of fractional bits of messages.
BITS_ROUNDING = 1 + 1e-9
NONE = "none"
"""The text for None on the command line and in TOML files: the default of an option without a value."""


@dataclass(frozen=True)
class Option:
    """One parameter of a mechanism, for the command line, TOML files, tables and the docs.

    Attributes
    ----------
    name : str
        Name in Python and TOML; the command line writes it with dashes.
    kind : type
        int, float, str, bool or Path.
    help : str
        Help text of one line.
    default : object
        Default value; `REQUIRED` for a mandatory option. The default None, which TOML and ``--option NAME=VALUE`` write as ``none``, needs
        an explanation in the help text.
    low, high : float
        Range of a number; infinite on both sides if the code that uses the value checks the range.
    unit : str
        Unit of a number, such as ``"bits"``.
    choices : tuple of str
        Allowed values of a text, if they are few.
    flags : str
        Command-line spelling of a switch: ``"--rotated/--plain"``.
    budget : str
        Rule by which a task's number of bits sets the default: for ``"coordinate"`` the default is `Task.most_bits`, also for ``"sketch"``,
        whose coordinates are fewer than the task's; for ``"at most"`` the usual default, or `Task.most_bits` if that is less; for
        ``"message"`` `Task.most_message_bits`; empty for no effect.
    at_most : str
        Name of another parameter, or of a sampling's field such as ``"population"``, that bounds the number from above if both are given.
    numeric : bool
        Whether a number may replace the text, as for the order of a norm, which may be 2, ``"inf"`` or ``"l2"``.
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
        """Whether the option is mandatory."""
        return isinstance(self.default, Required)

    def in_words(self) -> str:
        """Return help, range and default."""
        words = [self.help]
        if self.choices:
            words.append(f"One of {', '.join(self.choices)}.")
        elif self.kind in (int, float) and self.low > -1e300:
            words.append(f"From {self.low:g} to {self.high:g}{f' {self.unit}' if self.unit else ''}.")
        words.append("Required." if self.required else f"Default {NONE if self.default is None else self.default}.")
        return " ".join(words)

    def check(self, value: Any, name: str | None = None) -> Any:
        """Return a value of the option's kind, or raise ValueError with the name, value and range.

        ``"none"`` stands for None, the default of an option that is not mandatory: the command line and TOML have no other way to write
        None. Errors show `name`, if given, in place of the option's own name.
        """
        name = self.name if name is None else name
        if self.default is None and value in (None, NONE):
            return None
        if self.kind is int:
            return check_integer(name, value, low=int(self.low), high=int(self.high))
        if self.kind is float and math.isinf(self.low) and math.isinf(self.high) and isinstance(value, int | float):
            return float(value)
        if self.kind is float:
            return check_real(name, value, low=self.low, high=self.high)
        if self.kind is bool and not isinstance(value, bool):
            raise ValueError(f"{name} must be true or false, got {value!r}")
        if self.numeric and isinstance(value, Real) and not isinstance(value, bool):
            return number_text(float(value))
        if self.kind is str and not isinstance(value, str):
            raise ValueError(f"{name} must be a {'number or a ' if self.numeric else ''}text, got {value!r}")
        if self.choices:
            check_choice(name, value, self.choices)
        return Path(value) if self.kind is Path and isinstance(value, str) else value

    def within(self, message_bits: float, dimension: int) -> Any:
        """Return the default for a budget of bits of a message, in the option's range."""
        # A budget of whole bits per coordinate has been multiplied by the number of coordinates.
        allowed = message_bits if self.budget == "message" else float(math.floor(message_bits / dimension * BITS_ROUNDING))
        if self.budget == "at most":
            allowed = min(allowed, self.default)
        return self.kind(min(max(allowed, self.low), self.high))

    def fewest_bits(self, dimension: int) -> float:
        """Return the least budget of message bits that the option's range allows."""
        return {"message": self.low, "sketch": 0.0}.get(self.budget, self.low * dimension)

    def document(self) -> dict[str, Scalar | list[str]]:
        """Return the option as a JSON document."""
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
    """Raise ValueError if a number exceeds its bound (`Option.at_most`).

    The bound is another parameter, or a field of a sampling.
    """
    for option in options:
        value, most = values.get(option.name), values.get(option.at_most)
        if value is not None and most is not None and value > most:
            raise ValueError(f"{option.name} must be at most the {option.at_most}, {most}, got {value}")


def check_values(what: str, options: tuple[Option, ...], values: Values) -> dict[str, Any]:
    """Return a checked value for every option; options without a value have their defaults.

    Raises
    ------
    ValueError
        If a value is missing or out of range, or a name has no option; the message lists the names.
    """
    names = [option.name for option in options]
    for name, value in values.items():
        if name not in names:
            raise ValueError(f"{name} is not a parameter of {what}: it has {', '.join(names) or 'none'}; got {name} = {value!r}")
    for option in options:
        if option.required and option.name not in values:
            raise ValueError(f"{option.name} is missing: {what} needs {', '.join(needed.name for needed in options if needed.required)}")
    return {option.name: option.check(values[option.name]) if option.name in values else option.default for option in options}


Declared = Mapping[str, Any]
"""Arguments of `parameter` by name, or `changes` of `parts`, for declarations that several mechanisms share."""
PARAMETER = "parameter"
"""Key of a field's metadata that holds what `parameter` or `parts` declares."""


@dataclass(frozen=True)
class _Parts:
    """Mark of a field whose value is a record with its own parameters."""

    kind: type
    changes: Mapping[str, Mapping[str, Any]]


def parameter(
    help: str,  # noqa: A002 - the name of the option's own attribute
    low: float = -math.inf,
    high: float = math.inf,
    *,
    default: Any = REQUIRED,
    usual: Any = REQUIRED,
    kind: type | None = None,
    name: str | None = None,
    unit: str = "",
    choices: tuple[str, ...] = (),
    flags: str = "",
    at_most: str = "",
    numeric: bool = False,
) -> Any:
    """Declare a field of a dataclass as a parameter with its range, option, TOML key and help.

    Parameters
    ----------
    help, low, high, unit, choices, flags, at_most, numeric
        Attributes of `Option`.
    default : object
        Default of the field; without a default the parameter is required.
    usual : object
        Default of the option if the field itself has no default.
    kind : type or None
        int, float, str or bool; None for the field's annotation.
    name : str or None
        Name of the option if it differs from the field's.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Coin:
    ...     epsilon: float = parameter("Privacy parameter of one round.", 0.001, 100.0)
    ...     sides: int = parameter("Number of sides.", 2, 1000, default=2)
    >>> [option.name for option in options_of(Coin)], made(Coin, {"epsilon": 1.0})
    (['epsilon', 'sides'], Coin(epsilon=1.0, sides=2))
    """
    settings = {"low": low, "high": high, "unit": unit, "choices": choices, "flags": flags, "at_most": at_most, "numeric": numeric}
    declared = {"help": help, "kind": kind, "name": name, "usual": usual, **settings}
    given = dataclasses.MISSING if default is REQUIRED else default
    return dataclasses.field(default=given, metadata={PARAMETER: declared})


def parts(kind: type, **changes: Mapping[str, Any]) -> Any:
    """Declare a field whose value is a record with its own parameters.

    The record's parameters become parameters of the mechanism. `changes` has attributes of `Option` that differ from the record's own, by
    the names of the options.
    """
    return dataclasses.field(metadata={PARAMETER: _Parts(kind, changes)})


def budgeted() -> Any:
    """Declare a field that a budget sets, such as ``delta``.

    The field is no parameter and has no default; it may stand between parameters.
    """
    return dataclasses.field()


def options_of(kind: type) -> tuple[Option, ...]:
    """Return the parameters of a dataclass in the order of its fields, parts included."""
    return tuple(option for _, option in _declared(kind))


def made(kind: type[Made], values: Values) -> Made:
    """Return a mechanism from the values of its parameters.

    Missing parameters have the defaults of the fields. Fields that are no parameters, such as ``delta``, take their values by name.
    """
    arguments: dict[str, Any] = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        declared = field.metadata.get(PARAMETER)
        if isinstance(declared, _Parts):
            arguments[field.name] = made(declared.kind, values)
            continue
        name = field.name if declared is None else (declared["name"] or field.name)
        if field.init and name in values and (values[name] is not None or declared is not None):
            arguments[field.name] = values[name]
    return kind(**arguments)


def values_of(record: Any) -> dict[str, Any]:
    """Return the values of a mechanism's parameters, by option name."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(record):
        declared = field.metadata.get(PARAMETER)
        if isinstance(declared, _Parts):
            values |= values_of(getattr(record, field.name))
        elif declared is not None:
            values[declared["name"] or field.name] = getattr(record, field.name)
    return values


def check_parameters(record: Any) -> None:
    """Check a mechanism's parameters, each by its own range; call it from ``__post_init__``.

    Raises
    ------
    ValueError
        If a value is of another kind or out of range; the message has the field's name.
    """
    for name, option in _declared(type(record)):
        if name in record.__dict__:
            object.__setattr__(record, name, option.check(record.__dict__[name], name))


def _declared(kind: type) -> Iterator[tuple[str, Option]]:
    """Yield the parameters of a dataclass with the names of their fields, parts included."""
    for field in dataclasses.fields(kind):
        declared = field.metadata.get(PARAMETER)
        if isinstance(declared, _Parts):
            for name, option in _declared(declared.kind):
                yield f"{field.name}.{name}", dataclasses.replace(option, **declared.changes.get(option.name, {}))
        elif declared is not None:
            settings = {key: value for key, value in declared.items() if key not in ("help", "kind", "name", "usual")}
            kind_of_value = field.type if declared["kind"] is None else declared["kind"]
            default = declared["usual"] if field.default is dataclasses.MISSING else field.default
            assert isinstance(kind_of_value, type)  # noqa: S101 - a parameter's annotation is a plain type
            yield field.name, Option(declared["name"] or field.name, kind_of_value, declared["help"], default, **settings)
