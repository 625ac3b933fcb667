"""Kernels on several threads without a parallel loop inside them.

Kernels release the interpreter's lock, so a pool of plain threads runs them side by side. A parallel kernel would do
the same for two to four seconds more of compilation each, and would share the rows out once for all: here a thread
that is done takes the next band, wherever the cloth is in the picture.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

from weft.jit import threads


def run_bands(job: Callable[[int, int], object], n_rows: int, n_bands: int) -> None:
    """Cut rows 0 to n_rows into bands and call `job(first, last)` for each, on as many threads as kernels may use.

    A job writes only what belongs to its own rows, so the result does not depend on the number of threads.
    """
    ends = [band * n_rows // n_bands for band in range(n_bands + 1)]
    bands = [(first, last) for first, last in pairwise(ends) if first < last]
    workers = min(threads(), len(bands))
    if workers <= 1:
        for first, last in bands:
            job(first, last)
        return
    with ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(job, first, last) for first, last in bands]:
            future.result()
