"""Edges that end longer than the solve meant are eased: a few vertices move, in place of one more solve for all.

Two things stretch cloth beyond what a linear solve decides. Where an edge turns by an angle a, the solve sees only what
happens along it, and it ends longer by a^2 / 2 of its length: where fine cloth meets a table's side, edges turn by half
a radian in a step. And where motion holds a vertex back, its neighbours leave without it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.arrays import Bools, Floats, Ints
from weft.geometry.edges import edge_lengths, edges_at, lengthened, lengths_along, mark_rings, overstretched
from weft.geometry.rows import differing
from weft.geometry.topology import Topology
from weft.strain.sweeps import sweep_in_order

TURNED = 0.01  # of its length at rest: an edge that is longer than meant by more is shortened,
TURN_RINGS = 3  # by moving vertices that are no more than so many edges away,
TURN_SWEEPS = 20  # in so many sweeps over the edges between these
EASED = 0.6  # of its limit: edges that are strained by more are eased where vertices were held back,
FEW = 1e-3  # of all edges, or where there are no more of them than this;
EASINGS = 8  # at most so often in a step,
THOROUGH = 2  # after so many only what is over its limit,
RINGS = 8  # by moving vertices that are no more than so many edges away,
STUBBORN = 0.1  # those that were held back by this share of what others move, and so on each time that they are,
SWEEPS = 50  # in so many sweeps


class Easing:
    """Eases the edges of cloth; `limits` (e,) are the strains from which on an edge is overstretched."""

    def __init__(
        self, topology: Topology, rest_lengths: Floats, limits: Floats, masses: Floats, is_pinned: Bools
    ) -> None:
        self._topology, self._edges = topology, topology.edges
        self._rest, self._limits = rest_lengths, limits
        self._free = ~is_pinned
        self._mobility = self._free / masses

    def unturned(self, about: Floats, goal: Floats) -> Floats:
        """`goal` (n, 3), or where edges turned far on the way there from `about`, places that give their length back.

        That is the one that a solve meant that is linear about `about`, or that at rest where it is more: what pulls at
        the cloth still stretches it.
        """
        over = lengthened(about, goal, self._edges, self._rest, TURNED)
        if len(over) == 0:
            return goal
        follows = self._around(over, TURN_RINGS)
        near = edges_at(self._edges, follows, True)  # what is outside gets no impulse
        longest = np.maximum(lengths_along(about, goal, self._edges[near]), self._rest[near])
        return self._swept(goal, near, longest, self._mobility, TURN_SWEEPS)

    def released(self, x: Floats, x_new: Floats, goal: Floats, response: Any) -> Floats:
        """`x_new`, or where edges around held-back vertices, or a few others, are stretched far, what they go back to.

        Vertices near such an edge follow the one that was held back, so far that no edge is strained by more than
        `EASED` of its limit, and as far as the response lets them: cheaper than two steps of half the length for all.
        They move towards each other, so what is before a plane stays before it. Where many are stretched and nothing
        was held back, something pulls at the cloth, and it must give way. Late attempts are only for edges over their
        limits: what is below them is not worth more. What is jammed moves less and less, and the others come to it: one
        edge that stayed over its limit took a solve for all.
        """
        readiness = np.where(differing(x_new, goal), STUBBORN, 1.0)
        for attempt in range(EASINGS):
            least = EASED if attempt < THOROUGH else 1.0
            over = overstretched(x, x_new, self._edges, self._rest, least * self._limits)
            if len(over) == 0 or (response.held_back == 0 and len(over) > FEW * len(self._edges)):
                break
            follows = self._around(over, RINGS)
            near = edges_at(self._edges, follows, False)
            longest = (1.0 + EASED * self._limits[near]) * self._rest[near]
            longest = np.maximum(longest, edge_lengths(x, self._edges[near]))
            target = self._swept(x_new, near, longest, readiness * (follows & self._free), SWEEPS)
            x_new = response.follow(target)
            readiness[differing(x_new, target)] *= STUBBORN  # what is jammed stays, and others come to it
        return x_new

    def _around(self, over: Ints, rings: int) -> Bools:
        """The vertices (n,) that may move for edges `over` the limit."""
        follows = np.zeros(len(self._free), np.bool_)
        follows[self._edges[over]] = True
        mark_rings(*self._topology.vertex_neighbours, rings, follows)
        return follows

    def _swept(self, x: Floats, near: Ints, longest: Floats, mobility: Floats, sweeps: int) -> Floats:
        x = x.copy()
        sweep_in_order(self._edges[near], np.zeros(len(near)), longest, mobility, sweeps, x)
        return x
