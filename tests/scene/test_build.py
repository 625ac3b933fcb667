"""From a scene to arrays: positions, pins and masses are exact."""

from __future__ import annotations

import numpy as np
import pytest

from weft.models.fabrics import load_fabric
from weft.parameters import check
from weft.scene.build import build_world
from weft.scene.files import load_scene
from weft.scene.schema import Scene

PYRAMID = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0.5 0.5 1\nf 1 2 5\nf 2 3 5\nf 3 4 5\nf 4 1 5\n"


def world_of(*cloths, folder=".", **keys):
    return build_world(check(Scene, {"cloth": list(cloths), "folder": str(folder), **keys}, "test"))


def grid(size=(2.0, 1.0), vertices=(5, 3), **keys):
    return {"size": list(size), "vertices": list(vertices), **keys}


@pytest.mark.parametrize(
    ("plane", "u", "v", "normal"),
    [
        ("xy", [1, 0, 0], [0, 1, 0], [0, 0, 1]),
        ("xz", [1, 0, 0], [0, 0, 1], [0, -1, 0]),
        ("yz", [0, 1, 0], [0, 0, 1], [1, 0, 0]),
    ],
)
def test_grid_lies_in_its_plane(plane, u, v, normal):
    world = world_of({"grid": grid(plane=plane, center=[1, 2, 3])})
    for i in range(5):
        for j in range(3):
            wanted = np.array([1, 2, 3]) + (0.5 * i - 1.0) * np.array(u) + (0.5 * j - 0.5) * np.array(v)
            np.testing.assert_array_equal(world.positions[3 * i + j], wanted)
    a, b, c = world.positions[world.triangles[0]]
    np.testing.assert_allclose(np.cross(b - a, c - a), 0.25 * np.array(normal), atol=1e-15)


def test_grid_turns_about_its_centre():
    world = world_of({"grid": grid(center=[0, 0, 1], turn=[0, 0, 90])})
    np.testing.assert_allclose(world.positions[0], [0.5, -1, 1], atol=1e-15)
    np.testing.assert_allclose(world.positions[-1], [-0.5, 1, 1], atol=1e-15)


def test_ripples_are_sines_along_the_normal_and_leave_the_rest_shape_flat():
    ripples = [{"amplitude": 0.1, "waves": [1, 0.5], "phase": 90}, {"amplitude": 0.02, "waves": [0, 2]}]
    world = world_of({"grid": grid(plane="xz", ripples=ripples)})
    i, j = np.divmod(np.arange(15), 3)
    u, v = i / 4, j / 2
    height = 0.1 * np.cos(2 * np.pi * (u + 0.5 * v)) + 0.02 * np.sin(2 * np.pi * 2 * v)
    np.testing.assert_allclose(world.positions[:, 1], -height, atol=1e-15)
    np.testing.assert_array_equal(world.pieces[0].mesh.positions[:, 2], 0.0)


@pytest.mark.parametrize(
    ("pin", "vertices"),
    [
        ({"where": "left"}, [0, 1, 2]),
        ({"where": "right"}, [12, 13, 14]),
        ({"where": "bottom"}, [0, 3, 6, 9, 12]),
        ({"where": "top"}, [2, 5, 8, 11, 14]),
        ({"where": "corners"}, [0, 2, 12, 14]),
        ({"where": "center"}, [7]),
        ({"where": "top", "every": 2}, [2, 8, 14]),
        ({"vertices": [4, 1, 4]}, [1, 4]),
        ({"box": [[0.4, 0.6, 0.1], [-0.1, -0.1, -0.1]]}, [7, 8]),
        ({"box": [[0, 0, 0], [0, 0, 0]]}, [7]),
    ],
)
def test_pins_hold(pin, vertices):
    world = world_of({"grid": grid(), "pins": [pin]})
    np.testing.assert_array_equal(world.pins[0].vertices, vertices)
    np.testing.assert_array_equal(world.pins[0].start, world.positions[vertices])
    np.testing.assert_array_equal(world.pins[0].positions(3.0), world.positions[vertices])


def test_corners_of_the_smallest_grid():
    world = world_of({"grid": grid(vertices=(2, 2)), "pins": [{"where": "corners"}]})
    np.testing.assert_array_equal(world.pins[0].vertices, [0, 1, 2, 3])


def test_pins_move_turn_and_scale_about_their_centre():
    keyframes = [{"time": 0}, {"time": 2, "move": [1, 0, 0], "turn": [0, 0, 90], "scale": [2, 2, 2]}]
    world = world_of({"grid": grid(), "pins": [{"where": "left", "motion": {"keyframes": keyframes}}]})
    group = world.pins[0]
    np.testing.assert_array_equal(group.positions(0.0), group.start)
    np.testing.assert_allclose(group.positions(2.0), [[1, 0, 0], [0, 0, 0], [-1, 0, 0]], atol=1e-15)
    np.testing.assert_allclose(group.positions(9.0), group.positions(2.0))


