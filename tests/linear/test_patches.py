"""The blocks of patches, by themselves; the preconditioner that they make is tested with the solver."""

from __future__ import annotations

import numpy as np
import pytest

from weft.linear import patches as module
from weft.linear.blocks import build_matrix
from weft.linear.lanes import MODES, MODES_WIDTH
from weft.linear.patches import build_patches, invert_modes


@pytest.mark.parametrize(("most", "expected"), [(0.25, 8), (0.1, 2), (0.01, 2)])
def test_large_patches_are_joined_until_they_are_few_or_each_is_a_whole_piece(monkeypatch, most, expected):
    """Two threads of 256 vertices that nothing ties together: four patches of 64 each, or one of them all."""
    monkeypatch.setattr(module, "MOST", most)
    one = np.stack([np.arange(255), np.arange(1, 256)], axis=1)
    patches = build_patches(build_matrix(np.concatenate([one, one + 256]).astype(np.int32), 512))
    assert len(patches.inverse) == expected
    assert sorted(patches.order) == list(range(512))
    assert len(set(zip(patches.pieces[patches.large], patches.order // 256, strict=True))) == 2


def test_the_inverse_is_symmetric_where_rounding_left_a_block_that_is_not(rng):
    """The next patches would make more of it, until nothing else is left."""
    root, skew = rng.normal(size=(2, 3, MODES, MODES))
    even, odd = root @ root.transpose(0, 2, 1) + np.eye(MODES), 1e-6 * (skew - skew.transpose(0, 2, 1))
    blocks, inverse = np.zeros((2, 3, MODES, MODES_WIDTH))
    blocks[:, :, :MODES] = even + odd
    for k in range(3):
        invert_modes(blocks, k, inverse)
    found = inverse[:, :, :MODES]
    np.testing.assert_allclose(found, np.linalg.inv(even), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found, found.transpose(0, 2, 1), rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("tilt", [1e-3, 1e-4, 1e-5, 1e-6])
def test_two_vertices_that_turn_about_themselves_leave_nothing_but_what_is_stiff(rng, tilt):
    """Their axis is tilted a little out of a plane: pivots in a fixed order left a way to move made of rounding."""
    blocks, inverse = np.zeros((2, 50, MODES, MODES_WIDTH))
    for k in range(50):
        angle = rng.uniform(0.0, 2.0 * np.pi)
        x, y, z = np.cos(angle), np.sin(angle), tilt
        ways = [np.hstack([np.eye(3), f * np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])]) for f in (1.0, -1.0)]
        roots = rng.normal(size=(2, 3, 3))
        blocks[k, :, :MODES] = sum(
            z.T @ (root @ root.T + 0.1 * np.eye(3)) @ z for z, root in zip(ways, roots, strict=True)
        )
        invert_modes(blocks, k, inverse)
    full, found = blocks[:, :, :MODES], inverse[:, :, :MODES]
    np.testing.assert_allclose(full @ found @ full, full, atol=1e-6)
    assert np.abs(found).max() < 1e4
