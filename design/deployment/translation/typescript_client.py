"""A deployment's client as an ES module, in TypeScript and JavaScript."""

from typing import TYPE_CHECKING

from .c_client import SYSTEM_WORDS, template
from .typed_program import typed_program
from .typescript_language import TypeScriptPrinter

if TYPE_CHECKING:
    from .client_description import ClientDescription


def typescript_client(description: "ClientDescription") -> dict[str, str]:
    """Return the files of the client, by path: a package without dependencies.

    ``index.js`` is the module, ``index.d.ts`` declares its types, and ``src/index.ts`` is the same module in TypeScript.
    """
    program = description.program
    functions = typed_program(program.client)
    kind = "ArrayLike<number>" if description.input == "vector" else "number"
    facts = {**description.facts(), "input_type": kind, "system_words": SYSTEM_WORDS}
    files = {path: template(f"{path}.jinja").render(**facts) for path in ("index.d.ts", "package.json")}
    for path, typed in (("index.js", False), ("src/index.ts", True)):
        printer = TypeScriptPrinter(functions, program.constants, typed=typed)
        text = printer.functions()
        files[path] = template("index.ts.jinja").render(
            **facts,
            typed=typed,
            constants=printer.constant_lines(),
            functions=text,
            client_function=printer.function_name(program.client.__name__),
            uses_select=f"{printer.operation('select', [])[:-1]}" in text,
        )
    return files
