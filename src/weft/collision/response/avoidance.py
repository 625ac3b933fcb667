"""Runs of detection and response: what the two avoidance methods of Liu, Ko and Chang share.

J.-D. Liu, M.-T. Ko, R.-C. Chang, "A simple self-collision avoidance for cloth animation", Computers & Graphics 22
(1998), section 2. A step is solved without constraints; pairs of triangles that would collide on the way from time t
to the intermediate positions set limits on coordinates of their vertices; the step is solved again from the same time
t with all limits, and so on until a run finds no pair. The limits of a pair are kept from run to run, and replaced
where the pair is found again.

By eq. 13 limits in conflict shrink towards time t, at which nothing collides, by a factor each run. Ours go there
after PATIENCE runs: tables of 1 to 8 runs leave no time for a slow series.

Bodies constrain vertices as in `contact_filter`, in the same runs.

The paper does not say what happens if the runs do not end. Here the step is halved after `max_runs`, and once more.
Where that does not help, and where a vertex was pushed out of a body after the last run, vertices of the pairs that are
left go back half their way towards time t, again and again, and at last all of it. At time t no pair collides, so this
ends.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from weft.arrays import Bools, Floats, Ints, Longs
from weft.collision.response import StepStart, Surroundings
from weft.collision.response.contact_filter import ContactFilter, ContactFilterParameters
from weft.geometry.contacts import PlaneContacts
from weft.linear.constraints import Constraints
from weft.parameters import quantity

PATIENCE = 1  # runs after which the limits of a pair that is found again, or in conflict, go back to time t
FACING = 0.7  # cosine between a body's normal and an axis along which it holds a vertex
SHORTEST = 0.3  # of a step: below it, a step is not halved again
HALVINGS = 5  # of the way of a vertex before it stays where it was


class Limits(NamedTuple):
    """Limits of coordinates at the end of a step, each set by a pair of triangles."""

    pairs: Longs
    """(k,) which pair: the first triangle times 2^32, plus the second"""
    vertices: Ints
    """(k,)"""
    axes: Ints
    """(k,) 0, 1, 2 for x, y, z"""
    uppers: Bools
    """(k,) True for an upper limit"""
    values: Floats
    """(k,) [m]"""
    starts: Floats
    """(k,) [m] where the same limit stands at time t, which its vertex keeps by staying where it is"""

    def select(self, which: Bools | slice) -> Limits:
        """Some of the rows."""
        p, v, a, u, x, s = self
        return Limits(p[which], v[which], a[which], u[which], x[which], s[which])


def _joined(a: Limits, b: Limits) -> Limits:
    return Limits(*[np.concatenate(cast("Any", parts)) for parts in zip(a, b, strict=True)])


def build_limits(n: int) -> Limits:
    """Room for `n` limits."""
    vertices, axes = np.empty((2, n), np.int32)
    values, starts = np.empty((2, n))
    return Limits(np.empty(n, np.int64), vertices, axes, np.empty(n, np.bool_), values, starts)


@dataclass
class RunCounts:
    """What a simulation has cost so far, in the terms of the paper's tables."""

    steps: int = 0
    runs: int = 0
    """detection phases, the last of each step included: 1 for a step without collisions"""
    most_runs: int = 0
    pairs: int = 0
    """pairs of triangles that collided in a first run"""
    box_tests: int = 0
    halved: int = 0
    """steps given up because the runs did not end, each for two of half the length"""
    unfinished: int = 0
    """steps in which vertices had to go back"""
    went_back: int = 0
    """vertices that did"""
    seconds: float = 0.0
    """of processor time in detection: finding the pairs that collide, without the limits that they set"""


class AvoidanceParameters(ContactFilterParameters):
    """When runs stop."""

    max_runs: int = quantity("runs of detection and response in one step, at most", default=20, ge=1, le=1000)


