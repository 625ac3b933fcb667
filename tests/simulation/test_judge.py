"""What a step may gain, stretch and stray before it is solved again or halved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from weft.scene.schema import Scene
from weft.simulation import judge as module
from weft.simulation.judge import Work
from weft.simulation.simulation import Simulation

NONE = Work(0.0, 0.0)


@pytest.fixture
def simulation():
    """A small cloth in the air."""
    grid = {"size": [0.4, 0.4], "vertices": [9, 9], "center": [0, 0, 0.1]}
    grid["ripples"] = [{"amplitude": 0.02, "waves": [1.5, 0.5]}]
    return Simulation(Scene.model_validate({"name": "judge", "cloth": [{"grid": grid}]}))


@pytest.fixture
def rising(simulation):
    """Its judge, length of a step, and state while it goes up at 10 m/s; and its kinetic energy [J]."""
    v = np.tile([0.0, 0.0, 10.0], (81, 1))
    state = replace(simulation.state, velocities=v, pressed=0.0)
    return simulation.judge, simulation.dt, state, 0.5 * simulation.world.masses.sum() * 10.0**2


def faster(state, factor):
    """The state with so many times the kinetic energy."""
    return replace(state, velocities=np.sqrt(factor) * state.velocities)


def test_a_step_may_gain_what_steps_before_it_lost(rising):
    judge, dt, before, energy = rising
    after = faster(before, 1.1)
    gain = 0.1 * energy
    assert judge.went_wrong(before, after, NONE, 0.0, dt)
    assert not judge.went_wrong(replace(before, lost=gain), after, NONE, 0.0, dt)
    assert after.lost == pytest.approx(0.0, abs=1e-9), "it is spent"
    assert not judge.went_wrong(replace(before, lost=10.0 * gain), after, NONE, 0.0, dt)
    assert after.lost == pytest.approx(module.LOSS_KEPT * (1.1 * energy + judge.stored(after))), "more is forgotten"


def test_contacts_give_back_no_more_than_the_cloth_lost_to_them(rising):
    """What a solve that went astray says of their work may be anything."""
    judge, dt, before, energy = rising
    less, more, push = faster(before, 0.5), faster(before, 1.5), 1e6 * energy
    assert not judge.went_wrong(before, less, Work(-push, 0.0), 0.0, dt)
    assert less.pressed == pytest.approx(0.5 * energy, rel=1e-6)
    assert judge.went_wrong(before, more, Work(-push, 0.0), 0.0, dt)
    assert more.pressed == 0.0, "it gained, and contacts took nothing"
    assert not judge.went_wrong(replace(before, pressed=0.5 * energy), more, Work(push, 0.0), 0.0, dt)
    assert more.pressed == 0.0, "it is spent"
    assert judge.went_wrong(replace(before, pressed=0.3 * energy), more, Work(push, 0.0), 0.0, dt)


def test_a_step_may_gain_what_pins_do(rising):
    judge, dt, before, energy = rising
    assert judge.went_wrong(before, faster(before, 1.5), Work(0.0, 0.4 * energy), 0.0, dt)
    assert not judge.went_wrong(before, faster(before, 1.5), Work(0.0, 0.5 * energy), 0.0, dt)


def test_a_step_that_holds_back_many_went_wrong(simulation, rising):
    judge, dt, before, _ = rising
    simulation.response.held_back = 2
    assert not judge.went_wrong(before, before, NONE, 0.0, dt)
    simulation.response.held_back = 3
    assert judge.went_wrong(before, before, NONE, 0.0, dt), "of 81"


def test_a_step_is_pulled_where_solving_again_stretches_it_alike(simulation, rising):
    judge, dt, before, energy = rising
    longer, longest = (replace(before, positions=factor * before.positions) for factor in (1.2, 1.25))
    assert judge.is_pulled(longer, longer)
    assert not judge.is_pulled(longer, longest)
    simulation.response.held_back = 1
    assert not judge.is_pulled(longer, longer)
    may_gain = replace(before, lost=100.0 * energy)
    assert judge.went_wrong(may_gain, longer, NONE, 0.0, dt)
    assert not judge.went_wrong(may_gain, longer, NONE, 0.0, dt, True), "its energy is not too much for what was lost"
    assert judge.went_wrong(before, longer, NONE, 0.0, dt, True), "but for nothing it is"


@pytest.mark.parametrize(("factor", "left"), [(1.01, 1.01), (2.0, 1.02), (1000.0, 10.0)])
def test_shortest_steps_gain_next_to_nothing(rising, factor, left):
    """However much they would, but a tenth of the velocity stays."""
    judge, dt, before, energy = rising
    after = judge.tamed(before, faster(before, factor), NONE, 0.0, dt)
    kinetic = energy * (after.velocities**2).sum() / (before.velocities**2).sum()
    assert kinetic == pytest.approx(left * energy, rel=0.03)


@pytest.mark.parametrize(
    ("speed", "gain", "kept"),
    [(0.02, 0.0, 1.0), (0.02, -0.1, 1.0), (0.02, 0.1, np.sqrt(0.9)), (0.02, 2.0, module.SLOWED), (0.1, 0.1, 1.0)],
)
def test_slow_cloth_gives_back_what_it_gained(simulation, speed, gain, kept):
    """The gain is in shares of its kinetic energy; it goes sideways, so gravity has no part in it."""
    masses, before = simulation.world.masses, simulation.state
    moving = 0.5 * masses.sum() * speed**2
    after = replace(before, velocities=np.tile([speed, 0.0, 0.0], (len(masses), 1)))
    stored = simulation.judge.stored(after) + (1.0 - gain) * moving  # as if it were turned into motion
    calm = simulation.judge.calmed(before, after, stored, 0.0, simulation.dt)
    np.testing.assert_allclose(calm.velocities, kept * after.velocities, rtol=1e-9)


@pytest.mark.parametrize("giver", ["contact", "wind"])
def test_what_slow_cloth_is_given_it_keeps(simulation, giver):
    masses, before, judge, dt = simulation.world.masses, simulation.state, simulation.judge, simulation.dt
    v = np.tile([0.02, 0.0, 0.0], (len(masses), 1))
    after = replace(before, positions=before.positions + dt * v, velocities=v)
    stored = judge.stored(after)
    assert judge.calmed(before, after, stored, 0.0, dt).velocities.max() < 0.02
    if giver == "contact":
        after.impulses = masses[:, None] * v
    else:
        simulation.system.wind = simulation.system.wind.model_copy(update={"velocity": (1.0, 0.0, 0.0)})
    assert judge.calmed(before, after, stored, 0.0, dt) is after


@pytest.mark.parametrize(("rate", "strays"), [(0.0, False), (0.01, False), (20.0, True)])
def test_cloth_strays_where_inertia_stores_more_than_it_has(simulation, rate, strays):
    """A sheet that grows at a rate [1/s]: 20 make a third of its size in a step."""
    state = simulation.state
    moving = replace(state, velocities=rate * (state.positions - state.positions.mean(axis=0)))
    assert simulation.judge.strays(moving, simulation.dt) == strays
