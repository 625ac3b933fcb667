"""Soups of triangles, and what meets in them: for responses that must let nothing cross."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np

from weft.collision.broad import BROAD_PHASES
from weft.collision.certificate import self_intersections
from weft.collision.narrow.continuous import time_of_impact
from weft.collision.response import StepStart, Surroundings
from weft.geometry.contacts import join_contacts
from weft.geometry.mesh import Mesh

DT = 0.01
NOTHING = join_contacts([])
NONE = np.zeros(0, np.int32)


def soup(rng, n_triangles, spread=1.0):
    """Triangles of about 0.2 m that do not cross, packed into a box."""
    kept: list[np.ndarray] = []
    while len(kept) < n_triangles:
        new = rng.uniform(-spread / 2, spread / 2, 3) + rng.uniform(-0.15, 0.15, (3, 3))
        points = np.concatenate([*kept, new])
        if len(self_intersections(points, np.arange(len(points), dtype=np.int32).reshape(-1, 3))) == 0:
            kept.append(new)
    return Mesh(np.concatenate(kept), np.arange(3 * n_triangles, dtype=np.int32).reshape(-1, 3))


def begun(build, cloth, expected, *, bodies=None, bodies_t1=None, masses=None, pinned=NONE, impulses=None, **more):
    """A response that has begun a step from `cloth` to the positions `expected`; `build` makes it."""
    x, n = cloth.positions, cloth.n_vertices
    bodies_t0 = np.zeros((0, 3)) if bodies is None else bodies.positions
    response = build(
        Surroundings(
            cloth,
            bodies,
            np.full(n, 0.01),
            np.full(n, 0.3),
            np.full(len(bodies_t0), -1.0),
            np.full(n, 1e-3) if masses is None else masses,
            partial(BROAD_PHASES.load("linear_tree")),
            np.zeros(len(bodies_t0), np.int32),
        )
    )
    v = (expected - x) / DT
    response.begin(
        StepStart(
            x=x,
            v=v,
            ahead=expected,
            x_free=expected,
            touches=np.zeros(n, np.uint8),
            impulses=np.zeros_like(x) if impulses is None else impulses,
            pinned=pinned,
            pin_velocities=v[pinned],
            bodies_t0=bodies_t0,
            bodies_t1=bodies_t0 if bodies_t1 is None else bodies_t1,
            dt=DT,
            **({"contacts": NOTHING} | more),
        )
    )
    return response


def n_meetings(x_t0, x_t1, triangles, kinds=("vertex-triangle", "edge-edge")):
    """Pairs of triangles without a common vertex that meet on the straight way, by the conservative test."""
    found = 0
    for a, b in combinations(range(len(triangles)), 2):
        p, q = triangles[a], triangles[b]
        rows = [(i, *q) for i in p] + [(i, *p) for i in q]
        found += int((time_of_impact(x_t0[rows], x_t1[rows], kind=kinds[0]) <= 1.0).any())
        edges = [((t[0], t[1]), (t[1], t[2]), (t[2], t[0])) for t in (p, q)]
        rows = [(*e, *f) for e in edges[0] for f in edges[1]]
        found += int((time_of_impact(x_t0[rows], x_t1[rows], kind=kinds[1]) <= 1.0).any())
    return found
