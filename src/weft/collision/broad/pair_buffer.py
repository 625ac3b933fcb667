"""Rows of pairs, written by a fixed number of chunks and merged in order.

The chunks are the same for any number of threads, so the merged rows are too. Each chunk owns a stretch of one
buffer. A chunk that finds more rows than its stretch holds goes on counting without writing; the stretches then grow
and the search runs once more. No pair is ever dropped. What is dense moves from chunk to chunk as cloth falls, so all
stretches grow to what the fullest chunk needs: where each grew by itself, every search of a collapsing sheet ran twice.
Memory that is never written costs nothing. The constants here are compiled into every `@kernel` that fills a buffer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weft.arrays import Ints, Longs
from weft.jit import kernel, prange, threads_for

N_CHUNKS = 64
ROWS_EXPECTED = 8  # for each primitive, before the first search has told better
HEADROOM = 1.5  # times what a search has found is room for the next ones,
FULLEST = 8.0  # and no chunk gets more room for what another holds than so many times what they hold on average
STRIDE = 29  # coprime to N_CHUNKS: neighbouring iterations, which one thread runs, then take chunks far apart


@kernel(parallel=True)
def merge_rows(starts: Longs, rows: Ints, counts: Longs, merged_out: Ints) -> None:
    """Overwrite `merged_out` with the rows of all chunks, in order."""
    ends = np.cumsum(counts)
    for chunk in prange(counts.shape[0]):
        first, at = starts[chunk], ends[chunk] - counts[chunk]
        for k in range(counts[chunk]):
            merged_out[at + k, 0], merged_out[at + k, 1] = rows[first + k, 0], rows[first + k, 1]


class PairBuffer:
    """A growing buffer of (k, 2) int32 rows for one kind of search among about `n_primitives`."""

    def __init__(self, n_primitives: int = 0) -> None:
        self.n_primitives = n_primitives
        self.counts = np.zeros(N_CHUNKS, np.int64)
        self._resize(np.full(N_CHUNKS, ROWS_EXPECTED * n_primitives // N_CHUNKS + 64, np.int64))

    def _resize(self, capacities: Longs) -> None:
        self.starts = np.zeros(N_CHUNKS + 1, np.int64)
        np.cumsum(capacities, out=self.starts[1:])
        self.rows = np.empty((int(self.starts[-1]), 2), np.int32)

    def fill(self, search: Callable[[Longs, Ints, Longs], None]) -> Ints:
        """Run `search(starts, rows_out, counts_out)` until everything fits; return the merged rows as a new array."""
        with threads_for(self.n_primitives):
            search(self.starts, self.rows, self.counts)
            capacities = np.diff(self.starts)
            if (self.counts > capacities).any():
                most = np.maximum(self.counts, min(self.counts.max(), FULLEST * self.counts.mean()))
                self._resize(np.maximum(capacities, (HEADROOM * most).astype(np.int64) + 64))
                search(self.starts, self.rows, self.counts)
            merged = np.empty((int(self.counts.sum()), 2), np.int32)
            merge_rows(self.starts, self.rows, self.counts, merged)
        return merged

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes
