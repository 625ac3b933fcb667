"""Judges what steps of contacts that are solved as springs led to: by energy, edges, and what was held back.

No step of a linear solve is exact. One that stores or frees energy that nothing gave, leaves edges stretched, or could
not let vertices go where they were meant to, is solved again or halved (see `Simulation`): heaps were too dense, and
cloth jumped, where such steps were kept.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from weft.arrays import Floats, Ints
from weft.bodies import Body
from weft.bodies.shapes import Plane
from weft.geometry.edges import edge_lengths, overstretched
from weft.geometry.rows import row_products, weighted_square, weighted_way
from weft.scene.build import World
from weft.simulation.state import State
from weft.simulation.system import ClothSystem

SETTLED = 0.25  # of its limit: an edge whose strain a refinement changes by less is stretched by what pulls at it
MANY = 0.03  # of all vertices held back: a step that holds back more went wrong
SMALL_GAIN = 0.02  # of its kinetic and elastic energy: so much cloth may gain from nowhere in a step,
SMALL_SPEED = 0.05  # [m/s] and as much as this speed would give it; cloth that is slower gives it back at once,
SLOWED = 0.5  # but keeps this share of its velocity
STOPPED = 0.1  # or this one, where a shortest step threw cloth about
LOSS_KEPT = 0.1  # of the same: what it lost in steps before it may gain, but no more than this
MEMORY = 0.25  # [s] in which contacts forget what they took up
FAR = 3.0  # inertia strays where it alone would store so many times the kinetic and elastic energy


class Work(NamedTuple):
    """What was done to the cloth in a step [J], as the solve has it."""

    contacts: float
    pins: float


class Judge:
    """Judges steps of a world's cloth; `limits` (e,) are the strains from which on an edge is overstretched."""

    def __init__(
        self, world: World, system: ClothSystem, response: Any, edges: Ints, rest_lengths: Floats, limits: Floats
    ) -> None:
        self._world, self._system, self._response = world, system, response
        self._edges, self._rest, self._limits = edges, rest_lengths, limits
        self._elastic: tuple[Floats | None, float] = (None, 0.0)  # positions, and the elastic energy there

    def stored(self, state: State) -> float:
        """The elastic energy [J] of the cloth; that of the last state asked for is kept."""
        if self._elastic[0] is not state.positions:
            self._elastic = state.positions, self._system.elastic_energy(state.positions)
        return self._elastic[1]

    def strays(self, state: State, dt: float) -> bool:
        """Whether inertia alone would strain the cloth far: a solve about there goes wrong where folds meet at speed.

        Cloth that turns freely strays as far, and is solved well.
        """
        stored, moving = self.stored(state), 0.5 * weighted_square(self._world.masses, state.velocities)
        ahead = self._system.elastic_energy(state.positions + dt * state.velocities)
        return ahead - stored > FAR * (moving + stored)

    def went_wrong(
        self, before: State, after: State, work: Work, time: float, dt: float, is_pulled: bool = False
    ) -> bool:
        """Whether much was held back, edges were stretched far, or energy came that no contact, pin or wind gave.

        Where the cloth `is_pulled`, shorter steps would stretch its edges as far.

        What steps lose is booked in `after`, and a later one may take it back: a fold that turns fast stores energy in
        one step and returns it in the next. What pins and bodies do that move is theirs to give: where it was not
        counted, a step that slowly lifts the cloth was tried up to twenty-five times.
        """
        if self.holds_back(MANY):
            return True
        if not is_pulled and self.overstretches(before, after):
            return True
        return self._excess(before, after, work, time, dt) > 0.0

    def tamed(self, before: State, after: State, work: Work, time: float, dt: float) -> State:
        """`after`, slower where cloth gained energy that nothing gave it: for steps that are not tried again."""
        excess = self._excess(before, after, work, time, dt)
        if excess <= 0.0:
            return after
        return _slowed(
            after, excess / max(0.5 * weighted_square(self._world.masses, after.velocities), 1e-300), STOPPED
        )

    def _excess(self, before: State, after: State, work: Work, time: float, dt: float) -> float:
        """The energy [J] that a step gained beyond what it may; what it lost is booked in `after`."""
        masses, elastic, elastic_after = self._world.masses, self.stored(before), self.stored(after)
        moving, moving_after = (0.5 * weighted_square(masses, v) for v in (before.velocities, after.velocities))
        fallen = weighted_way(masses, before.positions, after.positions, self._system.gravity)
        body_speed = self._body_speed(before.positions, time, dt)
        pushed = body_speed * float(np.sqrt(row_products(after.impulses, after.impulses)).sum())
        pushed = min(max(work.contacts, 0.0), pushed)  # bodies that move do no more of the work of contacts
        gained = elastic_after - elastic + moving_after - moving - fallen - pushed - max(work.pins, 0.0)
        speed = max(SMALL_SPEED, body_speed, self._other_speed(time, dt))
        allowed = SMALL_GAIN * (moving + elastic) + 0.5 * float(masses.sum()) * speed**2 + before.lost
        taken = max(work.contacts - pushed, min(gained, 0.0))  # contacts take up no more than the cloth loses
        after.pressed = max(before.pressed * math.exp(-dt / MEMORY) - taken, 0.0)
        if gained > allowed:
            gained -= min(max(taken, 0.0), before.pressed)
        after.lost = min(max(before.lost - gained, 0.0), LOSS_KEPT * (moving_after + elastic_after))
        return gained - allowed

    def calmed(self, before: State, after: State, stored: float, time: float, dt: float) -> State:
        """`after`, slower where slow cloth gained energy in the step that neither contacts nor what moves gave it.

        `stored` is its elastic energy [J] before. A solve ends with an error that is more than gravity changes in a
        step of cloth that sways: draped cloth went on at 10 mm/s for ever. Solved ten times as exactly, in four times
        the iterations, it comes to rest as it does here.
        """
        masses = self._world.masses
        was_moving, moving = (0.5 * weighted_square(masses, state.velocities) for state in (before, after))
        if not 0.0 < moving < 0.5 * float(masses.sum()) * SMALL_SPEED**2:
            return after
        if max(self._body_speed(before.positions, time, dt), self._other_speed(time, dt)) > 0.0:
            return after
        fallen = weighted_way(masses, before.positions, after.positions, self._system.gravity)
        done = float(row_products(after.impulses, after.positions - before.positions).sum()) / dt
        gained = self.stored(after) - stored + moving - was_moving - fallen - max(done, 0.0)
        return after if gained <= 0.0 else _slowed(after, gained / moving, SLOWED)

    def holds_back(self, share: float) -> bool:
        """Whether more than this share of all vertices were held back: contacts did not see coming what met."""
        return bool(self._response.held_back > share * len(self._world.masses))

    def is_crowded(self, share: float) -> bool:
        """Whether contacts are springs at more than this share of all vertices."""
        return bool(self._response.n_springs > share * len(self._world.masses))

    def overstretches(self, before: State, after: State) -> bool:
        """Whether threads were stretched far: a few that are jammed, mostly, which says nothing about the next step."""
        return len(overstretched(before.positions, after.positions, self._edges, self._rest, self._limits)) > 0

    def is_pulled(self, last: State, moved: State) -> bool:
        """Whether a step that was solved again stretches edges as it did before, and nothing was held back."""
        if self.holds_back(0.0):
            return False
        change = edge_lengths(moved.positions, self._edges) - edge_lengths(last.positions, self._edges)
        return bool((np.abs(change) < SETTLED * self._limits * self._rest).all())

    def speed_of(self, body: Body, x: Floats, time: float, dt: float) -> float:
        """The largest speed [m/s] of a body in the step, that of a plane where the cloth is."""
        if body.motion is None:
            return 0.0
        points = x if isinstance(body.shape, Plane) else body.triangulate(time)[0]
        moved = body.moved(time, time + dt)
        return _longest(points @ moved[:, :3].T + moved[:, 3] - points) / dt

    def _body_speed(self, x: Floats, time: float, dt: float) -> float:
        return max((self.speed_of(body, x, time, dt) for body in self._world.bodies), default=0.0)

    def _other_speed(self, time: float, dt: float) -> float:
        """The largest speed [m/s] of pins and wind in the step."""
        ways = [group.positions(time + dt) - group.positions(time) for group in self._world.pins]
        wind = float(np.linalg.norm(self._system.wind.at(time)))
        return max([wind, *(_longest(way) / dt for way in ways)])


def _slowed(state: State, share: float, least: float) -> State:
    """The state without so much of its kinetic energy, but with no less than `least` of its velocity."""
    change = (math.sqrt(max(1.0 - share, least**2)) - 1.0) * state.velocities
    return replace(state, velocities=state.velocities + change, memory=state.memory + change)


def _longest(ways: Floats) -> float:
    return float(np.sqrt((ways**2).sum(axis=1).max(initial=0.0)))
