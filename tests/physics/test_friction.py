"""Coulomb friction of cloth on a slope and on a floor.

Friction is viscous below a creep of 0.5 mm/s, and may lag behind the slip by one step: with dt the step and s the slip,
a sliding cloth that gains a dt in a step feels a friction that is too large by a dt / s. Tolerances follow from that.
`dividing_planes` lets slide what would drag by a fiftieth too much.
"""

from __future__ import annotations

import numpy as np
import pytest

from weft.jit import threads_for
from weft.scene.schema import Scene
from weft.simulation.simulation import Simulation

G = 9.81
MU = 0.3
CRITICAL = np.rad2deg(np.arctan(MU))
CREEP = 5e-4
CLEARANCE = 0.002


@pytest.fixture(autouse=True)
def _one_thread():
    with threads_for(1):
        yield


class Slope:
    """A small cloth that lies flat on a slope of `degrees`, let go with `speed` [m/s] down the slope.

    It starts just in contact, or so much of the contact distance nearer as `pressed` says.
    """

    def __init__(
        self,
        degrees,
        friction=MU,
        *,
        speed=0.0,
        body="plane",
        response="contact_filter",
        fps=120,
        fabric="cotton",
        method=None,
        pressed=0.0,
    ):
        a = np.deg2rad(degrees)
        normal, self.down = np.array([np.sin(a), 0, np.cos(a)]), np.array([np.cos(a), 0, -np.sin(a)])
        collider = {"plane": {"normal": list(normal)}}
        if body == "box":
            collider = {"box": {"size": [20, 3, 1], "center": list(-0.5 * normal)}, "turn": [0, degrees, 0]}
        grid = {"size": [0.2, 0.2], "vertices": [4, 4], "center": list(CLEARANCE * normal), "turn": [0, degrees, 0]}
        distance = CLEARANCE / (1.0 - pressed)
        cloth = {"grid": grid, "contact_distance": distance, "velocity": list(speed * self.down), "fabric": fabric}
        scene = {"name": "slope", "fps": fps, "steps_per_frame": 1, "method": method or {"response": response}}
        scene |= {"cloth": [cloth], "collider": [{**collider, "friction": friction}], "wind": {"density": 0.0}}
        self.simulation = Simulation(Scene.model_validate(scene))
        self.start = self.position

    def _mean(self, rows):
        masses = self.simulation.world.masses
        return float(masses @ rows @ self.down / masses.sum())

    @property
    def position(self):
        return self._mean(self.simulation.state.positions)

    @property
    def slid(self):
        return self.position - self.start

    @property
    def speed(self):
        return self._mean(self.simulation.state.velocities)

    def run(self, seconds):
        for _ in range(round(seconds / self.simulation.dt)):
            self.simulation.step()
        return self

    def acceleration(self, seconds):
        before = self.speed
        self.run(seconds)
        return (self.speed - before) / seconds


@pytest.mark.parametrize("response", ["contact_filter", "dividing_planes"])
@pytest.mark.parametrize("below", [8.0, 1.0])
def test_sticks_below_the_friction_angle(below, response):
    """It creeps by creep tan(slope) / mu, less than 0.5 mm/s, after a start of less than 5 mm."""
    slope = Slope(CRITICAL - below, response=response).run(1.0)
    assert slope.slid < 5e-3
    assert slope.speed == pytest.approx(CREEP * np.tan(np.deg2rad(CRITICAL - below)) / MU, rel=1e-3)


@pytest.mark.parametrize("response", ["contact_filter", "dividing_planes"])
@pytest.mark.parametrize("above", [1.0, 8.0])
def test_slides_above_the_friction_angle(above, response):
    slope = Slope(CRITICAL + above, response=response).run(0.5)
    early = slope.speed
    assert early > 50 * CREEP
    assert slope.run(0.5).speed > 1.7 * early


@pytest.mark.parametrize(("mu", "above"), [(0.3, 5.0), (0.5, 1.0), (1.0, 1.0)])
def test_what_stuck_is_soon_torn_loose(mu, above):
    """From rest, just above the friction angle, more than half of what Coulomb's friction leaves accelerates it.

    Where drag followed the slip of the step before, slip grew by as many per cent in each, and it crept for seconds.
    """
    degrees = np.rad2deg(np.arctan(mu)) + above
    a = np.deg2rad(degrees)
    wanted = G * (np.sin(a) - mu * np.cos(a))
    found = Slope(degrees, mu, response="dividing_planes", fps=60, pressed=0.05).run(0.5).acceleration(0.5)
    assert 0.5 * wanted < found < 1.01 * wanted


@pytest.mark.parametrize("body", ["plane", "box"])
@pytest.mark.parametrize("mu", [0.1, 0.3, 0.6])
def test_sliding_acceleration(mu, body):
    """g (sin - mu cos), within 2 % from 2 m/s on at 120 steps a second."""
    degrees = np.rad2deg(np.arctan(mu)) + 20.0
    a = np.deg2rad(degrees)
    wanted = G * (np.sin(a) - mu * np.cos(a))
    assert Slope(degrees, mu, speed=2.0, body=body).run(0.05).acceleration(0.25) == pytest.approx(wanted, rel=0.02)


def test_error_of_the_sliding_acceleration_falls_with_the_step():
    """The lag of friction is of first order: half the step, half the error."""
    a = np.deg2rad(CRITICAL + 20.0)
    wanted = G * (np.sin(a) - MU * np.cos(a))
    errors = [wanted - Slope(CRITICAL + 20.0, speed=1.0, fps=fps).run(0.05).acceleration(0.2) for fps in (120, 240)]
    assert 0.0 < errors[1] < 0.6 * errors[0]


def test_without_friction_nothing_holds_cloth_on_a_slope():
    """g sin, to the accuracy of single precision."""
    slope = Slope(20.0, 0.0).run(0.5)
    assert slope.speed == pytest.approx(0.5 * G * np.sin(np.deg2rad(20.0)), rel=1e-4)


@pytest.mark.parametrize("speed", [0.5, 2.0])
def test_stops_on_a_floor_after_the_distance_of_coulomb(speed):
    """v^2 / (2 mu g), within the distance of one step."""
    floor = Slope(0.0, speed=speed).run(2.0 * speed / (MU * G))
    assert floor.speed < CREEP
    assert floor.slid == pytest.approx(speed**2 / (2 * MU * G), abs=1.5 * speed * floor.simulation.dt)


def test_friction_does_not_depend_on_the_weight():
    """A fabric of 2.7 times the mass, on the same body: the same way."""
    ways = [Slope(0.0, speed=1.0, fabric=fabric).run(0.5).slid for fabric in ("cotton", "denim")]
    assert ways[1] == pytest.approx(ways[0], rel=1e-5)


def test_fabric_gives_the_friction_where_the_body_has_none():
    """Silk has 0.2, denim 0.5: on a slope of 20 degrees (0.36) one slides and the other sticks."""
    assert Slope(20.0, None, fabric="silk").run(0.5).slid > 0.1
    assert Slope(20.0, None, fabric="denim").run(0.5).slid < 5e-3
