"""One step as a whole: pins, bodies that nothing passes, and the promise about threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from weft.errors import UnstableError, WeftError
from weft.jit import threads_for
from weft.scene.schema import Scene
from weft.simulation import simulation as module
from weft.simulation.judge import Judge
from weft.simulation.simulation import Simulation

PLATE = {"box": {"size": [1.0, 1.0, 0.001]}}
WIND = {"velocity": [3.0, 0.0, 0.0], "gust": 0.5}
LOOSE = {"response": "contact_filter", "integrator": {"name": "implicit_euler", "tolerance": 0.5}}


@pytest.fixture(autouse=True)
def _one_thread():
    with threads_for(1):
        yield


def build(cloth=None, **scene):
    """A small cloth above the origin; contacts as constraints, unless `scene` says otherwise."""
    grid = {"size": [0.4, 0.4], "vertices": [9, 9], "center": [0, 0, 0.1]}
    grid["ripples"] = [{"amplitude": 0.02, "waves": [1.5, 0.5]}]
    values = {"name": "step", "method": {"response": "contact_filter"}, "cloth": [{"grid": grid, **(cloth or {})}]}
    return Simulation(Scene.model_validate({**values, **scene}))


def local(simulation):
    """Positions in the frame of the first body, a plate."""
    return simulation.world.bodies[0].pose(simulation.time).to_local(simulation.state.positions)


def step_and_count_crossings(simulation):
    """How many vertices end a step inside the plate or, straight in its frame, have gone through it."""
    before = local(simulation)
    simulation.step()
    after = local(simulation)
    half = 0.5 * np.array(simulation.world.bodies[0].shape.size)
    turned = np.sign(before[:, 2]) != np.sign(after[:, 2])
    s = np.divide(before[:, 2], before[:, 2] - after[:, 2], out=np.zeros(len(before)), where=turned)
    at = before + s[:, None] * (after - before)
    through = turned & (np.abs(at[:, :2]) < half[:2]).all(axis=1)
    return int((through | (np.abs(after) < half).all(axis=1)).sum())


@pytest.mark.parametrize("speed", [1.0, 30.0, 1000.0])
def test_no_speed_takes_cloth_through_a_plate(speed):
    simulation = build({"velocity": [0.0, 0.0, -speed]}, collider=[PLATE])
    for _ in range(10):
        assert step_and_count_crossings(simulation) == 0


@pytest.mark.parametrize("first", ["plate", "floor"])
def test_cloth_stays_on_a_plate_just_above_a_floor(first):
    """Both are on the way of every vertex within one step; the plate is the first."""
    bodies = {"plate": PLATE, "floor": {"plane": {"center": [0, 0, -0.004]}}}
    order = [first, *(name for name in bodies if name != first)]
    simulation = build({"velocity": [0.0, 0.0, -10.0]}, collider=[bodies[name] for name in order])
    for _ in range(5):
        simulation.step()
    assert simulation.state.positions[:, 2].min() > 0.0005


@pytest.mark.parametrize("speed", [2.0, 50.0, 500.0])
def test_a_plate_that_moves_takes_cloth_along(speed):
    motion = {"keyframes": [{"time": 0.0}, {"time": 1.0, "move": [0.0, 0.0, speed]}]}
    simulation = build(collider=[{**PLATE, "motion": motion}])
    for _ in range(10):
        assert step_and_count_crossings(simulation) == 0
    pushed = np.abs(local(simulation)[:, 2]) < 0.015
    assert pushed.any()
    up = simulation.state.velocities[pushed, 2]
    assert np.median(up) == pytest.approx(speed, rel=0.05)
    assert up.min() > 0.5 * speed, "some have just come near"


@pytest.mark.parametrize("degrees", [600.0, 6000.0])
def test_a_plate_that_turns_sweeps_cloth_along(degrees):
    """Up to 50 degrees a step."""
    motion = {"keyframes": [{"time": 0.0}, {"time": 1.0, "turn": [degrees, 0.0, 0.0]}]}
    simulation = build(collider=[{**PLATE, "motion": motion}], gravity=[0.0, 0.0, 0.0], wind={"density": 0.0})
    for _ in range(20):
        assert step_and_count_crossings(simulation) == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_no_plate_is_passed_however_it_moves(seed):
    """Plates at random, thrown and turned at random, for a second: up to 30 m/s and 6 turns a second."""
    rng = np.random.default_rng(seed)
    keyframes = [{"time": 0.0}]
    for time in (0.25, 0.5, 0.75, 1.0):
        move, turn = rng.normal(scale=1.5, size=3), rng.normal(scale=200.0, size=3)
        keyframes.append({"time": time, "move": list(move), "turn": list(turn)})
    box = {"size": [*rng.uniform(0.3, 1.5, 2), 0.001], "center": [0, 0, -0.3]}
    plate = {"box": box, "turn": list(rng.uniform(-20, 20, 3)), "motion": {"keyframes": keyframes}}
    simulation = build({"velocity": list(rng.normal(scale=3.0, size=3))}, collider=[plate])
    for _ in range(120):
        assert step_and_count_crossings(simulation) == 0


def test_what_the_last_solve_sends_through_a_plate_is_stopped(monkeypatch):
    """With one solve a step, contacts that only its outcome meets cannot be constrained: they must not pass either.

    A cloth pulled down by its far corners, pinned below the plate and beyond its rim, is stretched over it.
    """
    monkeypatch.setattr(module, "MAX_SOLVES", 1)
    small = {"box": {"size": [0.3, 0.3, 0.001]}}
    keyframes = [{"time": 0.0}, {"time": 0.05, "move": [0.0, 0.0, -0.4]}]
    pins = [{"where": "corners", "motion": {"keyframes": keyframes}}]
    simulation = build({"pins": pins}, collider=[small])
    for _ in range(10):
        assert step_and_count_crossings(simulation) == 0


def test_correction_leaves_the_velocity_of_the_body(monkeypatch):
    """What is pushed out of a moving body moves with it: its velocity is not below the body's."""
    monkeypatch.setattr(module, "MAX_SOLVES", 1)
    motion = {"keyframes": [{"time": 0.0}, {"time": 1.0, "move": [0.0, 0.0, 3.0]}]}
    simulation = build(collider=[{**PLATE, "motion": motion}])
    x, v = simulation.state.positions, np.tile([0.5, 0.0, -20.0], (81, 1))
    none = np.zeros((0, *x.shape))
    monkeypatch.setattr(simulation.integrator, "end", lambda: (v, none))
    dt = simulation.dt
    state = simulation._moved(simulation.state, x + dt * v, np.zeros_like(x), 0.0, dt)
    hit = (x[:, 2] - 20.0 * simulation.dt) < 0.0
    assert hit.sum() > 40
    np.testing.assert_allclose(state.velocities[hit], np.tile([0.5, 0.0, 3.0], (hit.sum(), 1)), atol=1e-9)
    assert state.positions[:, 2].min() > 3.0 * simulation.dt


