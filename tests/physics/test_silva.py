"""The completed pipeline of da Silva's method: certified frames, friction, a stack at rest, and how rarely zones act.

Every step, not only every frame, is judged by exact predicates that share no code with the response.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.physics.test_friction import CRITICAL, MU, G, Slope

import weft
from weft.bodies.shapes import Plane
from weft.collision.certificate import intersections, self_intersections
from weft.jit import threads_for
from weft.methods import METHODS
from weft.scene.schema import Scene
from weft.simulation.simulation import Simulation, State

SCENES = ["tablecloth", "ground", "sphere"]
COMPLETED = METHODS["silva_completed"]
FORCED = {"name": "impact_zones", "repulsion": False, "passes": 0}


@pytest.fixture(autouse=True)
def _one_thread():
    with threads_for(1):
        yield


def n_crossings(simulation):
    """Pairs of triangles that cross, and vertices inside bodies, in the current state."""
    x, triangles, time = simulation.state.positions, simulation.world.triangles, simulation.time
    found = len(self_intersections(x, triangles))
    free = ~np.isin(np.arange(len(x)), simulation.pinned)
    for body in simulation.world.bodies:
        found += int(((body.distances(x, time)[0] < 0.0) & free).sum())
        if not isinstance(body.shape, Plane):
            found += len(intersections(x, triangles, *body.triangulate(time)))
    return found


def method(**changes):
    """The completed method with other parts."""
    return {**COMPLETED.model_dump(exclude={"description", "steps_per_frame"}), **changes}


def small(name, duration, n=13, **scene):
    """A gallery scene with a coarse mesh, whose explicit steps may be longer."""
    loaded = weft.load_scene(name, [f"cloth.0.grid.vertices=[{n}, {n}]", f"duration={duration}"])
    changed = {"method": method(), "steps_per_frame": 15, **scene}
    return Scene.model_validate({**loaded.model_dump(exclude_unset=True), **changed})


@pytest.mark.parametrize("name", SCENES)
def test_nothing_crosses_in_any_step(name):
    simulation = Simulation(small(name, 0.9 if name == "sphere" else 0.5))
    energies = []
    for frame in simulation:
        assert n_crossings(simulation) == 0
        assert frame.certificate.intersections + frame.certificate.body_intersections + frame.certificate.inside == 0
        assert frame.certificate.max_stretch < 0.15
        energies.append(frame.certificate.energy)
    counts = simulation.response.counts
    assert counts.near > 0
    assert counts.zone_steps < 0.01 * counts.steps
    assert counts.refused == 0
    if name != "sphere":
        assert np.all(np.diff(energies) < 1e-4 * abs(energies[0])), "energy grows without a cause"


@pytest.mark.parametrize("zones", ["inelastic", "rigid"])
@pytest.mark.parametrize("name", SCENES)
def test_zones_alone_let_nothing_cross(name, zones):
    simulation = Simulation(small(name, 0.5, n=11, method=method(response={**FORCED, "zones": zones})))
    for _ in range(300):
        simulation.step()
        assert n_crossings(simulation) == 0
    counts = simulation.response.counts
    assert counts.near == 0
    assert counts.zone_steps > 100


@pytest.mark.parametrize("integrator", ["implicit_euler", "bdf2"])
def test_other_integrators_and_longer_steps(integrator):
    """2 ms a step, real stiffness: stage two has work to do, and nothing crosses."""
    parts = method(model="responsive", integrator=integrator, strain="none")
    simulation = Simulation(small("ground", 0.7, n=15, method=parts, steps_per_frame=4))
    for frame in simulation:
        assert n_crossings(simulation) == 0
        assert frame.certificate.max_stretch < 0.4


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_can_be_repeated_and_taken_up_again(threads):
    scene = small("ground", 0.35, n=11)
    whole = [frame.positions for frame in Simulation(scene)]
    first = Simulation(scene)
    for _ in range(15 * 15):
        first.step()
    with threads_for(4000 * threads):
        second = Simulation(scene, first.state)
        for frame in second.frames(resumed=True):
            np.testing.assert_array_equal(frame.positions, whole[frame.index])
    assert second.response.counts.near > 0


@pytest.mark.parametrize(("body", "integrator"), [("plane", "central"), ("box", "implicit_euler")])
def test_friction_angle_within_one_degree(body, integrator):
    """It sticks below, up to the settling of the first steps, and slides as Coulomb has it above."""
    parts = {"response": "impact_zones", "integrator": integrator, "model": {"name": "mass_spring", "structural": 0.02}}
    below = Slope(CRITICAL - 1.0, body=body, method=parts, fps=1200).run(0.5)
    assert abs(below.slid) < 1e-4
    above = Slope(CRITICAL + 1.0, body=body, method=parts, fps=1200).run(0.5)
    a = np.deg2rad(CRITICAL + 1.0)
    assert above.slid == pytest.approx(0.5 * G * (np.sin(a) - MU * np.cos(a)) * 0.25, rel=0.05)


def folded_strip(layers=10, length=4, width=3, edge=0.02):
    """A strip in zigzag, as positions: layers just above each other, the turns as sharp tips of two edges."""
    gap = 0.21 * edge
    out = np.sqrt(edge**2 - (0.5 * gap) ** 2)
    path = []
    for k in range(layers):
        along = edge * np.arange(length + 1)
        along = along if k % 2 == 0 else along[::-1]
        path += [(u, gap * (k + 1)) for u in along]
        if k < layers - 1:
            path.append((along[-1] + (out if k % 2 == 0 else -out), gap * (k + 1.5)))
    u, z = np.array(path).T
    v = edge * np.arange(width)
    x = np.stack(np.broadcast_arrays(u[:, None], v[None, :], z[:, None]), axis=2)
    return (len(path), width), edge, np.ascontiguousarray(x.reshape(-1, 3))


def test_a_folded_stack_of_ten_layers_keeps_still():
    """After a quarter of a second, in which its turns open as far as the weight lets them."""
    shape, edge, x = folded_strip()
    limp = {"density": 0.15, "stretch_warp": 4000.0, "stretch_weft": 3000.0, "shear": 60.0, "thickness": 0.0004,
            "bending_warp": 2e-7, "bending_weft": 2e-7, "friction": 0.3}  # fmt: skip
    grid = {"size": [edge * (shape[0] - 1), edge * (shape[1] - 1)], "vertices": list(shape)}
    scene = {"name": "stack", "fps": 20, "duration": 0.55, "steps_per_frame": 180, "method": method()}
    scene |= {"wind": {"density": 0.0}}  # air would make the turns open for longer
    scene |= {"cloth": [{"grid": grid, "fabric": limp}], "collider": [{"plane": {"normal": [0, 0, 1]}}]}
    simulation = Simulation(Scene.model_validate(scene), State.start(x, np.zeros_like(x)))
    frames = list(simulation)
    assert all(frame.certificate.intersections + frame.certificate.inside == 0 for frame in frames)
    settled, last = frames[5].positions, frames[-1].positions
    assert np.linalg.norm(last - settled, axis=1).max() < 5e-4
    assert last[:, 2].max() > 9 * 0.2 * edge, "it was pressed flat"


def test_final_velocity_follows_from_where_the_step_ends():
    """Of cloth at rest on a floor: half a step of gravity, as for the mean velocity zero it must be."""
    parts = {"response": "impact_zones", "integrator": "central", "model": {"name": "mass_spring", "structural": 0.02}}
    floor = Slope(0.0, method=parts, fps=1200).run(0.2)
    velocities = floor.simulation.state.velocities
    np.testing.assert_allclose(velocities[:, 2], -0.5 * G / 1200, rtol=0.2)
    np.testing.assert_allclose(velocities[:, :2], 0.0, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_gallery_scenes_whole(name):
    simulation = Simulation(weft.load_scene(name, ["method=silva_completed"]))
    for frame in simulation:
        assert frame.certificate.intersections + frame.certificate.body_intersections + frame.certificate.inside == 0
    counts = simulation.response.counts
    assert counts.zone_steps < 0.01 * counts.steps
