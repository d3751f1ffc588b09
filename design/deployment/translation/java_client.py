"""A deployment's client as a class in Java 11."""

from typing import TYPE_CHECKING

from .c_client import template
from .java_language import JavaPrinter
from .printer import camel_case
from .typed_program import typed_program

if TYPE_CHECKING:
    from .client_description import ClientDescription

# Number of words that a client takes from SecureRandom at a time, whose time grows with their number.
SYSTEM_WORDS = 8


def java_client(description: "ClientDescription", package: str = "quietbits") -> dict[str, str]:
    """Return the files of the client in Java, by path: one class without dependencies, in a package."""
    program = description.program
    printer = JavaPrinter(typed_program(program.client), program.constants)
    text, constants = printer.functions(), printer.constant_lines()
    # The ending keeps the name apart from the classes of java.lang.
    class_name = camel_case(f"_{description.identifier}_client")
    rendered = template("Client.java.jinja").render(
        **{**description.facts(), "package": package},
        class_name=class_name,
        constants=constants,
        functions=text,
        client_function=printer.function_name(program.client.__name__),
        input_type={"number": "double", "vector": "double[]", "item": "int"}[description.input],
        system_words=SYSTEM_WORDS,
        uses_number=" number(" in text,
        uses_select="select(" in text,
        uses_words=" words(" in constants or " numbers(" in constants,
        uses_numbers=" numbers(" in constants,
    )
    return {f"{package.replace('.', '/')}/{class_name}.java": rendered}
