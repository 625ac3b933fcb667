import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from weft.collision.culling.ipsilateral import Ipsilateral
from weft.geometry.mesh import Mesh

ROW = np.array([[3, 0]], np.int32)
TRIANGLE = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])


def is_kept(variant, x_t0, x_t1):
    mesh = Mesh(np.asarray(x_t0, float), np.array([[0, 1, 2]], np.int32))
    filter_ = Ipsilateral(mesh, Ipsilateral.Parameters(variant=variant))
    filter_.refit(x_t0, x_t1)
    return bool(filter_.keep(ROW)[0])


def step(p_t0, p_t1, triangle_t1=TRIANGLE):
    return np.concatenate([TRIANGLE, [p_t0]]), np.concatenate([triangle_t1, [p_t1]])


@pytest.mark.parametrize("variant", ["published", "ends", "sound"])
def test_sides(variant):
    assert not is_kept(variant, *step([0.2, 0.2, 1.0], [0.3, 0.2, 0.5]))
    assert not is_kept(variant, *step([0.2, 0.2, -1.0], [0.3, 0.2, -0.1]))
    assert is_kept(variant, *step([0.2, 0.2, 1.0], [0.3, 0.2, -0.5]))
    assert is_kept(variant, *step([0.2, 0.2, 0.0], [0.3, 0.2, 0.5]))  # in the plane


def test_published_misses_a_triangle_that_moves_onto_a_vertex():
    ends = step([0.2, 0.2, 1.0], [0.2, 0.2, 1.0], TRIANGLE + np.array([0, 0, 2.0]))
    assert not is_kept("published", *ends)
    assert is_kept("ends", *ends)
    assert is_kept("sound", *ends)


def test_ends_misses_a_vertex_that_passes_twice():
    """The triangle rocks about the y axis while the vertex runs along x: it is above the plane only on the way."""
    x_t0 = np.array([[-2.0, -2, 2], [2, -2, -2], [0, 3, 0], [-1, 0, 0.1]])
    x_t1 = np.array([[-2.0, -2, -2], [2, -2, 2], [0, 3, 0], [1, 0, 0.1]])
    times = np.linspace(0, 1, 101)
    sides = []
    for t in times:
        a, b, c, p = (1 - t) * x_t0 + t * x_t1
        sides.append(np.cross(b - a, c - a) @ (p - a))
    assert sides[0] * sides[-1] > 0 > min(np.array(sides) * sides[0])
    assert not is_kept("ends", x_t0, x_t1)
    assert is_kept("sound", x_t0, x_t1)


POSITIONS = hnp.arrays(np.float64, (4, 3), elements=st.floats(-2, 2, width=16))


@settings(deadline=None)
@given(POSITIONS, POSITIONS)
def test_sound_removes_only_what_stays_on_one_side(x_t0, x_t1):
    if is_kept("sound", x_t0, x_t1):
        return
    t = np.linspace(0, 1, 41)[:, None, None]
    x = (1 - t) * x_t0 + t * x_t1
    a, b, c, p = x[:, 0], x[:, 1], x[:, 2], x[:, 3]
    side = np.einsum("ij,ij->i", np.cross(b - a, c - a), p - a)
    assert (side > 0).all() or (side < 0).all()
