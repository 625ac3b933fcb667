"""The command line: one file a command, imported when it is called.

Exit codes: 0 done, 1 the check failed, 2 bad input (one line on stderr), 130 stopped by the user.
"""

from __future__ import annotations

import sys

import click
import typer

from weft.cli import check, describe, methods, render, run, scenes
from weft.errors import WeftError

app = typer.Typer(
    name="weft",
    help="Simulate cloth, certify that it never passes through itself, and draw it.",
    epilog="Start with: weft run tablecloth, then: weft render out/tablecloth -o tablecloth.png",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog=run.EXAMPLE)(run.run)
app.command(epilog=scenes.EXAMPLE)(scenes.scenes)
app.command(epilog=methods.EXAMPLE)(methods.methods)
app.command(epilog=describe.EXAMPLE)(describe.describe)
app.command(epilog=check.EXAMPLE)(check.check)
app.command(epilog=render.EXAMPLE)(render.render)


def main() -> None:
    """Run the command line; every failure the user can mend is one line."""
    try:
        code = app(standalone_mode=False)
    except WeftError as error:
        _fail(str(error), 2)
    except click.exceptions.Abort:
        _fail("stopped", 130)
    except click.ClickException as error:
        _fail(f"{error.format_message()} (see --help)", 2)
    except KeyboardInterrupt:
        _fail("stopped; what was recorded is kept, --resume goes on", 130)
    except BrokenPipeError:
        sys.exit(0)
    except MemoryError:
        _fail("not enough memory for this scene; use fewer vertices", 2)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> None:
    sys.stderr.write(f"weft: {' '.join(message.split())}\n")
    sys.exit(code)
