"""The blocks of patches, by themselves; the preconditioner that they make is tested with the solver."""

from __future__ import annotations

import numpy as np

from weft.linear.lanes import MODES, MODES_WIDTH
from weft.linear.patches import invert_modes


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