class Avoidance:
    """Base of the members. A member adds `_colliding` and `_limits_of`.

    Attributes
    ----------
    counts : since the start
    """

    Parameters: ClassVar[type[Any]]
    uses_springs = False
    meets_bodies = False
    needs_gaps = False
    needs_limits = True

    def __init__(self, surroundings: Surroundings, parameters: Any = None) -> None:
        self.parameters = parameters or self.Parameters()
        self._filter = ContactFilter(surroundings, self.parameters)
        self._mesh = surroundings.cloth
        self.counts = RunCounts()
        self.max_solves = self.parameters.max_runs
        self._longest = 0.0

    def begin(self, start: StepStart) -> None:
        self._filter.begin(start)
        self._start = start
        self._longest = max(self._longest, start.dt)
        self._limits = build_limits(0)
        self._runs = 0
        self._clear: Floats | None = None
        self.counts.steps += 1

    def constraints(self) -> Constraints:
        lower, upper = self._intervals()
        vertices, normals = self._filter.held()
        for d in range(3):  # a vertex on a body may be lifted off it, not pressed into it
            upper[vertices[normals[:, d] > FACING], d] = np.inf
            lower[vertices[normals[:, d] < -FACING], d] = -np.inf
        return self._filter.constraints()._replace(lower=lower, upper=upper)

    def update(self, contacts: PlaneContacts, dv: Floats, impulses: Floats) -> bool:
        again = self._filter.update(contacts, dv, impulses)
        x_t1 = self._start.x + self._start.dt * (self._start.v + dv)
        found = self._detect(x_t1)
        self._runs += 1
        self.counts.runs += 1
        self.counts.most_runs = max(self.counts.most_runs, self._runs)
        if self._runs == 1:
            self.counts.pairs += len(np.unique(found.pairs))
        if len(found.pairs) == 0:
            self._clear = x_t1
            return again
        if self._runs > PATIENCE:
            stubborn = np.isin(found.pairs, self._limits.pairs)
            found.values[stubborn] = found.starts[stubborn]
        kept = ~np.isin(self._limits.pairs, found.pairs)
        self._limits = _joined(self._limits.select(kept), found)
        if self._runs > 1:
            self._settle_conflicts()
        return True

    def finish(self, x_t1: Floats, contacts: PlaneContacts) -> Floats | None:
        if self._clear is not None and np.array_equal(self._clear, x_t1):
            return x_t1
        if self._clear is None and self._start.dt > SHORTEST * self._longest:
            self.counts.halved += 1
            return None
        x, goal = self._start.x, x_t1.copy()
        way = x_t1 - x
        halvings = np.zeros(len(x), np.int64)
        while len(found := self._detect(goal).vertices):
            back = np.unique(found)
            halvings[back] += 1
            share = np.where(halvings[back] > HALVINGS, 0.0, 0.5 ** halvings[back])
            goal[back] = x[back] + share[:, None] * way[back]
            if (halvings[back] > HALVINGS + 1).all():  # they have not moved: nothing can be done about these
                break
        self.counts.unfinished += int(halvings.any())
        self.counts.went_back += int((halvings > 0).sum())
        return goal

    def n_contacts(self) -> int:
        return self._filter.n_contacts() + len(np.unique(self._limits.pairs))

    def _detect(self, x_t1: Floats) -> Limits:
        """The limits of all pairs that collide on the way to `x_t1`."""
        start = time.process_time()
        pairs = self._colliding(x_t1)
        self.counts.seconds += time.process_time() - start
        return self._limits_of(pairs, x_t1)

    def _colliding(self, x_t1: Floats) -> Ints:
        """(k, 2): the pairs of triangles without a common vertex that collide on the way to `x_t1`.

        Adds to `counts.box_tests`.
        """
        raise NotImplementedError

    def _limits_of(self, pairs: Ints, x_t1: Floats) -> Limits:
        """The limits that these pairs set. A pair may set none."""
        raise NotImplementedError

    def _settle_conflicts(self) -> None:
        """Move the limits of all pairs at a coordinate in conflict back to time t, where none conflict: half way first.

        Eq. 13 has both limits shrink because both pairs go on colliding. But a vertex that is pressed against one of
        them is clear of that pair, which would keep its limit for ever.
        """
        limits = self._limits
        lower, upper = self._extremes()
        conflict = (lower > upper).ravel()[3 * limits.vertices.astype(np.int64) + limits.axes]
        moved = np.isin(limits.pairs, limits.pairs[conflict])
        share = 0.5 if self._runs <= PATIENCE else 1.0
        limits.values[moved] += share * (limits.starts[moved] - limits.values[moved])

    def _intervals(self) -> tuple[Floats, Floats]:
        """Eq. 10: the interval of every coordinate; between its limits, too, where they conflict.

        Its place at time t always belongs to it: a limit may stop a vertex, not push it. With limits that push, a pile
        at rest gained energy.
        """
        lower, upper = self._extremes()
        x = self._start.x
        return np.minimum(np.minimum(lower, upper), x), np.maximum(np.maximum(lower, upper), x)

    def _extremes(self) -> tuple[Floats, Floats]:
        """The highest lower and the lowest upper limit of every coordinate, (n, 3) each."""
        n, limits = len(self._start.x), self._limits
        place = 3 * limits.vertices.astype(np.int64) + limits.axes
        lower, upper = np.full(3 * n, -np.inf), np.full(3 * n, np.inf)
        np.minimum.at(upper, place[limits.uppers], limits.values[limits.uppers])
        np.maximum.at(lower, place[~limits.uppers], limits.values[~limits.uppers])
        return lower.reshape(n, 3), upper.reshape(n, 3)
