"""Starts that cross or touch: each ends certified, with gaps, near where it was, or says where it could not."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.real_data import DATA, needs_real_data

from weft.collision import distances, intersections, self_intersections
from weft.errors import WeftError
from weft.geometry.mesh import build_grid
from weft.jit import threads_for
from weft.scene.schema import Scene
from weft.simulation import untangling as module
from weft.simulation.run import run
from weft.simulation.simulation import Simulation, State

EDGE = 0.04  # [m] of the grids below
GAP = 0.1 * 0.2 * EDGE * (2 + np.sqrt(2)) / 3  # a tenth of the contact distance, with as many diagonals as sides


def grid(center=(0.0, 0.0, 0.1), cells=10, **keys):
    return {"grid": {"size": [cells * EDGE] * 2, "vertices": [cells + 1] * 2, "center": list(center), **keys}}


def ball(radius, *center):
    return {"sphere": {"radius": radius, "center": list(center)}}


def box(size, *center):
    return {"box": {"size": list(size), "center": list(center)}}


def build(*cloths, **keys):
    return Simulation(Scene.model_validate({"cloth": list(cloths), **keys}))


def write_mesh(path, positions, triangles):
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in np.asarray(positions, float).tolist()]
    path.write_text("\n".join([*lines, *(f"f {a} {b} {c}" for a, b, c in (triangles + 1).tolist())]) + "\n")
    return {"mesh": str(path)}


# name: cloths, colliders, and how far a vertex may go; what must go through half of that at least says so in its name
TANGLES = {
    "two copies": ([grid()] * 2, [], 0.7 * GAP),
    "five copies": ([grid()] * 5, [], 2.5 * GAP),
    "curved copies": ([grid(ripples=[{"amplitude": 0.02, "waves": [1.5, 0.5]}])] * 2, [], 0.8 * GAP),
    "copies with hardly any contact distance": ([{**grid(), "contact_distance": 1e-6}] * 2, [], GAP),
    "layers of unlike meshes": ([grid(), grid(cells=7)], [], 1.5 * GAP),
    "standing on a sheet": ([grid(), grid([0, 0, 0.3], plane="xz")], [], 2 * GAP),
    "standing through it by 5 cm": ([grid(), grid([0.003, 0.005, 0.25], plane="xz")], [], 0.04),
    "standing through it along grid lines": ([grid(), grid([0, 0, 0.26], plane="xz")], [], 0.04),
    "crossed in the middle": ([grid(), grid(plane="xz")], [], 0.2),
    "crossed at an angle": ([grid(), grid([0.013, 0.007, 0.112], plane="xz", turn=[20, 10, 5])], [], 0.25),
    "slotted into each other by 15 cm": ([grid(), grid([0.25, 0.003, 0.1], plane="xz")], [], 0.12),
    "a corner pokes through by 6 cm": ([grid(), grid([0.02, 0, 0.32], plane="xz", turn=[0, 45, 0])], [], 0.08),
    "waves through a sheet by 2 cm": (
        [grid(), grid(ripples=[{"amplitude": 0.02, "waves": [2, 0.3]}])],
        [],
        0.1,
    ),
    "through a ball": ([grid()], [ball(0.1, 0, 0, 0.1)], 0.12),
    "over a ball, 2 cm deep": ([grid()], [ball(0.1, 0.02, 0, 0.02)], 0.03),
    "border in a ball": ([grid()], [ball(0.1, 0.21, 0, 0.08)], 0.12),
    "on a table, 1 cm deep": ([grid()], [box([0.2, 0.2, 0.2], 0, 0, 0.01)], 0.015),
    "exactly on a table": ([grid()], [box([0.2, 0.2, 0.2], 0, 0, 0)], 2 * GAP),
    "exactly on the ground": ([grid([0, 0, 0])], [{"plane": {}}], 1.1 * GAP),
    "through a box": ([grid()], [box([0.2, 0.2, 0.2], 0, 0, 0.1)], 0.12),
    "standing in a box, 11 cm deep": ([grid([0, 0, 0.2], plane="xz")], [box([1, 1, 0.2], 0, 0, 0.01)], 0.13),
    "a post between vertices": ([grid(cells=4)], [box([0.01, 0.01, 0.3], 0.02, 0.015, 0)], 0.1),
    "two layers in a ball": ([grid()] * 2, [ball(0.1, 0.02, 0, 0.02)], 0.04),
}


def smallest_gap(x, triangles, topology):
    """The smallest distance between features that share no vertex and are no neighbours, by brute force."""
    edges = topology.edges
    near = [set(topology.vertex_neighbours.row(i).tolist()) | {i} for i in range(len(x))]
    box_low, box_high = x[triangles].min(axis=1) - 1e-3, x[triangles].max(axis=1) + 1e-3
    points = [
        (vi, *triangles[ti])
        for vi in range(len(x))
        for ti in np.flatnonzero(((x[vi] >= box_low) & (x[vi] <= box_high)).all(axis=1))
        if not near[vi] & set(triangles[ti].tolist())
    ]
    low, high = x[edges].min(axis=1) - 1e-3, x[edges].max(axis=1) + 1e-3
    pairs = [
        (*edges[a], *edges[b])
        for a in range(len(edges))
        for b in a + 1 + np.flatnonzero(((low[a] <= high[a + 1 :]) & (high[a] >= low[a + 1 :])).all(axis=1))
        if not (near[edges[a, 0]] | near[edges[a, 1]]) & set(edges[b].tolist())
    ]
    found = [np.inf]
    for rows, kind in ((points, "vertex-triangle"), (pairs, "edge-edge")):
        found += distances(x[np.array(rows)], kind).tolist() if rows else []
    return min(found)


def assert_clear(simulation):
    """Nothing crosses, in doubles and as recorded, and all is as far apart as it should be."""
    x, triangles = simulation.state.positions, simulation.world.triangles
    for rounded in (x, x.astype(np.float32).astype(np.float64)):
        assert len(self_intersections(rounded, triangles)) == 0
        for body in simulation.world.bodies:
            if "normal" not in type(body.shape).model_fields:
                assert len(intersections(rounded, triangles, *body.triangulate(0.0))) == 0
    for body in simulation.world.bodies:
        assert body.distances(x, 0.0)[0].min() >= module.TOUCHING
    assert smallest_gap(x, triangles, simulation.topology) >= module.TOUCHING


def assert_stays_clear(simulation, frames=3):
    for frame in range(frames):
        for _ in range(simulation.steps_per_frame):
            simulation.step()
        c = simulation.frame(frame).certificate
        assert (c.intersections, c.body_intersections, c.inside) == (0, 0, 0)


@pytest.mark.parametrize("name", TANGLES)
def test_a_tangled_start_ends_certified_near_where_it_was(name):
    cloths, colliders, farthest = TANGLES[name]
    simulation = build(*cloths, collider=colliders)
    done = simulation.untangled
    assert done is not None
    assert done.left == 0
    moved = np.linalg.norm(simulation.state.positions - simulation.world.positions, axis=1).max()
    assert moved == done.moved
    assert moved <= farthest
    assert_clear(simulation)
    assert_stays_clear(simulation)


@pytest.mark.parametrize(
    "cloths",
    [[grid()], [grid(), grid([0, 0, 0.1 + 1.01e-5])], [grid(), grid([0.003, 0, 0.31], plane="xz")]],
    ids=["one", "a hair apart", "standing"],
)
def test_a_clear_start_keeps_every_bit(cloths):
    simulation = build(*cloths, collider=[{"plane": {}}, box([0.1, 0.1, 0.09], 0, 0, 0.045)])
    assert simulation.untangled is None
    assert (simulation.state.positions == simulation.world.positions).all()


def test_a_state_that_is_given_is_left_alone():
    """A checkpoint is one: what it holds is not untangled again."""
    scene = Scene.model_validate({"cloth": [grid(), grid()]})
    x = build(grid(), grid(), untangle="off").state.positions
    simulation = Simulation(scene, State.start(x, np.zeros_like(x)))
    assert simulation.untangled is None
    assert simulation.state.positions is x


def test_every_two_of_five_copies_get_the_whole_gap():
    simulation = build(*[grid()] * 5)
    heights = [simulation.state.positions[piece.vertices, 2].mean() for piece in simulation.world.pieces]
    assert np.diff(heights).min() > 0.8 * GAP


def test_sheets_that_are_slotted_slide_out_in_one_piece():
    sheet = {"size": [0.4, 0.4], "vertices": [15, 15]}
    simulation = build({"grid": sheet}, {"grid": {**sheet, "center": [0.25, 0.003, 0], "plane": "xz"}})
    assert simulation.untangled.moved < 0.1
    assert np.abs(simulation.stretch()).max() < 0.25


def test_later_cloths_come_to_lie_in_front():
    simulation = build(grid(), grid(turn=[180, 0, 0]), grid(cells=7))
    heights = [simulation.state.positions[piece.vertices, 2] for piece in simulation.world.pieces]
    assert heights[0].max() < heights[1].min()
    assert heights[1].max() < heights[2].min()
    simulation = build(grid(turn=[180, 0, 0]), grid())
    heights = [simulation.state.positions[piece.vertices, 2] for piece in simulation.world.pieces]
    assert heights[0].min() > heights[1].max(), "the front of the first one is below"


def folded(mesh, fold_at, direction):
    """A flat mesh folded exactly flat along lines across `direction`, every `fold_at` [m] from its first corner."""
    u = mesh.material - mesh.material.min(axis=0)
    unit = np.array(direction) / np.linalg.norm(direction)
    along = u @ unit
    phase = np.mod(along, 2 * fold_at)
    along_folded = np.where(phase <= fold_at, phase, 2 * fold_at - phase)
    flat = u + (along_folded - along)[:, None] * unit
    return np.column_stack([flat, np.full(len(u), 0.1)])


@pytest.mark.parametrize(("direction", "fold_at"), [((1, 0), 0.2), ((0, 1), 0.2), ((1, -1), 0.3), ((0.9, 0.43), 0.25)])
def test_a_fold_opens_without_a_crossing(tmp_path, direction, fold_at):
    """Also along a diagonal, and along no edges."""
    mesh = build_grid((0.4, 0.4), (11, 11))
    start = folded(mesh, fold_at, direction)
    simulation = build(write_mesh(tmp_path / "fold.obj", start, mesh.triangles))
    assert simulation.untangled.touching > 50
    assert simulation.untangled.moved < 10 * GAP
    assert_clear(simulation)
    assert_stays_clear(simulation)


def test_a_napkin_folded_twice_opens_without_a_crossing(tmp_path):
    mesh = build_grid((0.4, 0.4), (11, 11))
    start = np.column_stack([np.abs(mesh.material), np.full(mesh.n_vertices, 0.1)])
    simulation = build(write_mesh(tmp_path / "napkin.obj", start, mesh.triangles))
    assert simulation.untangled.moved < 10 * GAP
    assert_clear(simulation)
    assert_stays_clear(simulation)


def test_pleats_lie_in_their_order(tmp_path):
    mesh = build_grid((0.6, 0.2), (16, 6))
    simulation = build(write_mesh(tmp_path / "pleats.obj", folded(mesh, 0.2, (1, 0)), mesh.triangles))
    x = simulation.state.positions.reshape(16, 6, 3)
    first, second, third = (x[k : k + 2, :, 2].mean() for k in (2, 7, 12))
    assert first > second > third, "each behind the one before"
    assert_clear(simulation)
    assert_stays_clear(simulation)


def test_front_and_back_of_a_flat_tube_keep_their_sides(tmp_path):
    around, rows = 24, 8
    angle = np.arange(around) * 2 * np.pi / around
    x = np.array([[0.1 * np.cos(a), 0.0, 0.1 + 0.02 * k] for k in range(rows) for a in angle])
    quads = [(k * around + i, k * around + (i + 1) % around) for k in range(rows - 1) for i in range(around)]
    triangles = np.array([t for a, b in quads for t in ((a, b, b + around), (a, b + around, a + around))])
    simulation = build(write_mesh(tmp_path / "tube.obj", x, triangles))
    front = np.sin(angle) > 0.5  # outward normals of these point to +y
    y = simulation.state.positions.reshape(rows, around, 3)[:, :, 1]
    assert y[:, front].min() > y[:, np.sin(angle) < -0.5].max()
    assert_clear(simulation)


def test_pins_stay_where_they_can():
    held = {**grid(), "pins": [{"where": "corners"}]}
    simulation = build(held, grid([0.003, 0.005, 0.25], plane="xz"))
    assert simulation.untangled.pins == 0
    corners = simulation.pinned
    assert (simulation.state.positions[corners] == simulation.world.positions[corners]).all()
    assert_clear(simulation)


def test_pins_yield_where_they_must():
    held = {**grid([0, 0, 0.3], plane="xz"), "pins": [{"where": "top"}]}
    simulation = build(held, held)
    assert 0 < simulation.untangled.pins <= 22
    assert simulation.untangled.moved < 2 * GAP
    assert simulation.frame(0).certificate.pin_lag > 0.0
    assert_clear(simulation)
    assert_stays_clear(simulation)


def test_any_number_of_threads_gives_the_same_bits(monkeypatch):
    starts = []
    for n in (1, 2, 3):
        monkeypatch.setattr(module, "threads_for", lambda rows, n=n: threads_for(n))
        simulation = build(
            grid(), grid([0.013, 0.007, 0.112], plane="xz", turn=[20, 10, 5]), collider=[ball(0.1, 0.1, 0, 0)]
        )
        starts.append(simulation.state.positions)
    assert all((start == starts[0]).all() for start in starts)


NO_ROOM = [{"plane": {}}, {"plane": {"normal": [0, 0, -1]}}]


def test_what_cannot_be_parted_is_named():
    with pytest.raises(WeftError) as error:
        build(grid([0, 0, 3]), grid([0, 0, 0]), collider=NO_ROOM, name="press")
    text = str(error.value)
    assert re.match(r"scene: cloth\.[01]: cannot be untangled at the start: ", text)
    assert re.search(r"242 vertices and triangles are in bodies, first at vertex \d+ near \[", text)
    assert text.endswith('; move it there, or go on with untangle = "partly"')


def test_partly_goes_on_and_off_leaves_the_start_alone():
    simulation = build(grid([0, 0, 0]), collider=NO_ROOM, untangle="partly")
    assert simulation.untangled.left > 0
    simulation = build(grid(), grid(), untangle="off")
    assert simulation.untangled is None
    assert (simulation.state.positions == simulation.world.positions).all()
    with pytest.raises(
        WeftError, match=r"^scene: cloth.0: vertex 60 starts 100 mm inside collider.0; move one of them$"
    ):
        build(grid(), collider=[ball(0.1, 0, 0, 0.1)], untangle="off")


def test_methods_that_count_on_no_gap_start_as_the_scene_says():
    method = {"response": "contact_filter"}
    simulation = build(grid(), grid(), method=method)
    assert simulation.untangled is None
    assert (simulation.state.positions == simulation.world.positions).all()
    with pytest.raises(
        WeftError, match=r"^scene: cloth.1: vertex 60 starts 100 mm inside collider.0; move one of them$"
    ):
        build(grid([0, 0, 3]), grid(), collider=[ball(0.1, 0, 0, 0.1)], method=method)


def test_a_resumed_run_starts_from_the_same_bits(tmp_path):
    scene = Scene.model_validate(
        {"cloth": [grid(), grid([0.003, 0.005, 0.25], plane="xz")], "fps": 2.0, "duration": 1.0, "steps_per_frame": 20}
    )
    whole = run(scene, tmp_path / "whole")
    assert whole.meta["untangled"]["crossings"] > 0
    run(scene.model_copy(update={"duration": 0.5}), tmp_path / "resumed")
    resumed = run(scene, tmp_path / "resumed", resume=True)
    assert (whole.positions == resumed.positions).all()
    assert all(row["intersections"] == 0 for row in resumed.certificates)


@needs_real_data
@pytest.mark.parametrize(
    ("file", "scale", "crossings"),
    [
        pytest.param("garments/dress-v5k-f10k-v3.obj", 0.01, 4, marks=pytest.mark.slow),
        ("makehuman/female_casualsuit01.obj", 0.1, 2),
    ],
)
def test_a_garment_that_crosses_itself_is_untangled(file, scale, crossings):
    simulation = build({"mesh": {"file": str(DATA.absolute() / file), "scale": scale}})
    assert simulation.untangled.crossings == crossings
    assert simulation.untangled.moved < 0.005
    assert_stays_clear(simulation, frames=2)
