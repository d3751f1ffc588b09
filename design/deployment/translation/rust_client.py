"""A deployment's client as a Rust crate."""

import re
from typing import TYPE_CHECKING

from .c_client import SYSTEM_WORDS, template
from .rust_language import RustPrinter
from .typed_program import typed_program

if TYPE_CHECKING:
    from .client_description import ClientDescription

OPERATIONS = ("sqrt", "floor", "select")


def rust_client(description: "ClientDescription") -> dict[str, str]:
    """Return the files of the client in Rust, by path: a crate without dependencies."""
    program = description.program
    functions = typed_program(program.client)
    constants = dict(program.constants)
    constant_time = program.constant_time
    if constant_time is not None:
        names = {function.name for function in functions}
        functions = [*functions, *(function for function in typed_program(constant_time.client) if function.name not in names)]
        constants |= constant_time.constants
    printer = RustPrinter(functions, constants)
    text = printer.functions()
    parameter, argument, words = {
        "number": ("value: f64", "value", "a finite number; numbers outside the interval count as its nearer end"),
        "vector": ("vector: &[f64]", "vector", f"a vector of {description.dimension} finite numbers, which is clipped to the ball"),
        "item": ("item: u64", "item", f"an item, from 0 to {(description.categories or 1) - 1}"),
    }[description.input]
    package = f"{description.identifier.replace('_', '-')}-client"
    facts = {
        **description.facts(),
        "package": package,
        "crate": package.replace("-", "_"),
        "constants": printer.constant_lines(),
        "functions": text,
        "client_function": program.client.__name__,
        "constant_time_function": None if constant_time is None else constant_time.client.__name__,
        "input_parameter": parameter,
        "input_name": argument,
        "input_words": words,
        "system_words": SYSTEM_WORDS,
        **{f"uses_{operation}": re.search(rf"\b{operation}\(", text) is not None for operation in OPERATIONS},
    }
    files = {"Cargo.toml": "Cargo.toml.jinja", "src/lib.rs": "lib.rs.jinja", "src/sampler.rs": "sampler.rs.jinja"}
    if program.public_words:
        files["src/public_words.rs"] = "public_words.rs.jinja"
    return {path: template(source).render(**facts) for path, source in files.items()}
