"""A deployment's client as a C99 header."""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined, Template, select_autoescape

from .c_language import CPrinter

if TYPE_CHECKING:
    from .client_description import ClientDescription

# Number of words that a client takes from the operating system at a time.
SYSTEM_WORDS = 32


def c_client(description: "ClientDescription") -> dict[str, str]:
    """Return the files of the client in C, by path: one header without dependencies."""
    program = description.program
    prefix = description.identifier
    functions, constants = description.functions_in_constant_time()
    printer = CPrinter(functions, constants, prefix)
    if description.workspace:
        printer.use_workspace(program.client.__name__)
    text = printer.functions()
    rendered = template("client.h.jinja").render(
        **description.facts(),
        prefix=prefix,
        constants=printer.constant_lines(),
        functions=text,
        client_function=program.client.__name__,
        input_parameter={"number": "double value", "vector": "const double *vector", "item": "uint64_t item"}[description.input],
        system_words=SYSTEM_WORDS,
        **{f"uses_{operation}": f"{prefix}_{operation}(" in text for operation in ("product", "sqrt", "floor", "select")},
    )
    return {f"{prefix}.h": rendered}


@cache
def template(name: str) -> Template:
    """Return a template of this folder; source code needs no HTML escapes."""
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=select_autoescape(default_for_string=False))
    return environment.from_string((files(__package__) / "templates" / name).read_text(encoding="utf-8"))
