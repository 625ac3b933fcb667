"""The simulation: the only place that wires models, integrators, bodies and responses together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from weft.arrays import Floats, Ints
from weft.bodies.contacts import find_contacts
from weft.bodies.shapes import Plane
from weft.collision.broad import join_meshes
from weft.collision.response import MAY_TOUCH, TOUCHES, StepStart, Surroundings
from weft.errors import UnstableError, WeftError
from weft.geometry.contacts import PlaneContacts
from weft.geometry.edges import edge_lengths
from weft.geometry.mesh import Mesh, local_heights
from weft.geometry.rows import differing, drift, fall, is_finite, row_products
from weft.integrators import Start, check_fit
from weft.jit import Crew
from weft.linear.blocks import block_products
from weft.linear.springs import spring_impulses
from weft.methods import PARTS, part_choice
from weft.models.softness import edge_softness
from weft.parameters import check
from weft.scene.build import World, build_world
from weft.scene.schema import Scene
from weft.simulation.certificate import Certificate, certify
from weft.simulation.clock import StageClock
from weft.simulation.easing import Easing
from weft.simulation.judge import Judge, Work
from weft.simulation.state import State
from weft.simulation.system import ClothSystem
from weft.simulation.untangling import Untangled, refuse_cloth_inside_bodies, untangle_start
from weft.strain import Springs, build_springs

HEIGHT_SHARE = 0.7  # of the height of the triangles around: cloth keeps no larger distances,
FINE_RINGS = 2  # nor does what is so many edges away; draped, it was torn by them from 1.1 heights on
MAX_SOLVES = 3  # of one step, while contacts change, where the response does not say
LARGE_STRAIN = 0.05  # a thread stretched further, and by more than a quarter of this in one step: it was too long
MANY_LOOSE = 0.05  # of all contacts: more that may be let go are worth a rough solve first,
RELEASES = 4  # and what pulls is let go so often, at most
REFINEMENTS = 2  # of a step that went wrong, at most
NOT_FEW = 5e-4  # of all vertices: where more are held back, a step that goes wrong is not refined but halved,
SHORT = 1.0 / 120.0  # [s] if it is longer than this; if that was not for a thread,
SOME = 0.005  # or with more than so many of all vertices held back, also those after it, while inertia strays
CROWDED = 0.25  # and not few are held back, or springs are more than so many of all vertices: what hangs free may stray
SHORTEST = 1.0 / 960.0  # [s] a step shorter than this is not looked at twice
BACK = 0.5  # [m/s] at which a pin that gave way goes back to where it belongs, at most,
PRESSING = 0.02  # [m/s] and this is how much faster than twice as fast as in the last step
MAX_TURN = 30.0  # [deg] of a body in a step: a blade that turns by 150 passed cloth on its way
MAX_HALVINGS = 10  # of one step, while cloth cannot make way for bodies
MAX_PUSHES = 3  # out of one body after another, while that pushes into the next


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
        self._crew = Crew()
        x = self.world.positions
        self.state = state or State.start(x.copy(), self.world.velocities.copy())
        self.n_contacts = 0
        self.untangled: Untangled | None = None
        surroundings = self._build_parts()
        if state is None:
            gravity = float(np.linalg.norm(self.system.gravity))
            self.state.pressed = gravity * float(self.world.masses @ self.clearance)  # by what may be too near at first
            self._check_start(surroundings)

    def _build_parts(self) -> Surroundings:
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
        self.rest_lengths = edge_lengths(cloth.positions, self.topology.edges)
        self.system = self._build_system(
            [classes["model"](p.mesh, p.fabric, parameters["model"]) for p in world.pieces]
        )
        self.integrator = classes["integrator"](self.system.pairs, n, parameters["integrator"])
        self.strain = classes["strain"](self._build_springs(parameters["strain"].diagonals), parameters["strain"])
        self.over_limit = 0.0
        self._dv: Floats = np.zeros((n, 3))
        self._work = Work(0.0, 0.0)
        counts = [piece.mesh.n_vertices for piece in world.pieces]
        self.clearance = np.repeat([piece.contact_distance for piece in world.pieces], counts)
        if classes["response"].uses_springs:  # which would part neighbours in the mesh that are nearer at rest
            heights = [local_heights(piece.mesh, FINE_RINGS) for piece in world.pieces]
            self.clearance = np.minimum(self.clearance, HEIGHT_SHARE * np.concatenate(heights))
        self.friction = np.repeat([piece.fabric.friction for piece in world.pieces], counts)
        self._solid = [body for body in world.bodies if not isinstance(body.shape, Plane)]
        meshes = [Mesh(*body.triangulate(0.0)) for body in self._solid]
        bodies = join_meshes(meshes) if meshes else None
        broad = partial(classes["broad"], parameters=parameters["broad"])
        rough = [-1.0 if body.friction is None else body.friction for body in self._solid]
        body_friction = np.repeat(rough, [mesh.n_vertices for mesh in meshes])
        of = [k for k, body in enumerate(world.bodies) if not isinstance(body.shape, Plane)]
        body_of = np.repeat(np.array(of, np.int32), [mesh.n_vertices for mesh in meshes])
        surroundings = Surroundings(
            cloth, bodies, self.clearance, self.friction, body_friction, world.masses, broad, body_of
        )
        self.response = classes["response"](surroundings, parameters["response"])
        self.pinned = np.concatenate([group.vertices for group in world.pins] or [np.zeros(0, np.int32)])
        self._is_pinned = np.isin(np.arange(n), self.pinned)
        limits = LARGE_STRAIN * np.concatenate([edge_softness(p.mesh, p.fabric) for p in world.pieces])
        self.judge = Judge(world, self.system, self.response, self.topology.edges, self.rest_lengths, limits)
        self._easing = Easing(self.topology, self.rest_lengths, limits, world.masses, self._is_pinned)
        return surroundings

    def _check_start(self, surroundings: Surroundings) -> None:
        """Untangle the start where the response counts on it; else refuse only cloth inside bodies."""
        scene = self.scene
        try:
            if self.response.needs_gaps and scene.untangle != "off":
                x, self.untangled = untangle_start(
                    self.world, surroundings, self._is_pinned, scene.untangle == "partly"
                )
                if self.untangled:
                    self.state.positions = x
            else:
                refuse_cloth_inside_bodies(self.world, self._is_pinned)
        except WeftError as error:
            raise WeftError(f"{scene.source}: {error}") from None

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
        self._was_surprised = self._was_held_back = False
        stored = self.judge.stored(self.state) if self.response.uses_springs else 0.0
        with self._crew.at_work(len(self.state.positions)):
            is_wary = self.state.is_wary and self.judge.strays(self.state, self.dt)
            advance = self._advance_halves if is_wary else self._advance
            state = advance(self.state, self.time, self.dt, MAX_HALVINGS)
            if self.response.uses_springs:
                state = self.judge.calmed(self.state, state, stored, self.time, self.dt)
        is_wary = self._was_surprised or (is_wary and (self._was_held_back or self.judge.is_crowded(CROWDED)))
        self.state = replace(state, step=self.state.step + 1, is_wary=is_wary)
        self.n_contacts = self.response.n_contacts()
        if not is_finite(self.state.positions):
            raise WeftError(f"the simulation became unstable at {self.time:.4g} s; use more steps_per_frame")

    def _advance(self, state: State, time: float, dt: float, halvings: int) -> State:
        """One step of `dt`, or two of half of it where one is too long (see `_try`)."""
        if self.response.uses_springs and halvings > 0 and self._turns_far(time, dt):
            return self._advance_halves(state, time, dt, halvings)
        try:
            moved = self._try(state, time, dt)
        except UnstableError as error:
            if not self.response.uses_springs or dt < 1.5 * SHORTEST:
                raise UnstableError(f"at {time:.4g} s: {error}") from None
            moved = None
        if moved is not None:
            return moved
        if halvings == 0:
            raise WeftError(f"at {time:.4g} s the cloth is crushed: {self._crushed_where(time, dt)}")
        return self._advance_halves(state, time, dt, halvings)

    def _advance_halves(self, state: State, time: float, dt: float, halvings: int) -> State:
        half = 0.5 * dt
        # An integrator's memory belongs to steps of the same length.
        before = replace(state, memory=state.memory[:0], impulses=0.5 * state.impulses)
        middle = self._advance(before, time, half, halvings - 1)
        end = self._advance(replace(middle, memory=state.memory[:0]), time + half, half, halvings - 1)
        return replace(end, memory=state.memory[:0], impulses=middle.impulses + end.impulses)

    def _crushed_where(self, time: float, dt: float) -> str:
        """What to tell who runs into it."""
        crushed = getattr(self.response, "crushed", None)
        if crushed is None:
            return "it finds no room on its way; use more steps_per_frame"
        vertex, body = crushed
        piece = next(k for k in reversed(range(len(self.world.pieces))) if self.world.pieces[k].first <= vertex)
        name = f"vertex {vertex - self.world.pieces[piece].first} of cloth.{piece}"
        speed = self.judge.speed_of(self.world.bodies[body], self.state.positions, time, dt)
        where = self.world.bodies[body].name
        return f"{name} finds no room before {where}, which moves at {speed:.2g} m/s; let bodies close in no further"

    def _turns_far(self, time: float, dt: float) -> bool:
        """Whether a body turns by more than its surface may: in a step it goes straight from its start to its end."""
        motions = [body.motion for body in self.world.bodies]
        return any(motion is not None and motion.turned(time, time + dt) > MAX_TURN for motion in motions)

    def _try(self, state: State, time: float, dt: float) -> State | None:
        """The state after one step; None where it is too long: cloth cannot make way for a body, or it went wrong.

        The latter is asked of contacts that are solved as springs, and the step then solved again, about where it led:
        cloth that turned far is stretched less. (A sheet that buckles takes it twice.) Where not few vertices were held
        back, too, that did not help, and heaps became too dense: such a step is too long, and those after it may be.
        Where contacts missed bodies, one more solve sees them. The methods of the papers keep their steps.
        """
        x, v = state.positions, state.velocities
        with self.clock("forces"):
            self.system.time = time
            self.integrator.begin(self.system, Start(x, v, state.memory), dt)
        ahead, x_free = fall(x, v, state.falling, self.system.gravity, dt)
        with self.clock("contacts"):
            self.response.begin(
                StepStart(
                    x=x,
                    v=v,
                    ahead=ahead,
                    x_free=x_free,
                    touches=state.touches,
                    impulses=state.impulses,
                    contacts=self._contacts(x, x_free, time, dt),
                    pinned=self.pinned,
                    pin_velocities=self._pin_velocities(x, v, time, dt),
                    bodies_t0=self._body_vertices(time),
                    bodies_t1=self._body_vertices(time + dt),
                    dt=dt,
                    touching=lambda x_t1, distance: find_contacts(
                        self.world.bodies, x, x_t1, distance, self.friction, time, time + dt
                    ),
                    touching_end=lambda which, x_t0, x_t1: self._end_contacts(which, x_t0, x_t1, time + dt),
                    body_moves=np.array([body.moved(time, time + dt) for body in self.world.bodies]).reshape(-1, 3, 4),
                    is_last=dt < 1.5 * SHORTEST,
                )
            )
        goal, impulses = self._solve(x, v, time, dt)
        moved = self._moved(state, goal, impulses, time, dt)
        if moved is None or not self.response.uses_springs:
            return moved
        if dt < 1.5 * SHORTEST:
            return self.judge.tamed(state, moved, self._work, time, dt)
        went_wrong, is_whole = self.judge.went_wrong(state, moved, self._work, time, dt), dt == self.dt
        self._was_held_back |= self.judge.holds_back(NOT_FEW)
        if not went_wrong and self.response.missed_bodies:
            self._was_surprised |= is_whole and self.judge.holds_back(NOT_FEW)
            again = self._refined(state, time, dt)
            return moved if again is None or self.judge.went_wrong(state, again, self._work, time, dt) else again
        for _ in range(REFINEMENTS):
            if not went_wrong:
                return moved
            if self.judge.holds_back(NOT_FEW) and dt > 1.5 * SHORT:
                no_thread = self.judge.holds_back(SOME) or not self.judge.overstretches(state, moved)
                self._was_surprised |= is_whole and no_thread
                return None
            last, moved = moved, self._refined(state, time, dt)
            if moved is None:
                return None
            is_pulled = self.judge.is_pulled(last, moved)
            went_wrong = self.judge.went_wrong(state, moved, self._work, time, dt, is_pulled)
        return None if went_wrong else moved

    def _refined(self, state: State, time: float, dt: float) -> State | None:
        """The state after a step that is solved once more, about where it led; None where it is too long."""
        x, v = state.positions, state.velocities
        with self.clock("contacts"):
            self.response.revise(self._contacts(x, drift(x, v, self._dv, dt), time, dt), v + self._dv)
        with self.clock("solve"):
            self._dv, impulses = self.integrator.refine(self.response.constraints(), self._dv)
        return self._moved(state, drift(x, v, self._dv, dt), impulses, time, dt)

    def _contact_impulses(self) -> Floats:
        """What contacts exerted (n, 3) [N s] in the step, as springs."""
        c, dv = self.response.constraints(), self._dv
        impulses: Floats = c.impulses - block_products(c.drag, dv) - spring_impulses(c.springs, dv)
        return impulses

    def _solve(self, x: Floats, v: Floats, time: float, dt: float) -> tuple[Floats, Floats]:
        """Where the solves lead, and the impulses that constraints exerted."""
        for _ in range(getattr(self.response, "max_solves", MAX_SOLVES)):
            with self.clock("solve"):
                if self.response.uses_springs:
                    dv, impulses = self._solve_loose()
                else:
                    dv, impulses = self.integrator.solve(self.response.constraints())
            goal, self._dv = drift(x, v, dv, dt), dv
            if self.response.meets_bodies:
                break
            with self.clock("contacts"):
                if not self.response.update(self._contacts(x, goal, time, dt), dv, impulses):
                    break
        return goal, impulses

    def _solve_loose(self) -> tuple[Floats, Floats]:
        """Solve for contacts some of which are let go, taken back, or let slide, and go on from there.

        Where many may be let go, a rough solve says which first.
        """
        r, integrator = self.response, self.integrator
        is_rough = r.n_loose > MANY_LOOSE * r.n_contacts()
        dv, impulses = (integrator.try_out if is_rough else integrator.solve)(r.constraints())
        for _ in range(RELEASES):
            if not r.release(dv):
                break
            is_rough = False
            dv, impulses = integrator.solve_on(r.constraints())
        if is_rough:
            dv, impulses = integrator.solve_on(r.constraints())
        if r.slide(dv):
            dv, impulses = integrator.solve_on(r.constraints())
        return dv, impulses

    def _body_vertices(self, time: float) -> Floats:
        return np.concatenate([body.triangulate(time)[0] for body in self._solid] or [np.zeros((0, 3))])

    def _contacts(self, x_t0: Floats, x_t1: Floats, time: float, dt: float) -> PlaneContacts:
        return find_contacts(self.world.bodies, x_t0, x_t1, self.clearance, self.friction, time, time + dt)

    def _end_contacts(self, which: Ints, x_t0: Floats, x_t1: Floats, time: float) -> PlaneContacts:
        """Contacts of the vertices `which` (k,) with bodies as they stand at `time`."""
        clearance, friction = self.clearance[which], self.friction[which]
        found = find_contacts(self.world.bodies, x_t0[which], x_t1[which], clearance, friction, time, time)
        return found._replace(vertices=which[found.vertices])

    def _pin_velocities(self, x: Floats, v: Floats, time: float, dt: float) -> Floats:
        """What takes pins where they belong (p, 3) [m/s]; one that had to give way comes back no faster than `BACK`.

        The shorter the step, the faster it came: cloth whose pin was held up by a box was thrown about at 50 m/s. One
        that is stopped presses on gently: two rows of pins that blocked each other threw their cloth about for ever.
        """
        if not self.world.pins:
            return np.zeros((0, 3))
        before, after = (np.concatenate([group.positions(t) for group in self.world.pins]) for t in (time, time + dt))
        late = before - x[self.pinned]
        far = np.maximum(np.linalg.norm(late, axis=1), 1e-300)
        speed = ((v[self.pinned] - (after - before) / dt) * late).sum(axis=1) / far
        too_far = np.maximum(1.0 - dt * np.clip(2.0 * speed + PRESSING, PRESSING, BACK) / far, 0.0)
        velocities: Floats = (after - too_far[:, None] * late - x[self.pinned]) / dt
        return velocities

    def _moved(self, state: State, goal: Floats, impulses: Floats, time: float, dt: float) -> State | None:
        """The state at the end of the step: strain limited, out of bodies, then as far as the response lets it go."""
        x, v = state.positions, state.velocities
        v_end, memory = self.integrator.end()
        v_new = v_end.copy()
        with self.clock("strain"):
            if self.response.uses_springs:
                eased = self._easing.unturned(self.integrator.about, goal)
                if eased is not goal:
                    change = (eased - goal) / dt
                    v_new += change
                    self._dv, goal = self._dv + change, eased
            report = self.strain.apply(self.world.masses, self.pinned, dt, goal, v_new, x)
            self.over_limit = report.over_after
        with self.clock("motion"):
            if not self.response.meets_bodies:
                self._push_out(x, goal, v_new, time, dt)
            x_new = self.response.finish(goal, self._contacts(x, goal, time, dt))
            if x_new is None:
                return None
            if self.response.uses_springs:
                x_new = self._easing.released(x, x_new, goal, self.response)
                pins = float(row_products(impulses, x_new - x)[self.pinned].sum()) / dt
                impulses = self._contact_impulses()
                self._work = Work(float(row_products(impulses, v + self._dv).sum()), pins)
            held = differing(x_new, goal)
            v_new[held] = (x_new[held] - x[held]) / dt
            final_velocity = getattr(self.integrator, "final_velocity", None)
            if final_velocity is not None and (v_new != v_end).any():
                v_new = final_velocity(x_new)
        falling = self._falling(state.falling, v_new - v, dt)
        touches = self.response.touches if self.response.uses_springs else state.touches
        # What is corrected here is an impulse, not motion: it moves an integrator's past, too.
        memory = memory + (v_new - v_end)
        return State(x_new, v_new, impulses, memory, falling, touches, state.lost, state.pressed, state.step)

    def _falling(self, before: Floats, dv: Floats, dt: float) -> Floats:
        """The share (n,) of gravity that vertices are expected to follow in the next step.

        What lies on something would fall without it. What hangs free goes on as it did. What was to touch something and
        does not yet was perhaps held up by the cloth: less and less is expected of it, until it is let go.
        """
        g = self.system.gravity
        size = dt * float(g @ g)
        if not self.response.uses_springs or size == 0.0:
            return before
        touches = self.response.touches
        falling: Floats = np.where(touches == MAY_TOUCH, 0.5 * before, np.clip(dv @ g / size, 0.0, 1.0))
        falling[touches >= TOUCHES] = 1.0
        return falling

    def _push_out(self, x: Floats, goal_inout: Floats, v_inout: Floats, time: float, dt: float) -> None:
        """Put what the solves left too near a body, in it or beyond it before the plane that its path meets first."""
        for _ in range(MAX_PUSHES):
            pushed = 0
            for body in self.world.bodies:
                c = find_contacts([body], x, goal_inout, self.clearance, self.friction, time, time + dt)
                short = -c.gaps - ((goal_inout - x)[c.vertices] * c.normals).sum(axis=1)
                deep = (short > 1e-3 * self.clearance[c.vertices]) & ~self._is_pinned[c.vertices]
                c, short = c.select(deep), short[deep]
                goal_inout[c.vertices] += short[:, None] * c.normals
                into = np.minimum(((v_inout[c.vertices] - c.velocities) * c.normals).sum(axis=1), 0.0)
                v_inout[c.vertices] -= into[:, None] * c.normals
                pushed += len(short)
            if pushed == 0:
                break

    def pin_lag(self) -> float:
        """The largest distance [m] of a pinned vertex from where it belongs."""
        targets = [group.positions(self.time) for group in self.world.pins]
        if not targets:
            return 0.0
        return float(np.linalg.norm(self.state.positions[self.pinned] - np.concatenate(targets), axis=1).max())

    def energy(self) -> float:
        """Kinetic, elastic and gravitational energy [J]."""
        return self.system.energy(self.state.positions, self.state.velocities)

    def stretch(self) -> Floats:
        """Strain of every edge: its length over its length at rest, minus 1."""
        strain: Floats = edge_lengths(self.state.positions, self.topology.edges) / self.rest_lengths - 1.0
        return strain