def test_pins_go_exactly_where_their_keyframes_say():
    keyframes = [{"time": 0.0}, {"time": 0.1, "move": [0.3, -0.1, 0.2], "turn": [0.0, 0.0, 90.0]}]
    simulation = build({"pins": [{"where": "corners", "motion": {"keyframes": keyframes}}]}, collider=[PLATE])
    group = simulation.world.pins[0]
    for _ in range(15):
        simulation.step()
        wanted = group.positions(simulation.time)
        np.testing.assert_allclose(simulation.state.positions[group.vertices], wanted, atol=1e-15)
    np.testing.assert_allclose(simulation.state.velocities[group.vertices], 0.0, atol=1e-12)


def test_two_cloths_step_as_each_would_alone():
    """Forces, pairs and pins of several pieces land on their own vertices."""
    grid = {"size": [0.4, 0.3], "vertices": [7, 6], "plane": "xz"}
    one = {"grid": {**grid, "center": [0, 0, 1]}, "pins": [{"where": "top"}], "fabric": "silk"}
    two = {"grid": {**grid, "center": [3, 0, 1], "vertices": [5, 9]}, "pins": [{"where": "left"}], "fabric": "denim"}
    exact = {"response": "contact_filter", "integrator": {"name": "implicit_euler", "tolerance": 1e-12}}
    runs = []
    for cloth in ([one, two], [one], [two]):
        simulation = Simulation(Scene.model_validate({"name": "step", "method": exact, "cloth": cloth}))
        for _ in range(10):
            simulation.step()
        runs.append(simulation.state)
    both, first, second = runs
    for kind in ("positions", "velocities"):
        alone = np.concatenate([getattr(first, kind), getattr(second, kind)])
        np.testing.assert_allclose(getattr(both, kind), alone, atol=1e-8)


