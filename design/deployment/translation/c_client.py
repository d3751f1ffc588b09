"""A deployment's client as a C99 header."""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined, Template, select_autoescape

from .c_language import CPrinter
from .typed_program import typed_program

if TYPE_CHECKING:
    from .client_description import ClientDescription

# Number of words that a client takes from the operating system at a time.
SYSTEM_WORDS = 32


def c_client(description: "ClientDescription") -> dict[str, str]:
    """Return the files of the client in C, by path: one header without dependencies."""
    program = description.program
    prefix = description.identifier
    functions = typed_program(program.client)
    constants = dict(program.constants)
    constant_time = program.constant_time
    if constant_time is not None:
        names = {function.name for function in functions}
        functions = [*functions, *(function for function in typed_program(constant_time.client) if function.name not in names)]
        constants |= constant_time.constants
    printer = CPrinter(functions, constants, prefix)
    text = printer.functions()
    parameter, name, words = {
        "number": ("double value", "value", "a finite number; numbers outside the interval count as its nearer end"),
        "vector": ("const double *vector", "vector", f"a vector of {description.dimension} finite numbers, which is clipped to the ball"),
        "item": ("uint64_t item", "item", f"an item, from 0 to {(description.categories or 1) - 1}"),
    }[description.input]
    rendered = template("client.h.jinja").render(
        **description.facts(),
        prefix=prefix,
        constants=printer.constant_lines(),
        functions=text,
        client_function=program.client.__name__,
        constant_time_function=None if constant_time is None else constant_time.client.__name__,
        input_parameter=parameter,
        input_name=name,
        input_words=words,
        system_words=SYSTEM_WORDS,
        **{f"uses_{operation}": f"{prefix}_{operation}(" in text for operation in ("product", "sqrt", "floor", "select")},
    )
    return {f"{prefix}.h": rendered}


@cache
def template(name: str) -> Template:
    """Return a template of this folder; source code needs no HTML escapes."""
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=select_autoescape(default_for_string=False))
    return environment.from_string((files(__package__) / "templates" / name).read_text(encoding="utf-8"))
