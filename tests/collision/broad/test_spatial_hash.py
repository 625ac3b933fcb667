import numpy as np
import pytest
from tests.collision.broad import states

from weft.collision.broad.all_pairs import AllPairs
from weft.collision.broad.spatial_hash import SpatialHash, find_place, key_of, next_prime
from weft.geometry.mesh import Mesh, build_grid


def make(mesh, **options):
    return SpatialHash(mesh, SpatialHash.Parameters(**options))


def test_keys_count_along_x_then_z_then_y():
    """Eq. 18: neighbours along x differ by 1, along z by a row, along y by a plane."""
    shape = np.array([4, 5, 6])
    keys = {key_of(shape, i, j, k) for i in range(4) for j in range(5) for k in range(6)}
    assert keys == set(range(4 * 5 * 6))
    assert key_of(shape, 1, 0, 0) == 1
    assert key_of(shape, 0, 0, 1) == 4
    assert key_of(shape, 0, 1, 0) == 24


def test_places_follow_the_quadratic_survey():
    """Eq. 19 and 20: h, h + 1, h + 4, h + 9, ... modulo the size of the table."""
    keys = np.full(11, -1, np.int64)
    for key, place in ((14, 3), (25, 4), (3, 7), (47, 1)):  # all of them 3 modulo 11
        assert find_place(keys, key) == place
        keys[place] = key
    assert find_place(keys, 25) == 4
    assert find_place(keys, 47) == 1


def test_a_table_of_prime_size_that_is_half_full_has_room_for_every_key():
    n = next_prime(97)
    assert n == 97
    keys = np.full(n, -1, np.int64)
    for key in range(0, n * (n // 2), n):  # all in one place
        place = find_place(keys, key)
        assert keys[place] == -1
        keys[place] = key


def test_next_prime():
    assert [next_prime(n) for n in (0, 2, 3, 4, 8, 90, 7920)] == [2, 2, 3, 5, 11, 97, 7927]


def test_cubes_are_as_large_as_an_edge_and_as_the_motion():
    mesh = build_grid((1.0, 1.0), (11, 11))
    phase = make(mesh)
    phase.refit(mesh.positions, None, 0.01)
    edges = mesh.positions[mesh.topology.edges]
    mean = np.linalg.norm(edges[:, 0] - edges[:, 1], axis=1).mean()
    assert phase.cube_size == pytest.approx(mean + 0.01)
    phase.refit(mesh.positions, mesh.positions + np.array([0.0, 0.3, 0.4]), 0.01)
    assert phase.cube_size > 0.5  # eq. 21


def test_every_cube_lists_what_touches_it():
    mesh, x_t0, x_t1, margin = states.crumpled()
    phase = make(mesh)
    phase.refit(x_t0, x_t1, margin)
    table = phase.table
    listed = {}
    for place in np.flatnonzero(table.keys >= 0):
        listed[int(table.keys[place])] = table.items[table.starts[place] : table.starts[place + 1]].tolist()
    expected: dict[int, list[int]] = {}
    for ti, (i0, j0, k0, i1, j1, k1) in enumerate(table.cubes):
        for i in range(i0, i1 + 1):
            for j in range(j0, j1 + 1):
                for k in range(k0, k1 + 1):
                    expected.setdefault(key_of(table.shape, i, j, k), []).append(ti)
    assert listed == expected


def test_nodes_only_finds_some_pairs_and_no_wrong_ones():
    mesh, x_t0, x_t1, margin = states.crumpled((23, 19))
    phase, baseline = make(mesh, fill="nodes"), AllPairs(mesh)
    assert not phase.complete
    for each in (phase, baseline):
        each.refit(x_t0, x_t1, margin)
    found = {tuple(row) for row in phase.self_pairs().tolist()}
    every = {tuple(row) for row in baseline.self_pairs().tolist()}
    assert found < every
    assert len(found) > 0.1 * len(every)


def test_nodes_only_misses_a_node_in_the_middle_of_a_triangle():
    """Paper 004's own warning: nodes of a colliding pair can fall into different cubes."""
    x = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0.3, 0.3, 0.01], [0.4, 0.3, 0.01], [0.3, 0.4, 0.01]])
    mesh = Mesh(x, np.array([[0, 1, 2], [3, 4, 5]], np.int32))
    for fill, n in (("nodes", 0), ("complete", 1)):
        phase = make(mesh, fill=fill, cube_size=0.2)
        phase.refit(x, None, 0.05)
        assert len(phase.self_pairs()) == n


def test_two_nodes_in_one_cube_pair_all_triangles_around_them():
    mesh = build_grid((1.0, 1.0), (5, 5))
    x = mesh.positions * [1.0, 1.0, 0.0]
    x[18] = x[6] + [0.01, 0.01, 0.01]
    phase = make(mesh, fill="nodes", cube_size=0.06)
    phase.refit(x, None, 0.1)
    around = mesh.topology.vertex_triangles
    boxes = AllPairs(mesh)
    boxes.refit(x, None, 0.1)
    meeting = {tuple(row) for row in boxes.self_pairs().tolist()}
    expected = {tuple(sorted((int(a), int(b)))) for a in around.row(6) for b in around.row(18) if a != b}
    assert {tuple(row) for row in phase.self_pairs().tolist()} == expected & meeting


def test_huge_triangles_do_not_fill_the_memory():
    state = states.exploded()
    phase = make(state.mesh, cube_size=1e-4)
    phase.refit(state.x_t0, None, 0.0)
    assert len(phase.table.items) <= 27 * len(state.mesh.triangles)
