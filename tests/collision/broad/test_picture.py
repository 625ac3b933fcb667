import numpy as np
import pytest

from weft.collision.broad import BROAD_PHASES
from weft.collision.broad.picture import build_wireframe, untested_boxes
from weft.geometry.mesh import Mesh, build_grid


@pytest.mark.parametrize("name", ["binary_tree", "aabb_tree", "quad_tree", "linear_tree", "spatial_hash"])
def test_boxes_far_from_the_other_mesh_are_not_tested(name):
    """As in paper 001's Fig. 5: a cloth against one triangle."""
    cloth = build_grid((1.0, 1.0), (33, 33))
    triangle = Mesh(np.array([[0.4, 0.4, -0.1], [0.45, 0.4, 0.1], [0.4, 0.45, 0.1]]), np.array([[0, 1, 2]], np.int32))
    member = BROAD_PHASES.load(name)
    a, b = member(cloth), member(triangle)
    a.refit(cloth.positions)
    b.refit(triangle.positions)
    pairs = a.pairs(b)
    assert len(pairs)
    lower, upper, depth = untested_boxes(a)
    assert len(lower) > 0.6 * len(cloth.triangles)
    assert (np.diff(depth) >= 0).all()
    # what was skipped does not meet the triangle
    meets = ((lower <= triangle.positions.max(axis=0)) & (upper >= triangle.positions.min(axis=0))).all(axis=1)
    assert not meets.any()
    top = untested_boxes(a, outermost=True)
    assert 0 < len(top.lower) <= len(lower)

    def within(inner_lower, inner_upper):
        return (inner_lower[:, None] >= top.lower).all(axis=2) & (inner_upper[:, None] <= top.upper).all(axis=2)

    assert within(lower, upper).any(axis=1).all()  # they cover all that was skipped
    deeper = top.depth[:, None] > top.depth
    assert not (within(top.lower, top.upper) & deeper).any()  # and none lies in another


def test_all_boxes_of_the_baseline_are_tested():
    mesh = build_grid((1.0, 1.0), (4, 4))
    phase = BROAD_PHASES.load("all_pairs")(mesh)
    phase.refit(mesh.positions)
    phase.self_pairs()
    assert len(untested_boxes(phase).lower) == 0


def test_wireframe_is_closed_and_faces_outward():
    lower, upper = np.zeros((2, 3)), np.array([[1.0, 2.0, 3.0], [0.5, 0.5, 0.5]])
    positions, triangles = build_wireframe(lower, upper, 0.01)
    assert positions.shape == (2 * 96, 3)
    assert triangles.shape == (2 * 144, 3)
    corners = positions[triangles[:144]]
    volume = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum() / 6
    assert volume == pytest.approx(4 * 0.01**2 * (1.01 + 2.01 + 3.01))
    np.testing.assert_allclose(positions[:96].min(axis=0), -0.005)
    np.testing.assert_allclose(positions[:96].max(axis=0), upper[0] + 0.005)
