"""Pairs of triangles against the rational oracle: lattices, where every degenerate case occurs, and all scales."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.rational_intersections import is_crossing

from weft.geometry.intersections import update_crossings

APART = ([0, 1, 2], [3, 4, 5])
VERTEX = ([0, 1, 2], [3, 0, 4])
EDGE = ([0, 1, 2], [1, 0, 3])
SHARING = [APART, VERTEX, EDGE]
SCALES = [0, 500, -500, -1023, -1074]


def decide(positions: np.ndarray, pairs: list[tuple[list[int], list[int]]]) -> list[bool]:
    """The answers for pairs of triangles over common positions."""
    x = np.ascontiguousarray(positions, np.float64)
    a = np.array([first for first, _ in pairs], np.int32)
    b = np.array([second for _, second in pairs], np.int32)
    crossing = np.empty(len(pairs), np.bool_)
    rows = np.arange(len(pairs), dtype=np.int32)
    update_crossings(x, a, x, b, True, np.stack([rows, rows], axis=1), crossing)
    return crossing.tolist()


def check(positions: np.ndarray, pairs: list[tuple[list[int], list[int]]]) -> None:
    both = decide(positions, [*pairs, *((b, a) for a, b in pairs)])
    answers, swapped = both[: len(pairs)], both[len(pairs) :]
    for (a, b), answer, other in zip(pairs, answers, swapped, strict=True):
        expected = is_crossing(positions[a], positions[b], a, b)
        assert answer == other == expected, (positions[a].tolist(), positions[b].tolist(), a, b)


def lattice_points(*ranges: range) -> np.ndarray:
    return np.array(list(product(*ranges)), np.float64)


def test_every_two_triangles_of_the_cube_corners() -> None:
    """Corners have an index for each triangle, so that nothing is shared; degenerate triangles among them."""
    cube = lattice_points(range(2), range(2), range(2))
    triangles = list(combinations_with_replacement(range(8), 3))
    positions = np.concatenate([cube, cube])
    pairs = [(list(a), [8 + k for k in b]) for a, b in combinations_with_replacement(triangles, 2)]
    check(positions, pairs)


def test_every_fan_of_two_in_a_plane() -> None:
    """A vertex in the middle of a 3 x 3 lattice is shared; free corners go everywhere, also onto one another."""
    plane = lattice_points(range(-1, 2), range(-1, 2))
    x = np.concatenate([np.zeros((1, 2)), plane, plane])
    corners = list(combinations_with_replacement(range(1, 10), 2))
    pairs = [([0, *a], [0, *(9 + k for k in b)]) for a, b in combinations_with_replacement(corners, 2)]
    for axes in ([0, 1], [1, 2]):
        positions = np.zeros((19, 3))
        positions[:, axes] = x
        check(positions, pairs)


def test_every_hinge() -> None:
    """A shared edge along x, and no edge at all where its ends coincide; free corners all around it."""
    around = lattice_points(range(-1, 3), range(-1, 2), range(2))
    for q in ([1.0, 0, 0], [0.0, 0, 0]):
        positions = np.concatenate([[[0.0, 0, 0], q], around, around])
        n = len(around)
        pairs = [([0, 1, 2 + i], [1, 0, 2 + n + j]) for i, j in combinations_with_replacement(range(n), 2)]
        check(positions, pairs)


@settings(deadline=None, max_examples=200)
@given(st.data(), st.sampled_from(SHARING), st.sampled_from(SCALES))
def test_lattice(data: st.DataObject, pair: tuple[list[int], list[int]], exponent: int) -> None:
    width = data.draw(st.integers(1, 3))
    flat = data.draw(st.booleans())
    values = data.draw(st.lists(st.integers(-width, width), min_size=18, max_size=18))
    positions = np.array(values, np.float64).reshape(6, 3)
    if flat:
        positions[:, 2] = 0.0
    check(np.ldexp(positions, exponent), [pair])


@settings(deadline=None, max_examples=200)
@given(st.data(), st.sampled_from(SHARING), st.sampled_from(SCALES))
def test_one_ulp_from_a_lattice(data: st.DataObject, pair: tuple[list[int], list[int]], exponent: int) -> None:
    values = data.draw(st.lists(st.integers(-2, 2), min_size=18, max_size=18))
    moved = data.draw(st.lists(st.sampled_from([0, 0, 0, -1, 1]), min_size=18, max_size=18))
    flat = np.ldexp(np.array(values, np.float64), exponent)
    flat = np.where(np.array(moved) == 0, flat, np.nextafter(flat, np.where(np.array(moved) > 0, np.inf, -np.inf)))
    check(flat.reshape(6, 3), [pair])


@settings(deadline=None, max_examples=200)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=18, max_size=18), st.sampled_from(SHARING))
def test_any_doubles(values: list[float], pair: tuple[list[int], list[int]]) -> None:
    check(np.array(values).reshape(6, 3), [pair])


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32 - 1), st.sampled_from(SHARING))
def test_rotated_plane(seed: int, pair: tuple[list[int], list[int]]) -> None:
    """Lattice triangles in one plane, rotated: coplanar but for rounding."""
    rng = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    positions = rng.integers(-2, 3, (6, 3)) * [1.0, 1.0, 0.0]
    check(positions @ rotation.T, [pair])


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([0.0, 1.0, 300.0]))
def test_corner_rounded_onto_a_side(seed: int, flat: bool, shift: float) -> None:
    """A corner of B is computed to lie on a side of A, or in the inside of it, and the rest of B points away."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (6, 3)) * ([1, 1, 0] if flat else [1, 1, 1]) + shift * rng.uniform(-1, 1, 3)
    weights = np.array([rng.uniform(), rng.uniform(), 0.0 if flat else rng.uniform()])
    x[3] = weights / weights.sum() @ x[:3]
    away = x[3] - x[2] if flat else np.cross(x[1] - x[0], x[2] - x[0])
    x[4:] = x[3] + away + 0.1 * (x[4:] - x[3])
    if flat:
        x[:, 2] = x[0, 2]
    check(x, [APART, ([0, 1, 2], [3, 3, 4])])


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_repeated_indices(data: st.DataObject) -> None:
    """A triangle may name a vertex twice: it is the segment, or the point, that its corners span."""
    values = data.draw(st.lists(st.integers(-1, 1), min_size=12, max_size=12))
    corners = st.lists(st.integers(0, 3), min_size=3, max_size=3)
    check(np.array(values, np.float64).reshape(4, 3), [(data.draw(corners), data.draw(corners))])