def test_energy_is_kinetic_elastic_and_gravitational():
    simulation = build({"velocity": [1.0, 2.0, 2.0]}, gravity=[0.0, 0.0, -10.0])
    mass = simulation.world.masses.sum()
    assert mass == pytest.approx(0.15 * 0.16)
    moved = simulation.energy()
    simulation.state.velocities[:] = 0.0
    assert moved - simulation.energy() == pytest.approx(0.5 * mass * 9.0)
    resting = simulation.energy()
    simulation.state.positions[:, 2] += 2.0
    assert simulation.energy() - resting == pytest.approx(mass * 10.0 * 2.0)


def going(*way):
    """A motion along `way` in a second."""
    return {"keyframes": [{"time": 0.0}, {"time": 1.0, "move": list(way)}]}


LYING, HANGING = {"center": [0, 0, 0.02]}, {"center": [0, 0, 0.5], "plane": "xz"}
BLOCK = {"box": {"size": [1.0, 1.0, 0.1], "center": [0, 0, -0.05]}}
SLOW = {  # where the cloth is at first, its pins, and bodies
    "a floor that rises": (LYING, [], [{"plane": {}, "motion": going(0, 0, 0.05)}]),
    "a block that rises": (LYING, [], [{**BLOCK, "motion": going(0, 0, 0.05)}]),
    "pins that rise": (HANGING, [{"where": "top", "motion": going(0, 0, 0.05)}], []),
    "pins that part": (
        HANGING,
        [{"where": side, "motion": going(way, 0, 0)} for side, way in (("left", -0.01), ("right", 0.01))],
        [],
    ),
    "a floor that is too near": ({"center": [0, 0, 0.004]}, [], [{"plane": {}}]),
}


def count_tries(simulation, n_steps, monkeypatch):
    """How often steps are tried, halves included."""
    real, tried = Simulation._try, []
    monkeypatch.setattr(Simulation, "_try", lambda self, *args: tried.append(args) or real(self, *args))
    for _ in range(n_steps):
        simulation.step()
    return len(tried)


@pytest.mark.parametrize("mover", SLOW)
def test_what_moves_the_cloth_slowly_does_not_halve_its_steps(mover, monkeypatch):
    """Lifted, it gains more than its kinetic energy in every step; pulled apart, more than that of its pins."""
    place, pins, colliders = SLOW[mover]
    grid = {"size": [0.5, 0.5], "vertices": [9, 9], **place}
    simulation = build({"grid": grid, "fabric": "cotton", "pins": pins}, method="engine", collider=colliders)
    assert count_tries(simulation, 30, monkeypatch) <= 1.2 * 30, "landing may take a few more"


