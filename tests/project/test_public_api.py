"""The public API is frozen.

Points under test: names, parameters, defaults, fields and methods change only on purpose.

Run as a script, this file writes the current public names to `public_api.txt`; the difference is then part of the change.
"""

import ast
import dataclasses
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

import quietbits
from quietbits import errors

SNAPSHOT = Path(__file__).with_name("public_api.txt")


def written(function: Callable[..., Any], name: str) -> str:
    """Return a signature without annotations and function addresses."""
    signature = inspect.signature(function)
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    text = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return name + re.sub(r"<function (?:\S+\.)?(\w+|<lambda>) at \w+>", r"\1", text)


def has_signature(kind: type) -> bool:
    """Return whether a class defines its own constructor, unlike protocols and most errors."""
    return not getattr(kind, "_is_protocol", False) and (not issubclass(kind, Exception) or "__init__" in vars(kind))


def members(kind: type) -> list[str]:
    """Return methods, properties and attributes, including inherited ones, without fields."""
    own = [base for base in reversed(kind.__mro__) if base.__module__.startswith("quietbits.")]
    result = {name: value for base in own for name, value in (dict.fromkeys(inspect.get_annotations(base)) | vars(base)).items()}
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    public = {name: getattr(value, "__func__", value) for name, value in result.items() if not name.startswith("_") and name not in fields}
    return sorted(written(value, name) if inspect.isfunction(value) else name for name, value in public.items())


def described(name: str) -> str:
    """Return a function's signature, or a class's with its members on separate lines."""
    value = getattr(quietbits, name)
    if not callable(value):
        return f"{name}: {type(value).__name__}"
    if not inspect.isclass(value):
        return written(value, name)
    return "\n    ".join([written(value, name) if has_signature(value) else name, *members(value)])


def public_api() -> str:
    """Return the whole public API in alphabetical order."""
    return "".join(f"{described(name)}\n" for name in sorted(dir(quietbits)))


def test_the_public_face_is_the_recorded_one() -> None:
    # The comparison is by lines, so that pytest shows the difference.
    assert public_api().splitlines() == SNAPSHOT.read_text(encoding="utf-8").splitlines(), (
        "public names, signatures or members have changed; if they should, run `python tests/project/test_public_api.py`, which writes "
        "them to tests/project/public_api.txt, and commit that file with the change"
    )


def test_addresses_and_annotations_are_not_part_of_a_signature() -> None:
    def called(count: int, *, on_step: Callable[..., None] = print, named: Callable[..., str] = written, other=lambda: None) -> None: ...

    assert written(called, "called") == "called(count, *, on_step=<built-in function print>, named=written, other=<lambda>)"


def test_members_are_what_the_signature_does_not_show() -> None:
    @dataclasses.dataclass
    class Record:
        field: int
        constant: ClassVar[int] = 1
        _hidden = 2

        @property
        def double(self) -> int: ...

        @staticmethod
        def parse(text: str) -> "Record": ...

        def times(self, factor: float = 1.0) -> int: ...

    Record.__module__ = "quietbits.record"
    assert members(Record) == ["constant", "double", "parse(text)", "times(self, factor=1.0)"]


def test_the_names_are_those_of_the_stub_and_each_once() -> None:
    tree = ast.parse(Path(quietbits.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imported = [(node.module, alias) for node in tree.body for alias in node.names]
    assert sorted(alias.asname for _, alias in imported) == sorted(dir(quietbits))
    assert len(set(dir(quietbits))) == len(dir(quietbits))
    for module, alias in imported:
        # Writing a name twice re-exports it for type checkers.
        assert alias.asname == alias.name
        assert getattr(quietbits, alias.name) is getattr(sys.modules[f"quietbits.{module}"], alias.name)


def test_every_error_is_public() -> None:
    public = {name for name in dir(quietbits) if getattr(quietbits, name) is vars(errors).get(name)}
    assert public == {name for name, value in vars(errors).items() if inspect.isclass(value)}


def test_every_public_name_is_documented() -> None:
    assert [name for name in dir(quietbits) if not inspect.getdoc(getattr(quietbits, name))] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="No quietbits attribute design_laplace"):
        _ = quietbits.design_laplace


if __name__ == "__main__":
    SNAPSHOT.write_text(public_api(), encoding="utf-8")
