"""The simulation: the only place that wires models, integrators, bodies and responses together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from weft.arrays import Floats, Ints
from weft.bodies import find_contacts
from weft.bodies.shapes import Plane
from weft.collision.broad import join_meshes
from weft.collision.response import StepStart, Surroundings
from weft.errors import WeftError
from weft.geometry.contacts import PlaneContacts
from weft.geometry.mesh import Mesh
from weft.integrators import Start, check_fit
from weft.jit import threads_for
from weft.methods import PARTS, part_choice
from weft.parameters import check
from weft.scene.build import World, build_world
from weft.scene.schema import Scene
from weft.simulation.certificate import Certificate, certify
from weft.simulation.clock import StageClock
from weft.simulation.system import ClothSystem
from weft.strain import Springs, build_springs

MAX_SOLVES = 3  # of one step, while contacts change, where the response does not say
MAX_PUSHES = 3  # out of one body after another, while that pushes into the next


@dataclass
class State:
    """What moves, and all that a step depends on: a checkpoint holds exactly this."""

    positions: Floats
    """(n, 3) float64 [m]"""
    velocities: Floats
    """(n, 3) float64 [m/s]"""
    impulses: Floats
    """(n, 3) float64 [N s] that contacts exerted in the last step: friction starts from them"""
    memory: Floats
    """(k, n, 3) float64 [m/s] what the integrator remembers of the last step; k = 0 where it needs nothing"""
    step: int = 0
    """steps done since time 0"""


@dataclass(frozen=True)
class Frame:
    """One recorded moment."""

    index: int
    time: float
    positions: Floats
    velocities: Floats
    certificate: Certificate


class Simulation:
    """Runs a scene. Iterate over it to get its frames, the start included.

    >>> for frame in Simulation(load_scene("flag")):
    ...     frame.positions
    """

    def __init__(self, scene: Scene, state: State | None = None) -> None:
        self.scene = scene
        self.world: World = build_world(scene)
        self.steps_per_frame = scene.steps_per_frame or scene.parts.steps_per_frame
        self.dt = 1.0 / (scene.fps * self.steps_per_frame)
        self.clock = StageClock()
        x = self.world.positions
        self.state = state or State(x.copy(), self.world.velocities.copy(), np.zeros_like(x), np.zeros((0, *x.shape)))
        self.n_contacts = 0
        self._build_parts()

    def _build_parts(self) -> None:
        world = self.world
        n = len(world.positions)
        names: dict[str, str] = {}
        classes: dict[str, Any] = {}
        parameters: dict[str, Any] = {}
        for kind, family in PARTS.items():
            names[kind], values = part_choice(getattr(self.scene.parts, kind), kind)
            classes[kind] = family.load(names[kind])
            parameters[kind] = check(classes[kind].Parameters, values, f"method.{kind} ({names[kind]})")
        kinds = ("integrator", "model", "response")
        check_fit(*(item for kind in kinds for item in (names[kind], classes[kind])))
        cloth = join_meshes([piece.mesh for piece in world.pieces])
        self.topology = cloth.topology
        self.rest_lengths = _edge_lengths(cloth.positions, self.topology.edges)
        self.system = self._build_system(
            [classes["model"](p.mesh, p.fabric, parameters["model"]) for p in world.pieces]
        )
        self.integrator = classes["integrator"](self.system.pairs, n, parameters["integrator"])
        self.strain = classes["strain"](self._build_springs(parameters["strain"].diagonals), parameters["strain"])
        self.over_limit = 0.0
        counts = [piece.mesh.n_vertices for piece in world.pieces]
        self.clearance = np.repeat([piece.contact_distance for piece in world.pieces], counts)
        self.friction = np.repeat([piece.fabric.friction for piece in world.pieces], counts)
        self._solid = [body for body in world.bodies if not isinstance(body.shape, Plane)]
        meshes = [Mesh(*body.triangulate(0.0)) for body in self._solid]
        bodies = join_meshes(meshes) if meshes else None
        broad = partial(classes["broad"], parameters=parameters["broad"])
        surroundings = Surroundings(cloth, bodies, self.clearance, self.friction, broad)
        self.response = classes["response"](surroundings, parameters["response"])
        self.pinned = np.concatenate([group.vertices for group in world.pins] or [np.zeros(0, np.int32)])
        self._is_pinned = np.isin(np.arange(n), self.pinned)

    def _build_system(self, models: list[Any]) -> ClothSystem:
        pieces, wind = self.world.pieces, self.scene.wind
        counts = [piece.mesh.n_vertices for piece in pieces]
        drag = np.repeat([0.5 * wind.density * piece.fabric.drag for piece in pieces], counts)
        owned = [piece.vertices for piece in pieces]
        return ClothSystem(models, owned, self.world.masses, np.array(self.scene.gravity), self.topology, wind, drag)

    def _build_springs(self, diagonals: bool) -> Springs:
        each = [build_springs(piece.mesh, diagonals) for piece in self.world.pieces]
        pairs = [s.pairs + np.int32(piece.first) for s, piece in zip(each, self.world.pieces, strict=True)]
        return Springs(np.concatenate(pairs), np.concatenate([s.lengths for s in each]))

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self.state.step * self.dt

    def __iter__(self) -> Iterator[Frame]:
        return self.frames()

    def frames(self, resumed: bool = False) -> Iterator[Frame]:
        """Frames from the current one (or, `resumed`, the one after it) to the end of the scene."""
        start = self.state.step // self.steps_per_frame + int(resumed)
        for index in range(start, self.scene.n_frames + 1):
            with threads_for(len(self.state.positions)):
                while self.state.step < index * self.steps_per_frame:
                    self.step()
            yield self.frame(index)

    def frame(self, index: int) -> Frame:
        """The current state as a frame, certified as it will be recorded, in float32."""
        x, v = self.state.positions, self.state.velocities
        certificate = certify(self, self.clock.take())
        return Frame(index, index / self.scene.fps, x.copy(), v.copy(), certificate)

    def step(self) -> None:
        """Advance by one time step."""
        x, v, dt = self.state.positions, self.state.velocities, self.dt
        with self.clock("forces"):
            self.system.time = self.time
            self.integrator.begin(self.system, Start(x, v, self.state.memory), dt)
        with self.clock("contacts"):
            self.response.begin(self._step_start(x, v))
        for _ in range(getattr(self.response, "max_solves", MAX_SOLVES)):
            with self.clock("solve"):
                dv, impulses = self.integrator.solve(self.response.constraints())
            with self.clock("contacts"):
                again = self.response.update(self._contacts(x, x + dt * (v + dv)), dv, impulses)
            if not again:
                break
        self.state = self._moved(x, x + dt * (v + dv), impulses)
        self.n_contacts = self.response.n_contacts()
        if not np.isfinite(self.state.positions).all():
            raise WeftError(f"the simulation became unstable at {self.time:.4g} s; use more steps_per_frame")

    def _step_start(self, x: Floats, v: Floats) -> StepStart:
        free = x + self.dt * (v + self.dt * np.array(self.scene.gravity))
        return StepStart(
            x=x,
            v=v,
            x_free=free,
            impulses=self.state.impulses,
            contacts=self._contacts(x, free),
            pinned=self.pinned,
            pin_velocities=self._pin_velocities(x),
            bodies_t0=self._body_vertices(self.time),
            bodies_t1=self._body_vertices(self.time + self.dt),
            dt=self.dt,
        )

    def _body_vertices(self, time: float) -> Floats:
        return np.concatenate([body.triangulate(time)[0] for body in self._solid] or [np.zeros((0, 3))])

    def _contacts(self, x_t0: Floats, x_t1: Floats) -> PlaneContacts:
        return find_contacts(
            self.world.bodies, x_t0, x_t1, self.clearance, self.friction, self.time, self.time + self.dt
        )

    def _pin_velocities(self, x: Floats) -> Floats:
        targets = [group.positions(self.time + self.dt) for group in self.world.pins]
        return (np.concatenate(targets) - x[self.pinned]) / self.dt if targets else np.zeros((0, 3))

    def _moved(self, x: Floats, goal: Floats, impulses: Floats) -> State:
        """The state at the end of the step: strain limited, out of bodies, then as far as the response lets it go."""
        v_end, memory = self.integrator.end()
        v_new = v_end.copy()
        with self.clock("strain"):
            report = self.strain.apply(self.world.masses, self.pinned, self.dt, goal, v_new)
            self.over_limit = report.over_after
        with self.clock("motion"):
            self._push_out(x, goal, v_new)
            x_new = self.response.finish(goal)
            held = (x_new != goal).any(axis=1)
            v_new[held] = (x_new[held] - x[held]) / self.dt
        # What is corrected here is an impulse, not motion: it moves an integrator's past, too.
        return State(x_new, v_new, impulses, memory + (v_new - v_end), self.state.step + 1)

    def _push_out(self, x: Floats, goal_inout: Floats, v_inout: Floats) -> None:
        """Put what the solves left too near a body, in it or beyond it before the plane that its path meets first."""
        t0, t1 = self.time, self.time + self.dt
        for _ in range(MAX_PUSHES):
            pushed = 0
            for body in self.world.bodies:
                c = find_contacts([body], x, goal_inout, self.clearance, self.friction, t0, t1)
                short = -c.gaps - ((goal_inout - x)[c.vertices] * c.normals).sum(axis=1)
                deep = (short > 1e-3 * self.clearance[c.vertices]) & ~self._is_pinned[c.vertices]
                c, short = c.select(deep), short[deep]
                goal_inout[c.vertices] += short[:, None] * c.normals
                into = np.minimum(((v_inout[c.vertices] - c.velocities) * c.normals).sum(axis=1), 0.0)
                v_inout[c.vertices] -= into[:, None] * c.normals
                pushed += len(short)
            if pushed == 0:
                break

    def energy(self) -> float:
        """Kinetic, elastic and gravitational energy [J]."""
        return self.system.energy(self.state.positions, self.state.velocities)

    def stretch(self) -> Floats:
        """Strain of every edge: its length over its length at rest, minus 1."""
        return _edge_lengths(self.state.positions, self.topology.edges) / self.rest_lengths - 1.0


def _edge_lengths(x: Floats, edges: Ints) -> Floats:
    ends = x[edges]
    lengths: Floats = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    return lengths