def test_steps_are_not_halved_for_a_stretch_that_shorter_ones_have_too(monkeypatch):
    """Pins part at twice 0.5 m/s: each step stretches edges by 3 %, whatever its length."""
    pins = [{"where": side, "motion": going(way, 0, 0)} for side, way in (("left", -0.5), ("right", 0.5))]
    grid = {"size": [0.5, 0.5], "vertices": [9, 9], **HANGING}
    simulation = build({"grid": grid, "fabric": "cotton", "pins": pins}, method="engine")
    assert count_tries(simulation, 10, monkeypatch) <= 12
    assert simulation.stretch().max() == pytest.approx(10 / 60 / 0.5, rel=0.5)


def test_an_explosion_is_named():
    simulation = build()
    simulation.state.velocities[:] = np.inf
    with np.errstate(all="ignore"), pytest.raises(WeftError, match="unstable at"):
        simulation.step()


THREADS = """
import hashlib
from tests.simulation.test_step import LOOSE, PLATE, WIND, build
from weft.jit import set_threads
seen = set()
for threads in (1, 2, 3):
    set_threads(threads)
    simulation = build({"velocity": [0.5, 0.0, -3.0]}, collider=[PLATE], wind=WIND, method=LOOSE)
    for _ in range(4):
        simulation.step()
    state = simulation.state
    parts = (state.positions, state.velocities, state.impulses)
    seen.add(hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest())
print(len(seen))
"""


