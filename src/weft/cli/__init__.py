"""The command line: one file a command, imported when it is called.

Exit codes: 0 done, 1 the check failed, 2 bad input (one line on stderr), 130 stopped by the user.
"""

from __future__ import annotations

import signal
import sys
import threading
from typing import Any

import typer

from weft.cli import check, describe, methods, render, reproduce, run, scenes
from weft.cli.progress import stop
from weft.errors import WeftError

STOPPED = 130  # 128 + SIGINT, as shells have it

# The base of every complaint about arguments. Typer brings its own copy of click and does not export this one.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

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
app.command(epilog=reproduce.EXAMPLE)(reproduce.reproduce)


def main() -> None:
    """Run the command line; every failure the user can mend is one line."""
    arguments = sys.argv[1:] or ["--help"]
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that has seen enough, e.g. head, ends it quietly
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, stop)
    try:
        code = app(arguments, prog_name="weft", standalone_mode=False)
        if code == STOPPED:  # typer's answer to ctrl-c
            raise KeyboardInterrupt
    except WeftError as error:
        _fail(str(error), 2)
    except UsageError as error:
        _fail(_usage(error), 2)
    except (KeyboardInterrupt, typer.Abort):
        _fail("stopped; what was recorded is kept, --resume goes on" if "run" in arguments else "stopped", STOPPED)
    except OSError as error:
        _fail(f"{error.filename or 'system'}: {error.strerror or error}", 2)
    except MemoryError:
        _fail("not enough memory for this scene; use fewer vertices", 2)
    sys.exit(code if isinstance(code, int) else 0)


def _usage(error: Any) -> str:
    """What is wrong with the arguments, and which help tells more."""
    return f"{error.format_message().rstrip('.')}; see {error.ctx.command_path if error.ctx else 'weft'} --help"


def _fail(message: str, code: int) -> None:
    line = "".join(c if c.isprintable() else " " for c in message)
    sys.stderr.write(f"weft: {' '.join(line.split())}\n")
    sys.exit(code)
