"""Connections between two vertices that push or pull along their line, whatever the law of the force.

With e = x_j - x_i of length l and n = e / l, a tension T(l) pulls i by T n and j by -T n. Its stiffness block is
-(dT/dl n n^T + T / l (I - n n^T)); a damper c adds T = c n . (v_j - v_i).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from weft.arrays import Floats, Ints


class Stretch(NamedTuple):
    """Connections in one state."""

    lengths: Floats
    """(p,) [m]"""
    directions: Floats
    """(p, 3) from the first end to the second; 0 where they coincide"""


class Connections:
    """A list of pairs, gathered by vertex: sums run in the order of pairs, the same bits each time."""

    def __init__(self, pairs: Ints, n_vertices: int) -> None:
        self.pairs: Ints = np.ascontiguousarray(pairs, np.int32)
        p = len(self.pairs)
        columns = np.arange(p)
        ends = np.concatenate([self.pairs[:, 0], self.pairs[:, 1]])
        signs = np.repeat([1.0, -1.0], p)
        self._gather = sparse.csr_array((signs, (ends, np.tile(columns, 2))), shape=(n_vertices, p))

    def stretch(self, x: Floats) -> Stretch:
        edges = x[self.pairs[:, 1]] - x[self.pairs[:, 0]]
        lengths = np.sqrt((edges**2).sum(axis=1))
        return Stretch(lengths, edges / np.where(lengths > 0.0, lengths, 1.0)[:, None])

    def rates(self, v: Floats, directions: Floats) -> Floats:
        """How fast each connection grows (p,) [m/s]."""
        rates: Floats = ((v[self.pairs[:, 1]] - v[self.pairs[:, 0]]) * directions).sum(axis=1)
        return rates

    def add_tensions(self, tensions: Floats, directions: Floats, forces_out: Floats) -> None:
        """Add the pull of `tensions` (p,) [N] to `forces_out` (n, 3)."""
        forces_out += self._gather @ (tensions[:, None] * directions)


def axial_blocks(directions: Floats, along: Floats, across: Floats | float = 0.0) -> Floats:
    """Blocks (p, 3, 3): -(along n n^T + across (I - n n^T))."""
    blocks: Floats = (across - along)[:, None, None] * directions[:, :, None] * directions[:, None, :]
    diagonal = np.arange(3)
    blocks[:, diagonal, diagonal] -= np.broadcast_to(across, along.shape)[:, None]
    return blocks
