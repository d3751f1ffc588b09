"""A deployment's client as a Rust crate."""

import re
from typing import TYPE_CHECKING

from .c_client import SYSTEM_WORDS, template
from .rust_language import RustPrinter

if TYPE_CHECKING:
    from .client_description import ClientDescription

OPERATIONS = ("sqrt", "floor", "select")


def rust_client(description: "ClientDescription") -> dict[str, str]:
    """Return the files of the client in Rust, by path: a crate without dependencies."""
    program = description.program
    printer = RustPrinter(*description.functions_in_constant_time())
    if description.workspace:
        printer.use_workspace(program.client.__name__)
    text = printer.functions()
    facts = {
        **description.facts(),
        "crate": description.package.replace("-", "_"),
        "constants": printer.constant_lines(),
        "functions": text,
        "client_function": program.client.__name__,
        "input_parameter": {"number": "value: f64", "vector": "vector: &[f64]", "item": "item: u64"}[description.input],
        "system_words": SYSTEM_WORDS,
        **{f"uses_{operation}": re.search(rf"\b{operation}\(", text) is not None for operation in OPERATIONS},
    }
    files = {"Cargo.toml": "Cargo.toml.jinja", "src/lib.rs": "lib.rs.jinja", "src/sampler.rs": "sampler.rs.jinja"}
    if program.public_words:
        files["src/public_words.rs"] = "public_words.rs.jinja"
    return {path: template(source).render(**facts) for path, source in files.items()}