def test_bits_do_not_depend_on_the_number_of_threads():
    """In a process of its own, which may use more threads than this one."""
    done = subprocess.run(
        [sys.executable, "-c", THREADS],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "WEFT_THREADS": "4"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "1"


def test_a_step_that_leads_nowhere_is_halved(monkeypatch):
    """The engine takes two steps of half the length, until they are the shortest: then it says what is wrong."""
    simulation = build({}, method={})
    solve, lengths = simulation.integrator.solve, []

    def unstable(constraints):
        lengths.append(simulation.integrator._dt)
        if simulation.integrator._dt > 0.9 * limit:
            raise UnstableError("forces are not finite")
        return solve(constraints)

    monkeypatch.setattr(simulation.integrator, "solve", unstable)
    limit = simulation.dt
    simulation.step()
    assert lengths == [simulation.dt, 0.5 * simulation.dt, 0.5 * simulation.dt]
    limit = 0.0
    with pytest.raises(UnstableError, match="not finite"):
        simulation.step()


def spied(monkeypatch, wrong, held_back, missed_bodies=False):
    """A simulation whose first looks at a step find what `wrong` says, and so many vertices held back as `held_back`.

    Its last number goes on. Also the lengths of the steps that it tries, in its own, and how often it refines one.
    """
    simulation = build(method="engine")
    tried, refined, looks, real = [], [], iter(wrong), Simulation._try
    refine, counts = simulation.integrator.refine, iter(held_back)

    def look(*_):
        simulation.response.held_back = next(counts, held_back[-1])
        simulation.response.missed_bodies = missed_bodies
        return next(looks, False)

    monkeypatch.setattr(Judge, "went_wrong", look)
    monkeypatch.setattr(
        Simulation, "_try", lambda self, state, time, dt: tried.append(dt / self.dt) or real(self, state, time, dt)
    )
    monkeypatch.setattr(simulation.integrator, "refine", lambda *args: refined.append(1) or refine(*args))
    return simulation, tried, refined


@pytest.mark.parametrize(
    ("wrong", "lengths", "refinements"),
    [([False], [1.0], 0), ([True, True, False], [1.0], 2), ([True] * 3, [1.0, 0.5, 0.5], 2)],
)
@pytest.mark.parametrize("held_back", [0, 1])
def test_a_step_that_goes_wrong_is_refined_twice_then_halved(monkeypatch, wrong, lengths, refinements, held_back):
    """Also where few are held back: one vertex of 81."""
    simulation, tried, refined = spied(monkeypatch, wrong, [held_back])
    monkeypatch.setattr(module, "NOT_FEW", 0.02)
    simulation.step()
    assert (tried, len(refined)) == (lengths, refinements)
    assert not simulation.state.is_wary


@pytest.mark.parametrize(
    ("not_few", "strays", "is_wary"), [(0.01, [True, False], [True, True, False]), (0.02, [True], [True, False, False])]
)
def test_after_what_contacts_did_not_see_coming_steps_are_halved(monkeypatch, not_few, strays, is_wary):
    """While inertia strays, and more than a few of 81 vertices are held back: two are, then one."""
    simulation, tried, refined = spied(monkeypatch, [True], [2, 1])
    monkeypatch.setattr(module, "NOT_FEW", not_few)
    answers = iter(strays)
    monkeypatch.setattr(Judge, "strays", lambda *_: next(answers))
    states = []
    for _ in range(3):
        simulation.step()
        states.append(simulation.state.is_wary)
    assert tried == [1.0, 0.5, 0.5, 0.5, 0.5, 1.0]
    assert states == is_wary
    assert not refined


@pytest.mark.parametrize("held_back", [0, 1])
def test_after_a_step_that_missed_bodies_and_held_back_cloth_steps_are_halved(monkeypatch, held_back):
    """It is solved once more and kept; the next would be tried in vain where the cloth is thrown at what is near."""
    simulation, tried, refined = spied(monkeypatch, [], [held_back], missed_bodies=True)
    simulation.step()
    assert (tried, len(refined)) == ([1.0], 1)
    assert simulation.state.is_wary == (held_back > 0)


@pytest.mark.parametrize(("crowded", "is_wary"), [(-1.0, [True, True, True]), (0.25, [True, False, False])])
def test_crowded_cloth_stays_wary_while_it_strays(monkeypatch, crowded, is_wary):
    """Though nothing is held back any more: in a heap, the first whole step went wrong again."""
    simulation, _, _ = spied(monkeypatch, [True], [1, 0])
    monkeypatch.setattr(module, "CROWDED", crowded)
    monkeypatch.setattr(Judge, "strays", lambda *_: True)
    states = []
    for _ in range(3):
        simulation.step()
        states.append(simulation.state.is_wary)
    assert states == is_wary


@pytest.mark.parametrize(("some", "second"), [(0.02, [1.0]), (0.01, [0.5, 0.5])])
def test_after_a_step_that_was_halved_for_a_thread_the_next_is_tried_whole(monkeypatch, some, second):
    """Of 81 vertices one is held back: if that is not more than some, a thread is all that was wrong."""
    simulation, tried, _ = spied(monkeypatch, [True], [1])
    monkeypatch.setattr(module, "SOME", some)
    monkeypatch.setattr(Judge, "overstretches", lambda *_: True)
    monkeypatch.setattr(Judge, "strays", lambda *_: True)
    for _ in range(2):
        simulation.step()
    assert tried == [1.0, 0.5, 0.5, *second]


def test_cloth_that_its_threads_draw_to_a_ball_ends_in_contact():
    """A strip hovers above a ball; its ends are pulled down on both sides, which its inertia does not foretell."""
    grid = {"size": [0.5, 0.1], "vertices": [26, 6], "center": [0.0, 0.0, 0.212]}
    down = {"motion": {"keyframes": [{"time": 0.0}, {"time": 0.1, "move": [0.0, 0.0, -0.1]}]}}
    simulation = build(
        {"grid": grid, "pins": [{"where": side, **down} for side in ("left", "right")]},
        method="engine",
        gravity=[0.0, 0.0, 0.0],
        collider=[{"sphere": {"radius": 0.2}}],
    )
    for _ in range(8):
        simulation.step()
        gaps = np.linalg.norm(simulation.state.positions, axis=1) - 0.2
        assert gaps.min() > 0.2 * simulation.clearance[0]
    assert 0.5 * simulation.clearance[0] < gaps.min() < simulation.clearance[0], "pressed in, it came back"
