import numpy as np

from weft.collision.broad.lanes import count_bits, lowest_bit, meeting_mask, overlap_mask, shared_vertex_mask
from weft.jit import kernel


@kernel
def overlap(blocks_a, a, blocks_b, b):
    return overlap_mask(blocks_a, a, blocks_b, b)


@kernel
def meeting(starts_a, ends_a, a, starts_b, ends_b, b):
    return meeting_mask(starts_a, ends_a, a, starts_b, ends_b, b)


@kernel
def shared(corners_a, a, corners_b, b):
    return shared_vertex_mask(corners_a, a, corners_b, b)


@kernel
def bits(mask):
    return lowest_bit(mask), count_bits(mask)


def as_matrix(mask):
    return np.array([[(int(mask) >> (8 * i + j)) & 1 for j in range(8)] for i in range(8)], bool)


def test_overlap_mask_agrees_with_numpy():
    rng = np.random.default_rng(0)
    lower = rng.random((5, 3, 8)).astype(np.float32)
    upper = lower + 0.4 * rng.random((5, 3, 8)).astype(np.float32)
    lower[3, :, 5:] = np.inf
    upper[3, :, 5:] = -np.inf
    upper[2, 0, 1] = lower[4, 0, 6]  # faces that just touch
    blocks = np.ascontiguousarray(np.concatenate([lower, -upper], axis=1))
    for a in range(5):
        for b in range(5):
            expected = (
                (lower[a][:, :, None] <= upper[b][:, None, :]) & (lower[b][:, None, :] <= upper[a][:, :, None])
            ).all(axis=0)
            np.testing.assert_array_equal(as_matrix(overlap(blocks, a, blocks, b)), expected)


def test_boxes_meet_unless_they_are_apart_on_the_same_side_at_both_ends():
    rng = np.random.default_rng(2)
    lower = 2.0 * rng.random((2, 6, 3, 8)).astype(np.float32)  # start and end
    upper = lower + 0.4 * rng.random(lower.shape).astype(np.float32)
    lower[:, 3, :, 5:], upper[:, 3, :, 5:] = np.inf, -np.inf
    starts, ends = (np.ascontiguousarray(np.concatenate([lower[k], -upper[k]], axis=1)) for k in (0, 1))
    n_met, n_swept = 0, 0
    for a in range(3):
        for b in range(6):
            above = (lower[:, a][:, :, :, None] > upper[:, b][:, :, None, :]).all(axis=0)
            below = (lower[:, b][:, :, None, :] > upper[:, a][:, :, :, None]).all(axis=0)
            met = ~(above | below).any(axis=0)
            np.testing.assert_array_equal(as_matrix(meeting(starts, ends, a, starts, ends, b)), met)
            n_met += met.sum()
            n_swept += as_matrix(overlap(np.minimum(starts, ends), a, np.minimum(starts, ends), b)).sum()
    assert 0 < n_met < n_swept


def test_shared_vertex_mask_agrees_with_numpy():
    rng = np.random.default_rng(1)
    edges = rng.integers(0, 9, (4, 2, 8)).astype(np.int32)
    edges = np.concatenate([edges, edges[:, 1:]], axis=1)
    triangles = rng.integers(0, 9, (4, 3, 8)).astype(np.int32)
    for corners_b in (np.ascontiguousarray(edges), triangles):
        for a in range(4):
            for b in range(4):
                expected = (edges[a][:, None, :, None] == corners_b[b][None, :, None, :]).any(axis=(0, 1))
                mask = shared(np.ascontiguousarray(edges), a, corners_b, b)
                np.testing.assert_array_equal(as_matrix(mask), expected)


def test_bits():
    for k in range(64):
        assert bits(np.uint64(1 << k)) == (k, 1)
        assert bits(np.uint64((1 << 64) - (1 << k))) == (k, 64 - k)