def test_pins_may_share_vertices_that_do_not_move():
    world = world_of({"grid": grid(), "pins": [{"where": "left"}, {"where": "corners"}]})
    assert [group.name for group in world.pins] == ["cloth.0.pins.0", "cloth.0.pins.1"]


def test_cloths_are_numbered_one_after_another():
    world = world_of(
        {"grid": grid(), "velocity": [1, 2, 3]},
        {"grid": grid(vertices=(2, 2), center=[0, 0, 1]), "pins": [{"vertices": [1]}], "fabric": "silk"},
    )
    assert [piece.first for piece in world.pieces] == [0, 15]
    assert len(world.positions) == 19
    np.testing.assert_array_equal(world.pins[0].vertices, [16])
    np.testing.assert_array_equal(world.triangles[16:] - 15, [[0, 2, 3], [0, 3, 1]])
    np.testing.assert_array_equal(world.velocities[:15], np.tile([1.0, 2.0, 3.0], (15, 1)))
    np.testing.assert_array_equal(world.velocities[15:], 0.0)
    assert world.pieces[1].fabric == load_fabric("silk")


@pytest.mark.parametrize("fabric", ["cotton", "silk"])
def test_masses_add_up_to_density_times_area(fabric):
    world = world_of({"grid": grid(size=(1.3, 0.7), vertices=(17, 9)), "fabric": fabric})
    assert world.masses.min() > 0
    np.testing.assert_allclose(world.masses.sum(), load_fabric(fabric).density * 1.3 * 0.7, rtol=1e-13)


def test_mass_of_a_vertex_is_a_third_of_its_triangles():
    world = world_of({"grid": grid(size=(1, 1), vertices=(2, 2)), "fabric": "cotton"})
    np.testing.assert_allclose(world.masses, 0.15 * np.array([2, 1, 1, 2]) / 6)


def test_mesh_is_found_beside_the_scene_and_placed(tmp_path):
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "p.obj").write_text(PYRAMID)
    (tmp_path / "s.toml").write_text(
        '[[cloth]]\nmesh = { file = "meshes/p.obj", scale = 2, turn = [90, 0, 0], move = [0, 0, 5] }\n'
    )
    world = build_world(load_scene(tmp_path / "s.toml"))
    np.testing.assert_allclose(world.positions[2], [2, 0, 7], atol=1e-15)
    np.testing.assert_allclose(world.positions[4], [1, -2, 6], atol=1e-15)
    np.testing.assert_array_equal(world.pieces[0].mesh.positions, world.positions)
    area = 4 * (4 * np.sqrt(1.25) / 2)
    np.testing.assert_allclose(world.masses.sum(), 0.15 * area, rtol=1e-13)


def test_mesh_by_its_name_alone(tmp_path):
    (tmp_path / "p.obj").write_text(PYRAMID)
    world = world_of({"mesh": "p.obj"}, folder=tmp_path)
    np.testing.assert_array_equal(world.positions[4], [0.5, 0.5, 1.0])
    again = world_of({"mesh": str(tmp_path / "p.obj")}, folder="/nowhere")
    np.testing.assert_array_equal(again.positions, world.positions)


def test_distance_kept_to_bodies():
    coarse = world_of({"grid": grid(size=(1, 1), vertices=(2, 2))})
    np.testing.assert_allclose(coarse.pieces[0].contact_distance, 0.2 * (4 + np.sqrt(2)) / 5)
    fine = world_of({"grid": grid(size=(0.01, 0.01), vertices=(11, 11))})
    assert fine.pieces[0].contact_distance == load_fabric("cotton").thickness
    given = world_of({"grid": grid(), "contact_distance": 0.003})
    assert given.pieces[0].contact_distance == 0.003


def test_bodies_stand_where_the_scene_puts_them():
    world = world_of(
        {"grid": grid(center=[0, 0, 5])},
        collider=[{"capsule": {"radius": 0.1, "length": 2, "center": [0, 0, 1]}, "turn": [90, 0, 0], "friction": 0.7}],
    )
    body = world.bodies[0]
    assert body.friction == 0.7
    d, normals = body.distances(np.array([[0, 1.0, 1.5], [0, -1.6, 1]]), 0.0)
    np.testing.assert_allclose(d, [0.4, 0.5], atol=1e-15)
    np.testing.assert_allclose(normals, [[0, 0, 1], [0, -1, 0]], atol=1e-15)


def test_pinned_vertices_may_start_inside_a_body():
    ball = {"sphere": {"radius": 0.25, "center": [0, 0, 0]}}
    world = world_of({"grid": grid(), "pins": [{"where": "center"}]}, collider=[ball])
    assert len(world.bodies) == 1
