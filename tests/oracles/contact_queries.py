"""Queries whose contact is known without any test: built backwards from the moment of contact, in whole numbers.

At the dyadic time j / 256 the four points touch: every coordinate is an integer, the contact point is a weighted mean
with weights in sixty-fourths, and each vertex has an integer velocity. Going back to t = 0 and on to t = 1 stays in
integers below 2^53, so the doubles that come out describe exactly that motion: the first contact is at j / 256 or
before, and no test may answer later. A whole-number matrix turns them out of the axes, a power of two scales them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
STEPS = 256  # contact happens at a whole number of these
PARTS = 64  # weights are multiples of 1 / PARTS
KINDS = ("vertex-triangle", "edge-edge")

TURNS = np.array(  # three times a rotation, and the identity
    [[[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[2, -2, 1], [1, 2, 2], [2, 1, -2]], [[1, 2, 2], [-2, 2, -1], [2, 1, -2]]]
)


class Queries(NamedTuple):
    x_t0: Floats
    """(n, 4, 3)"""
    x_t1: Floats
    """(n, 4, 3)"""
    contact_times: Floats
    """(n,): they touch then at the latest"""


class Moment(NamedTuple):
    """Positions and velocities at the moment of contact, and the moment."""

    x: Ints
    v: Ints
    j: Ints


def _weights(rng: np.random.Generator, n: int, inner: int) -> Ints:
    """(n, 3) whole weights that sum to PARTS, `inner` of them not zero."""
    cuts = np.sort(rng.integers(1, PARTS, size=(n, 2)), axis=1)
    weights = np.stack([cuts[:, 0], cuts[:, 1] - cuts[:, 0], PARTS - cuts[:, 1]], axis=1)
    if inner == 2:
        weights = np.stack([cuts[:, 0], PARTS - cuts[:, 0], np.zeros(n, np.int64)], axis=1)
    if inner == 1:
        weights = np.tile(np.array([PARTS, 0, 0]), (n, 1))
    return rng.permuted(weights, axis=1)


def _touching(rng: np.random.Generator, n: int, kind: str, inner: int) -> Ints:
    """Four points that touch: inside (inner = 3), on an edge (2) or vertex on vertex (1)."""
    x = rng.integers(-1000, 1000, size=(n, 4, 3)) * PARTS
    if kind == "vertex-triangle":
        x[:, 0] = np.einsum("qk,qki->qi", _weights(rng, n, inner), x[:, 1:] // PARTS)
        return x
    for first in (0, 2):
        along = rng.integers(-1000, 1000, size=(n, 3))
        part = rng.integers(1, PARTS, size=n)
        if inner == 1 or (inner == 2 and first == 0):
            part = rng.integers(0, 2, size=n) * PARTS
        x[:, first] = -part[:, None] * along
        x[:, first + 1] = (PARTS - part)[:, None] * along
    return x


def _velocities(rng: np.random.Generator, n: int, fastest: int = 4000) -> Ints:
    return rng.integers(-fastest, fastest + 1, size=(n, 4, 3))


def _times(rng: np.random.Generator, n: int) -> Ints:
    return rng.integers(0, STEPS + 1, size=n)


def crossing(rng: np.random.Generator, n: int, kind: str) -> Moment:
    return Moment(_touching(rng, n, kind, 3), _velocities(rng, n), _times(rng, n))


def vertex_on_edge(rng: np.random.Generator, n: int, kind: str) -> Moment:
    return Moment(_touching(rng, n, kind, 2), _velocities(rng, n), _times(rng, n))


def vertex_on_vertex(rng: np.random.Generator, n: int, kind: str) -> Moment:
    return Moment(_touching(rng, n, kind, 1), _velocities(rng, n), _times(rng, n))


def nearly_coplanar(rng: np.random.Generator, n: int, kind: str) -> Moment:
    """Nearly flat at contact, sideways motion thousands of times faster than the approach."""
    moment = crossing(rng, n, kind)
    flat = np.array([1, 1, 0])
    x = _touching(rng, n, kind, 3) * flat
    lift = rng.integers(-3, 4, size=(n, 4))
    return Moment(x, moment.v * flat * 16 + lift[:, :, None] * np.array([0, 0, 1]), moment.j)


def sliding_in_plane(rng: np.random.Generator, n: int, kind: str) -> Moment:
    """All four stay in one plane for good; a vertex slides in over an edge, or touches at a corner."""
    flat = np.array([1, 1, 0])
    x = np.where(rng.random(n)[:, None, None] < 0.5, _touching(rng, n, kind, 2), _touching(rng, n, kind, 1)) * flat
    return Moment(x, _velocities(rng, n) * flat, _times(rng, n))


def sliding_on_line(rng: np.random.Generator, n: int, kind: str) -> Moment:
    """All four stay on one line for good."""
    line = np.array([1, 0, 0])
    return Moment(_touching(rng, n, kind, 1) * line, _velocities(rng, n) * line, _times(rng, n))


def edge_through_edge(rng: np.random.Generator, n: int, kind: str) -> Moment:
    """Parallel at contact: edges that lie on one line then, or a triangle that has no area then."""
    line = np.array([3, 5, -2])
    x = _touching(rng, n, kind, 2)[:, :, :1] * line
    return Moment(x, _velocities(rng, n), _times(rng, n))


def no_motion(rng: np.random.Generator, n: int, kind: str) -> Moment:
    inner = rng.integers(1, 4, size=n)[:, None, None]
    x = np.where(
        inner == 3,
        _touching(rng, n, kind, 3),
        np.where(inner == 2, _touching(rng, n, kind, 2), _touching(rng, n, kind, 1)),
    )
    return Moment(x, np.zeros((n, 4, 3), np.int64), np.zeros(n, np.int64))


def common_motion(rng: np.random.Generator, n: int, kind: str) -> Moment:
    """Touching, and all moving alike, much farther than they are large."""
    shared = rng.integers(-1_000_000, 1_000_000, size=(n, 1, 3))
    return Moment(_touching(rng, n, kind, 3), np.repeat(shared, 4, axis=1), np.zeros(n, np.int64))


def touching_at_start(rng: np.random.Generator, n: int, kind: str) -> Moment:
    """In contact at t = 0 and parting, half of them from an edge or a corner."""
    x = np.where(rng.random(n)[:, None, None] < 0.5, _touching(rng, n, kind, 3), _touching(rng, n, kind, 1))
    return Moment(x, _velocities(rng, n), np.zeros(n, np.int64))


def touching_at_end(rng: np.random.Generator, n: int, kind: str) -> Moment:
    x = np.where(rng.random(n)[:, None, None] < 0.5, _touching(rng, n, kind, 3), _touching(rng, n, kind, 2))
    return Moment(x, _velocities(rng, n), np.full(n, STEPS))


def turning(rng: np.random.Generator, n: int, kind: str) -> Moment:
    """Each vertex passes its place at contact fast: the elements turn over and change shape on the way."""
    return Moment(_touching(rng, n, kind, 3), _velocities(rng, n, 4_000_000), _times(rng, n))


def degenerate(rng: np.random.Generator, n: int, kind: str) -> Moment:
    """Two vertices of one side are the same and stay so."""
    x, v = _touching(rng, n, kind, 1), _velocities(rng, n)
    if kind == "vertex-triangle":
        x = _touching(rng, n, kind, 2)
        cut = _weights(rng, n, 2)
        x[:, 3], v[:, 3] = x[:, 2], v[:, 2]
        along = cut[:, :1] + cut[:, 2:]
        x[:, 0] = (along * x[:, 1] + (PARTS - along) * x[:, 2]) // PARTS
    else:
        x[:, 1], v[:, 1] = x[:, 0], v[:, 0]
        part = rng.integers(0, PARTS + 1, size=(n, 1))
        along = rng.integers(-1000, 1000, size=(n, 3))
        x[:, 2], x[:, 3] = x[:, 0] - part * along, x[:, 0] + (PARTS - part) * along
    return Moment(x, v, _times(rng, n))


FAMILIES: dict[str, Callable[[np.random.Generator, int, str], Moment]] = {
    "crossing": crossing,
    "vertex on edge": vertex_on_edge,
    "vertex through vertex": vertex_on_vertex,
    "nearly coplanar": nearly_coplanar,
    "sliding in plane": sliding_in_plane,
    "sliding on a line": sliding_on_line,
    "edge through edge": edge_through_edge,
    "no motion": no_motion,
    "common motion": common_motion,
    "touching at t = 0": touching_at_start,
    "touching at t = 1": touching_at_end,
    "turning over": turning,
    "degenerate": degenerate,
}


def build(family: str, rng: np.random.Generator, n: int, kind: str, exponent: int = -22, offset: int = 0) -> Queries:
    """n queries of one family with a known contact.

    Parameters
    ----------
    exponent : coordinates are whole multiples of 2^exponent; -22 makes elements of about 10
    offset : whole-number shift of each coordinate, in units of 2^exponent, at most 2^50
    """
    moment = FAMILIES[family](rng, n, kind)
    turn = TURNS[rng.integers(0, len(TURNS), size=n)]
    x = np.einsum("qij,qkj->qki", turn, moment.x) * STEPS
    v = np.einsum("qij,qkj->qki", turn, moment.v)
    j = moment.j[:, None, None]
    shift = rng.integers(-offset, offset + 1, size=(n, 1, 3))
    start, end = x - j * v + shift, x + (STEPS - j) * v + shift
    assert max(np.abs(start).max(), np.abs(end).max(), np.abs(end - start).max()) < 2**53
    return Queries(
        np.ldexp(start.astype(np.float64), exponent), np.ldexp(end.astype(np.float64), exponent), moment.j / STEPS
    )


def nudged(queries: Queries, rng: np.random.Generator, ulps: int = 2) -> tuple[Floats, Floats]:
    """The same with every coordinate moved by up to `ulps` roundings: contact or a miss by a hair, nobody knows."""
    ends = []
    for x in (queries.x_t0, queries.x_t1):
        moved = x.copy()
        for _ in range(ulps):
            moved = np.nextafter(moved, rng.choice([-np.inf, np.inf], size=x.shape))
        ends.append(np.where(rng.random(x.shape) < 0.5, moved, x))
    return ends[0], ends[1]


def shaken(queries: Queries, rng: np.random.Generator, size: float) -> tuple[Floats, Floats]:
    """The same with every coordinate moved at random by up to `size` of the largest coordinate of its query."""
    ends = []
    for x in (queries.x_t0, queries.x_t1):
        largest = np.abs(x).max(axis=(1, 2), keepdims=True)
        ends.append(x + rng.uniform(-size, size, size=x.shape) * largest)
    return ends[0], ends[1]


def random_motion(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """Elements of size 1 with motions of 1e-3 to 10."""
    x_t0 = rng.normal(size=(n, 4, 3))
    return x_t0, x_t0 + rng.normal(size=(n, 4, 3)) * 10.0 ** rng.uniform(-3, 1, size=(n, 1, 1))


def nearly_flat_motion(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """All four points within 1e-12 to 0.1 of a plane at both ends."""
    thickness = 10.0 ** rng.uniform(-12, -1, size=(n, 1))
    turn = np.linalg.qr(rng.normal(size=(n, 3, 3)))[0]
    ends = []
    x = rng.normal(size=(n, 4, 3))
    for _ in range(2):
        x = x + 0.5 * rng.normal(size=x.shape)
        x[:, :, 2] = rng.normal(size=(n, 4)) * thickness
        ends.append(np.einsum("qij,qkj->qki", turn, x))
    return ends[0], ends[1]