@pytest.mark.parametrize("scale", [1.0, 2.0**900, 2.0**-1040])
def test_by_hand(scale: float) -> None:
    x = scale * np.array(
        [[0, 0, 0], [4, 0, 0], [0, 4, 0], [1, 1, 0], [1, 1, 4], [2, 2, 4], [1, 1, -4], [4, 4, 0], [8, 0, 0], [2, 0, 0]],
        float,
    )
    big = [0, 1, 2]
    assert decide(
        x,
        [
            (big, [3, 4, 5]),  # a corner touches the inside
            (big, [4, 5, 6]),  # pierced
            (big, [0, 4, 5]),  # shares a corner, stands on it
            (big, [0, 3, 4]),  # shares a corner, a side lies inside
            (big, [1, 2, 7]),  # shares an edge, flat
            (big, [1, 2, 3]),  # shares an edge, folded back
            (big, [2, 0, 1]),  # the same
            (big, [1, 8, 7]),  # shares a corner, sides on one line, pointing away
            (big, [1, 9, 6]),  # shares a corner, sides on one line, one inside the other
            (big, [9, 9, 9]),  # a point on a side
            (big, [8, 8, 7]),  # a segment outside
        ],
    ) == [True, True, False, True, False, True, True, False, True, True, False]


def test_two_meshes_share_no_index() -> None:
    """Equal indices in two meshes name different vertices: touching corners count."""
    x = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    y = np.array([[0.0, 0, 0], [-1, 0, 0], [0, -1, 0]])
    triangle = np.array([[0, 1, 2]], np.int32)
    crossing = np.empty(1, np.bool_)
    update_crossings(x, triangle, y, triangle, False, np.zeros((1, 2), np.int32), crossing)
    assert crossing.tolist() == [True]


def test_order_of_corners_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    for a, b in SHARING:
        for _ in range(20):
            x = rng.integers(-1, 2, (6, 3)).astype(float)
            turns = [([a[i] for i in p], [b[i] for i in q]) for p in TURNS for q in TURNS]
            assert len(set(decide(x, turns))) == 1


TURNS = [[0, 1, 2], [1, 2, 0], [2, 1, 0], [0, 2, 1]]


def test_gap_of_one_ulp_is_seen() -> None:
    """Lifted by the smallest step a double can make, a touching triangle is free; put back, it touches."""
    x = np.array([[0.0, 0, 1], [4, 0, 1], [0, 4, 1], [1, 1, 1], [1, 2, 3], [2, 1, 3]])
    for value, expected in ((1.0, True), (np.nextafter(1.0, 2.0), False), (np.nextafter(1.0, 0.0), True)):
        x[3, 2] = value
        assert decide(x, [APART]) == [expected]


def test_pairs_within_a_soup_of_few_vertices() -> None:
    """Forty triangles over nine lattice points: all ways of sharing and touching at once."""
    rng = np.random.default_rng(7)
    x = rng.integers(-1, 2, (9, 3)).astype(float)
    triangles = rng.integers(0, 9, (40, 3)).tolist()
    check(x, list(combinations(triangles, 2)))
