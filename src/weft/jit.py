"""The one kernel decorator, the on-disk cache behind it, and the number of threads.

Importing this module imports numba (about a second), so only kernel files import it, and those are imported when a
simulation or a test needs them: `weft --help` and `weft scenes` never do.

Numba's own cache does not see an edit in a helper of another file. The cache folder is therefore named by a hash of
every kernel source: after any edit all kernels are compiled once more, and nobody ever debugs a stale one.

Numba counts who refers to an array, atomically, and threads that count the same array in a loop wait for each other:
the search for pairs took twice as long for it. So kernels that make no array do not count. Parallel ones do: take
arrays out of a tuple before their loops.

Beware: in a loop over `prange`, numba (0.68) drops what is written to an array at the loop's own index if the array is
part of a tuple and nothing in the kernel reads it afterwards. Pass such an array by itself.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast, overload

from weft.errors import WeftError

ROWS_PER_THREAD = 1000  # to pay for waking a thread
BUSY = 1.2  # processor time over time: less than this on several threads is no help
SLOW_STEPS = 2  # in a row, for a first one may have to compile,
STEPS_ALONE = 60  # after which so many run on one thread before more are tried again, and twice as many each time that
MOST_STEPS_ALONE = 960  # they do not help then, but no more than this
STALE_CACHE_DAYS = 30  # a cache folder of other sources that nobody used for this long is removed


def requested_threads() -> int | None:
    """The number of threads in WEFT_THREADS, or None where it is not set."""
    text = os.environ.get("WEFT_THREADS", "").strip()
    if not text:
        return None
    if text not in [str(n) for n in range(1, 257)]:
        raise WeftError(f"WEFT_THREADS: expected a whole number from 1 to 256, got {text!r}")
    return int(text)


_threads = requested_threads()
# Waking a thread that sleeps takes as long as a small kernel, about 0.1 ms, and it falls asleep while Python prepares
# the next one: with 2000 turns of waiting before it does, frames of cloth of 51 x 51 vertices took 11.5 ms on two idle
# cores, with 50000 (a millisecond) 9.5, on one thread 13. One that waits awake keeps others from its core, the very
# thread that it waits for among them: with a core busy, frames took 150 ms and more, which `Crew` sees.
os.environ.setdefault("GOMP_SPINCOUNT", "50000")
# Numba fixes its largest thread count at import; leave room for more threads than cores, so that
# "the same bits for any number of threads" can be checked on any machine. A child process inherits the limit of its
# parent, and may raise it.
_limit = os.environ.get("NUMBA_NUM_THREADS", "")
os.environ["NUMBA_NUM_THREADS"] = str(max(int(_limit) if _limit.isdecimal() else os.cpu_count() or 1, _threads or 1))

import numba  # noqa: E402
from numba import config, prange  # noqa: E402
from numba.core import event  # noqa: E402

__all__ = ["Crew", "kernel", "prange", "set_threads", "threads", "threads_for"]

F = TypeVar("F", bound=Callable[..., Any])
_ARRAY = re.compile(r"Floats|Ints|Longs|Bools|Bytes|Lanes|Boxes|NDArray")


def set_threads(n: int | None) -> None:
    """Use `n` threads in parallel kernels (None: all cores). Results are bitwise the same for any number."""
    limit = config.NUMBA_NUM_THREADS
    if n is not None and not 1 <= n <= limit:
        raise WeftError(
            f"threads: expected 1 to {limit}, got {n} (set WEFT_THREADS before Python starts to allow more)"
        )
    numba.set_num_threads(n or min(limit, os.cpu_count() or 1))


def threads() -> int:
    """The number of threads that parallel kernels use now."""
    return int(numba.get_num_threads())


@contextmanager
def threads_for(rows: int) -> Iterator[None]:
    """Use no more threads than `rows` of work can feed: waiting for a thread costs more than a few thousand rows."""
    before = threads()
    wanted = max(1, min(before, rows // ROWS_PER_THREAD))
    if wanted == before:
        yield
        return
    numba.set_num_threads(wanted)
    try:
        yield
    finally:
        numba.set_num_threads(before)


class Crew:
    """Decides from step to step whether more threads than one help. Results are the same; only time is at stake.

    On a machine that is busy with other work threads wait for each other: all of them together then get no further than
    one, or far less. That shows in the processor time of the process, which hardly exceeds the time that went by.
    """

    def __init__(self) -> None:
        self._slow = self._alone = 0
        self._next_alone = STEPS_ALONE

    @contextmanager
    def at_work(self, rows: int) -> Iterator[None]:
        """Use the threads that `rows` of work can feed, or one where more did not help in the last steps."""
        with threads_for(0 if self._alone > 0 else rows):
            wall, cpu, n = time.perf_counter(), time.process_time(), threads()
            yield
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        self._alone = max(0, self._alone - 1)
        if n == 1:
            return
        if cpu >= BUSY * wall:
            self._slow, self._next_alone = 0, STEPS_ALONE
            return
        self._slow += 1
        if self._slow >= SLOW_STEPS:
            self._alone = self._next_alone
            self._next_alone = min(2 * self._next_alone, MOST_STEPS_ALONE)


def _source_hash() -> str:
    """A hash of every file of the package that holds kernels, and of the Python and numba that compile them."""
    package = Path(__file__).parent
    digest = hashlib.sha256(f"{sys.version_info[:3]} {numba.__version__}".encode())
    for path in sorted(package.rglob("*.py")):
        text = path.read_bytes()
        if b"@kernel" in text:
            digest.update(str(path.relative_to(package)).encode() + b"\0" + text)
    return digest.hexdigest()[:16]


def _cache_folder() -> Path:
    """The folder for compiled kernels, made if needed; a temporary one where no user cache can be written."""
    import platformdirs

    root = Path(os.environ.get("WEFT_CACHE_DIR") or platformdirs.user_cache_dir("weft", appauthor=False))
    folder = root / f"kernels-{_source_hash()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        for other in root.glob("kernels-*"):
            if time.time() - other.stat().st_mtime > STALE_CACHE_DAYS * 86400:
                shutil.rmtree(other, ignore_errors=True)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="weft-kernels-"))
        sys.stderr.write(f"weft: {root} cannot be written; kernels compile for this run only (set WEFT_CACHE_DIR)\n")
    return folder


config.CACHE_DIR = str(_cache_folder())
_kernels: list[Any] = []


class _CompilationLine(event.Listener):  # type: ignore[misc]  # numba is untyped
    """Keeps one line on a terminal up to date while kernels compile: "compiling kernels, once: 12/31".

    The total counts the kernels of the modules loaded so far. Numba raises the event only for a real compilation, so
    nothing is printed when the cache is warm.
    """

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.depth = 0

    def on_start(self, event: Any) -> None:
        self.depth += 1
        self.seen.add(id(event.data["dispatcher"]))
        self._write(f"compiling kernels, once: {len(self.seen)}/{max(len(_kernels), len(self.seen))}")

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self._write("")

    def _write(self, text: str) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K{text}")
            sys.stderr.flush()


event.register("numba:compile", _CompilationLine())


@overload
def kernel(function: F) -> F: ...
@overload
def kernel(*, parallel: bool = False, inline: bool = False, allocates: bool = False) -> Callable[[F], F]: ...
def kernel(
    function: F | None = None, *, parallel: bool = False, inline: bool = False, allocates: bool = False
) -> F | Callable[[F], F]:
    """Compile a function over arrays. `@kernel`, or `@kernel(parallel=True)` where it loops with `prange`.

    `@kernel(inline=True)` is for the small ones in the innermost loops: they become part of every kernel that calls
    them. A call hands over nine numbers for each array, and LLVM does not always see that it is not worth it.

    `@kernel(allocates=True)` is for those that make arrays, or call a kernel that returns one. The others do not count
    who refers to an array (see the module), as parallel ones do.

    No fastmath: NaN checks and the error bounds of the predicates must survive. A parallel kernel writes only rows
    that its own iteration owns, so that results do not depend on the number of threads.
    """

    def compile_lazily(f: F) -> F:
        counts = parallel or allocates
        if not counts and _ARRAY.search(str(f.__annotations__.get("return"))):
            raise TypeError(f"{f.__name__} returns an array: @kernel(allocates=True)")
        dispatcher = numba.njit(
            cache=True, nogil=True, error_model="numpy", parallel=parallel, forceinline=inline, _nrt=counts
        )(f)
        _kernels.append(dispatcher)
        return cast(F, dispatcher)

    return compile_lazily(function) if function is not None else compile_lazily


set_threads(_threads)
