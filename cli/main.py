"""The `quietbits` command: every subcommand parses, makes one documented call, and prints.

The commands import numpy, and modules that need it, only when they run, so that help and completion answer at once.
"""

from typing import Annotated

import typer

from .account import account_app, calibrate_app
from .audit import audit_app
from .commands import Command
from .console import OneLineErrors
from .deploy import decode_command, deploy_app, encode_command
from .design import certify_command, design_app, export_command, verify_command
from .estimate import demo_command, estimate_app
from .mechanisms import mechanisms_command
from .plan import plan_command
from .reproduce import ReproduceCommand, reproduce_command
from .simulate import simulate_app
from .sweep import sweep_command
from .table_grid import explore_command
from .train import train_command

app = typer.Typer(
    cls=OneLineErrors,
    help="Design, certify and compare mechanisms that make a client's message both private and small.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(design_app, name="design")
app.command("verify", cls=Command)(verify_command)
app.command("certify", cls=Command)(certify_command)
app.command("export", cls=Command)(export_command)
app.command("explore", cls=Command)(explore_command)
app.add_typer(deploy_app, name="deploy")
app.command("encode", cls=Command)(encode_command)
app.command("decode", cls=Command)(decode_command)
app.command("mechanisms", cls=Command)(mechanisms_command)
app.command("plan", cls=Command)(plan_command)
app.add_typer(account_app, name="account")
app.add_typer(calibrate_app, name="calibrate")
app.add_typer(simulate_app, name="simulate")
app.add_typer(audit_app, name="audit")
app.command("sweep", cls=Command)(sweep_command)
app.command("train", cls=Command)(train_command)
app.add_typer(estimate_app, name="estimate")
app.command("demo", cls=Command)(demo_command)
app.command("reproduce", cls=ReproduceCommand)(reproduce_command)


def main() -> None:
    """Run the `quietbits` command with the arguments of this process, and exit."""
    app(prog_name="quietbits")


def _print_version(wanted: bool) -> None:
    if wanted:
        from ..version import __version__

        typer.echo(f"quietbits {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)] = False,
) -> None:
    """Hold the options of the command itself; `version` ends the program when it is read."""
