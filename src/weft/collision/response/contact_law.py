"""How contacts push, and how friction drags: the kernels of dividing planes (see `dividing_planes` for the method).

Two features of the cloth, or one of the cloth and one of a body, whose gap g is or would be below the contact
distance h push each other apart by the impulse

    j = dt k (max(d, T e) - T u),    k = K m / (1/120 s)^2 min(30, max(1, h / g)),

u being how far they part in this step (negative: approach), m the mass of a vertex, and d = h - g, but for what starts
apart (see `DRAWN`). T is 1 where they start apart and grows to 1 + `softness` (1/120 s) / dt where g is 0.9 h or less:
what was pressed together comes apart over a while, however short the steps, and does not bounce. (In a number of steps
instead, ten stacked sheets burst.) e is how far they are expected to part by inertia and by the part of gravity that
the cloth does not bear: a pair that does so is not held back, nor pushed, but elastic forces shall not press it
together. (With all of gravity, cloth that holds itself up a little above a table was drawn down to it.) Where two
layers lie on each other, one may be held up and the other not, so a pair that is within a tenth of h of contact counts
on the worse: expected to fall together, the upper of two sheets on a floor lost its contacts every few steps, dropped
on the lower one, and never lay still.

A contact that was pressed to less than half of h is at least so stiff that it bears what it bore in the last step at a
third of h. K alone goes with the mass of a vertex, but the weight of a cloth that hangs over the corner of a table does
not: on fine cloth one contact was to bear a thousand vertices, could not, and where it had closed, nothing could move
any more (edges stretched by 21 %). Both sides must say that they bore it: layers that are jammed between two others,
and bear nothing but these, would press on each other harder and harder.

Friction is a drag against slip (see `contact_filter`) under the load k (h - g), at the speed of slip when the step
starts. What stuck and is torn loose would let go by and by: cloth that was pulled over a ball stretched by 40 %, and
cloth on a slope just above the friction angle slid a twentieth of the way. Where all contacts together drag by more
than a fiftieth too much, those that do get Coulomb's force instead, against where they go (`DividingPlanes.slide`).

A pair that starts further apart than a tenth of h beyond contact is only expected to meet. Where it does not, its
impulse would pull: such pairs are let go, and taken back where that lets them meet (`DividingPlanes.release`). Held,
they drew heaps of cloth together: on `ground` with 101 x 101 vertices two in five of all springs pulled, and the heap
lay 17 mm high in place of the 35 mm that steps of 1/480 s give. What touches, or nearly does, may pull a little: it is
what keeps it from bouncing, and two sheets that lie on each other never came to rest where such contacts were let go,
too. What nearly touches stays where it is or comes a little nearer: drawn all the way to contact, it pulled with five
times the weight of the heap. With bodies, all that does not touch is let go where it would pull: a strip of which three
quarters hung over the edge of a table lay still without any friction.

Of all pairs that are near, those bear whose closest points lie inside the triangle, but for rounding (`pairs.ASIDE`),
or inside both edges; the others repeat these, and bear only where pressed hard. Where layers lie flat on each other,
two edges repeat what vertices bear, too, and there are four times as many of these pairs: they are needed where folds
cross (`drop_repeats`). With all of them heaps lie as high, and solves of `ground` with 201 x 201 vertices take half as
long again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from weft.arrays import Bools, Bytes, Floats, Ints, Longs
from weft.collision.response import LIES, MAY_TOUCH, TOUCHES
from weft.collision.response.pairs import Pairs
from weft.geometry.topology import group_rows
from weft.jit import kernel, prange

DEEP = 0.1  # of the contact distance: pressed by more, cloth comes apart slowly; apart by less, it nearly touches
DRAWN = 0.5  # of its way to contact: what nearly touches is drawn so far; with 0 or 0.2, two sheets did not lie still
LOADED = 2.0  # times the load that a contact bore last, over the contact distance: so stiff it is where pressed hard,
STRONGEST = 1000.0  # and no more than so many times its usual stiffness
ALIKE = 0.8  # cosine between normals of contacts that push the same way
STIFFEST = 30.0  # times the stiffness of a contact, however small its gap: with 1000, ten stacked sheets burst


class Slips(NamedTuple):
    """What friction does at each of m contacts."""

    normals: Floats
    """(m, 3)"""
    carried: Floats
    """(m, 3) the part of bodies in the velocity of one side against the other [m/s]"""
    drags: Floats
    """(m,) impulse against each m/s of slip [kg]"""
    limits: Floats
    """(m,) and the largest that friction allows [N s]"""


class Law(NamedTuple):
    """How m contacts push, as they were found."""

    vertices: Ints
    """(m, 4)"""
    weights: Floats
    """(m, 4) signed"""
    normals: Floats
    """(m, 3)"""
    along: Floats
    """(m,) stiffness along the normal [kg]"""
    drags: Floats
    """(m,) as in `Slips`"""
    limits: Floats
    """(m,) as in `Slips`"""
    pushes: Floats
    """(m, 3) impulse, where velocities stay [N s]"""
    is_loose: Bools
    """(m,) whether it may be let go"""


@kernel(inline=True)
def _stiffness_for(load: float, depth: float, h: float, usual: float) -> float:
    """The stiffness [N/m] that bears `load` [N] at a gap of a third of h; 0 where the gap is more than half of h."""
    return min(LOADED * load / h, STRONGEST * usual) * min(1.0, max(0.0, 4.0 * depth / h - 2.0))


@kernel(allocates=True)
def push_off(
    vertices: Ints,
    normals: Floats,
    gaps: Floats,
    velocities: Floats,
    friction: Floats,
    motion: tuple[Floats, Floats, Floats, Floats],
    clearance: Floats,
    masses: Floats,
    borne: Floats,
    law: tuple[float, float, float, float],
    drag_inout: Floats,
    impulses_inout: Floats,
    touches_inout: Bytes,
    along_out: Floats,
    pushes_out: Floats,
    is_loose_out: Bools,
    drags_out: Floats,
    limits_out: Floats,
) -> Bools:
    """Add drag and impulse of every vertex that is, or will be, too near the plane that it meets; return (k,) which.

    `motion` are where each vertex starts, is thought to end, and would end if its velocity stayed, and that velocity;
    `borne` (n, 3) are the impulses of contacts in the last step, for one of this length.
    `along_out`, `pushes_out`, `is_loose_out`, `drags_out` and `limits_out` are as in `Law`, 0 at first.
    """
    dt, stiffness, softness, creep = law
    x, likely, ahead, v = motion
    slip, pushes = np.empty(3), np.zeros(len(vertices), np.bool_)
    for q in range(len(vertices)):
        i = vertices[q]
        depth, expected, going = -gaps[q], 0.0, 0.0
        across = load = 0.0
        for c in range(3):
            n, body = normals[q, c], dt * velocities[q, c]
            depth -= body * n  # h - g where they start
            expected += (likely[i, c] - x[i, c] - body) * n
            going += (ahead[i, c] - x[i, c] - body) * n
            slip[c] = v[i, c] - velocities[q, c]
            across += slip[c] * n
            load += borne[i, c] * n
        h = clearance[i]
        if depth <= expected:
            continue
        pushes[q] = True
        touches_inout[i] = max(touches_inout[i], LIES if depth > -DEEP * h else MAY_TOUCH)
        pace = 1.0 + softness * min(1.0, max(0.0, depth) / (DEEP * h))
        k = stiffness * masses[i] * min(STIFFEST, max(1.0, h / max(h - depth, h / STIFFEST)))
        k = max(k, _stiffness_for(load / dt, depth, h, stiffness * masses[i]))
        speed = 0.0
        for c in range(3):
            slip[c] -= across * normals[q, c]
            speed += slip[c] * slip[c]
        limits_out[q] = friction[q] * dt * k * max(depth, 0.0)
        drag = drags_out[q] = limits_out[q] / max(math.sqrt(speed), creep)
        push = dt * k * (max(depth, pace * expected) - pace * going)
        along = along_out[q] = dt * dt * k * pace
        is_loose_out[q] = depth < 0.0
        for c in range(3):
            pushes_out[q, c] = push * normals[q, c] - drag * slip[c]
            impulses_inout[i, c] += pushes_out[q, c]
            for d in range(3):
                block = (along - drag) * normals[q, c] * normals[q, d]
                drag_inout[i, c, d] += block + drag if c == d else block
    return pushes


@kernel(inline=True)
def _reach(rows: Ints, q: int, n: int, clearance: Floats) -> float:
    """The contact distance of a pair: the largest of its vertices."""
    h = 0.0
    for place in range(4):
        if rows[q, place] < n:
            h = max(h, clearance[rows[q, place]])
    return h


@kernel(inline=True)
def _along(rows: Ints, weights: Floats, normals: Floats, q: int, ways: Floats) -> tuple[float, float]:
    """How far the sides of a pair go along its normal: the first, and the second with the opposite sign."""
    first = second = 0.0
    for place in range(4):
        i, w = rows[q, place], weights[q, place]
        way = w * (ways[i, 0] * normals[q, 0] + ways[i, 1] * normals[q, 1] + ways[i, 2] * normals[q, 2])
        if w < 0.0:
            second += way
        else:
            first += way
    return first, second


@kernel(inline=True)
def _parting(rows: Ints, weights: Floats, normals: Floats, q: int, likely: Floats, drops: Floats, h: float) -> float:
    """How far a pair is expected to part.

    Of two sides that lie on something either may be held up by something else: what nearly touches is expected to come
    nearer by what that leaves. What does not would first have to fall, and is seen to in the step after.
    """
    go = _along(rows, weights, normals, q, likely)
    fall = _along(rows, weights, normals, q, drops)
    least = max(min(0.0, fall[0]) + min(0.0, fall[1]), -DEEP * h)
    return go[0] + go[1] + least


@kernel(inline=True)
def _load(rows: Ints, weights: Floats, normals: Floats, q: int, n: int, borne: Floats) -> float:
    """The impulse that pressed a pair together in the last step, as both of its sides that are cloth say."""
    first = second = 0.0
    has_first = has_second = False
    for place in range(4):
        i, w = rows[q, place], weights[q, place]
        if i >= n or w == 0.0:
            continue
        along = borne[i, 0] * normals[q, 0] + borne[i, 1] * normals[q, 1] + borne[i, 2] * normals[q, 2]
        if w > 0.0:
            first, has_first = first + along, True
        else:
            second, has_second = second - along, True
    if has_first and has_second:
        return min(first, second)
    return first if has_first else second


@kernel(parallel=True)
def mark_pushing(
    rows: Ints,
    normals: Floats,
    gaps: Floats,
    weights: Floats,
    bears: Bools,
    likely: Floats,
    drops: Floats,
    clearance: Floats,
    n: int,
) -> Bools:
    """(k,) the pairs that bear and are, or will be, too near: by a tenth of h where they start so far from touching.

    `likely` and `drops` (n + b, 3) are how far each vertex is thought to move, and how much further it would fall if
    nothing held it up.
    """
    out = np.empty(len(rows), np.bool_)
    for q in prange(len(rows)):
        out[q] = bears[q]
        if out[q]:
            h = _reach(rows, q, n, clearance)
            depth = h - gaps[q]
            late = DEEP * h if depth < -DEEP * h else 0.0
            out[q] = depth > _parting(rows, weights, normals, q, likely, drops, h) + late
    return out


@kernel(inline=True)
def _gap_along(
    i: int, starts: Ints, items: Ints, normals: Floats, gaps: Floats, nx: float, ny: float, nz: float
) -> float:
    """The smallest gap at which vertex i bears along a normal; infinite where it does not."""
    least = np.inf
    for k in range(starts[i], starts[i + 1]):
        q = items[k]
        if normals[q, 0] * nx + normals[q, 1] * ny + normals[q, 2] * nz > ALIKE:
            least = min(least, gaps[q])
    return least


@kernel(parallel=True)
def _drop_repeats(
    rows: Ints,
    normals: Floats,
    gaps: Floats,
    starts: Ints,
    items: Ints,
    vertex_normals: Floats,
    vertex_gaps: Floats,
    clearance: Floats,
    n: int,
    pushes_inout: Bools,
) -> None:
    for q in prange(len(rows)):
        i, j, k, m = rows[q, 0], rows[q, 1], rows[q, 2], rows[q, 3]
        if not pushes_inout[q] or max(i, m) >= n:
            continue
        x, y, z = normals[q, 0], normals[q, 1], normals[q, 2]
        a = _gap_along(i, starts, items, vertex_normals, vertex_gaps, x, y, z)
        b = _gap_along(j, starts, items, vertex_normals, vertex_gaps, x, y, z)
        c = _gap_along(k, starts, items, vertex_normals, vertex_gaps, -x, -y, -z)
        d = _gap_along(m, starts, items, vertex_normals, vertex_gaps, -x, -y, -z)
        near = gaps[q] + DEEP * _reach(rows, q, n, clearance)
        first = max(a, b) < np.inf and min(a, b) <= near
        second = max(c, d) < np.inf and min(c, d) <= near
        pushes_inout[q] = not (first or second)


def drop_repeats(
    vertex_pairs: Pairs, vertex_pushes: Bools, edge_pairs: Pairs, clearance: Floats, edge_pushes_inout: Bools
) -> None:
    """Have two edges of the cloth not push where both ends of one of them do, one end as near as the edges are.

    Between its ends, an edge over a flat layer is no nearer to it than at the nearer end: what keeps that apart keeps
    the edges apart. Edges that are nearer to each other cross in a fold.
    """
    n, first = len(clearance), vertex_pairs.rows[:, 0]
    bearing = np.flatnonzero(vertex_pushes & (first < n)).astype(np.int32)
    starts, items = group_rows(first[bearing], bearing, n)
    _drop_repeats(
        edge_pairs.rows,
        edge_pairs.normals,
        edge_pairs.gaps,
        starts,
        items,
        vertex_pairs.normals,
        vertex_pairs.gaps,
        clearance,
        n,
        edge_pushes_inout,
    )


@kernel(parallel=True)
def push_apart(
    which: Longs,
    rows: Ints,
    normals: Floats,
    gaps: Floats,
    weights: Floats,
    likely: Floats,
    drops: Floats,
    ahead: Floats,
    velocities: Floats,
    clearance: Floats,
    friction: Floats,
    body_friction: Floats,
    masses: Floats,
    borne: Floats,
    law: tuple[float, float, float, float],
    n: int,
    first: int,
    vertices_out: Ints,
    weights_out: Floats,
    along_out: Floats,
    pushes_out: Floats,
    touches_out: Bytes,
    is_loose_out: Bools,
    slips_out: Slips,
) -> None:
    """Write a spring for every pair of `which`, from place `first` on: its ends, its stiffness along the normal, that
    across being its drag, the impulse with which it pushes, whether it touches, and whether it may be let go.

    `ahead` (n + b, 3) is how far each vertex would move if its velocity stayed; `borne` is as in `push_off`.
    """
    dt, stiffness, softness, creep = law
    normals_out, carried_out, drags_out, limits_out = slips_out
    for s in prange(len(which)):
        q, at = which[s], first + s
        h, mass = _reach(rows, q, n, clearance), 0.0
        v0 = v1 = v2 = 0.0
        for c in range(3):
            normals_out[at, c], carried_out[at, c] = normals[q, c], 0.0
        for place in range(4):
            i, w = rows[q, place], weights[q, place]
            v0, v1, v2 = v0 + w * velocities[i, 0], v1 + w * velocities[i, 1], v2 + w * velocities[i, 2]
            if i >= n:
                for c in range(3):
                    carried_out[at, c] += w * velocities[i, c]
            else:
                mass = max(mass, masses[i])
                vertices_out[at, place], weights_out[at, place] = i, w
        n0, n1, n2 = normals[q, 0], normals[q, 1], normals[q, 2]
        depth = h - gaps[q]
        parting = _parting(rows, weights, normals, q, likely, drops, h)
        going = _along(rows, weights, normals, q, ahead)
        pace = 1.0 + softness * min(1.0, max(0.0, depth) / (DEEP * h))
        # two edges of a cloth have the friction of the cloth; on a body, the body's where it has its own
        mu = friction[rows[q, 0]] if rows[q, 0] < n else body_friction[rows[q, 0] - n]
        if rows[q, 3] >= n:
            mu = body_friction[rows[q, 3] - n]
        if mu < 0.0:
            mu = friction[rows[q, 0] if rows[q, 0] < n else rows[q, 3]]
        k = stiffness * mass * min(STIFFEST, max(1.0, h / gaps[q]))
        k = max(k, _stiffness_for(_load(rows, weights, normals, q, n, borne) / dt, depth, h, stiffness * mass))
        across = v0 * n0 + v1 * n1 + v2 * n2
        speed = math.sqrt(max(0.0, v0 * v0 + v1 * v1 + v2 * v2 - across * across))
        limits_out[at] = mu * dt * k * max(depth, 0.0)
        drag = drags_out[at] = limits_out[at] / max(speed, creep)
        aim = depth if depth > 0.0 else min(depth + (1.0 - DRAWN) * DEEP * h, DRAWN * depth)
        push = dt * k * (max(aim, pace * parting) - pace * (going[0] + going[1])) + drag * across
        pushes_out[at, 0] = push * n0 - drag * v0
        pushes_out[at, 1] = push * n1 - drag * v1
        pushes_out[at, 2] = push * n2 - drag * v2
        touches_out[at] = TOUCHES if depth > 0.0 else MAY_TOUCH
        is_of_body = rows[q, 0] >= n or rows[q, 3] >= n
        is_loose_out[at] = depth < (0.0 if is_of_body else -DEEP * h)
        along_out[at] = dt * dt * k * pace


@kernel(inline=True)
def _slip(
    vertices: Ints, weights: Floats, c: int, normals: Floats, carried: Floats, v: Floats
) -> tuple[float, float, float]:
    """The velocity with which the sides of contact c slip."""
    v0, v1, v2 = carried[c, 0], carried[c, 1], carried[c, 2]
    for place in range(4):
        i, w = vertices[c, place], weights[c, place]
        v0, v1, v2 = v0 + w * v[i, 0], v1 + w * v[i, 1], v2 + w * v[i, 2]
    across = v0 * normals[c, 0] + v1 * normals[c, 1] + v2 * normals[c, 2]
    return v0 - across * normals[c, 0], v1 - across * normals[c, 1], v2 - across * normals[c, 2]


@kernel(parallel=True)
def excess_drags(vertices: Ints, weights: Floats, slips: Slips, v: Floats) -> Floats:
    """(m,) by how much contacts drag more than their limits [N s], where vertices end with velocities `v` (n, 3)."""
    normals, carried, drags, limits = slips
    out = np.empty(len(vertices))
    for c in prange(len(vertices)):
        u0, u1, u2 = _slip(vertices, weights, c, normals, carried, v)
        out[c] = max(0.0, drags[c] * math.sqrt(u0 * u0 + u1 * u1 + u2 * u2) - limits[c])
    return out


@kernel(parallel=True)
def let_slide(vertices: Ints, weights: Floats, slips: Slips, v_t0: Floats, v_t1: Floats) -> Floats:
    """Overwrite with 0 the drags of contacts that drag by more than their limits.

    Returns the impulses (m, 3) that take their place.
    """
    normals, carried, drags, limits = slips
    out = np.zeros((len(vertices), 3))
    for c in prange(len(vertices)):
        u0, u1, u2 = _slip(vertices, weights, c, normals, carried, v_t1)
        speed = math.sqrt(u0 * u0 + u1 * u1 + u2 * u2)
        drag = drags[c]
        if drag * speed <= limits[c] or speed == 0.0:
            continue
        drags[c], force = 0.0, limits[c] / speed
        s0, s1, s2 = _slip(vertices, weights, c, normals, carried, v_t0)
        out[c, 0], out[c, 1], out[c, 2] = drag * s0 - force * u0, drag * s1 - force * u1, drag * s2 - force * u2
    return out


@kernel(parallel=True)
def normal_impulses(law: Law, dv: Floats) -> Floats:
    """(m,) with which contacts push [N s], or pull (negative), where velocities change by `dv` (n, 3)."""
    vertices, weights, normals, along, _drags, _limits, pushes, _is_loose = law
    out = np.empty(len(vertices))
    for c in prange(len(vertices)):
        u0 = u1 = u2 = 0.0
        for place in range(4):
            i, w = vertices[c, place], weights[c, place]
            u0, u1, u2 = u0 + w * dv[i, 0], u1 + w * dv[i, 1], u2 + w * dv[i, 2]
        n0, n1, n2 = normals[c, 0], normals[c, 1], normals[c, 2]
        push = n0 * pushes[c, 0] + n1 * pushes[c, 1] + n2 * pushes[c, 2]
        out[c] = push - along[c] * (n0 * u0 + n1 * u1 + n2 * u2)
    return out


@kernel(parallel=True)
def add_pushes(
    weights: Floats,
    starts: Ints,
    items: Ints,
    pushes: Floats,
    touches: Bytes,
    impulses_inout: Floats,
    touches_inout: Bytes,
) -> None:
    """Add the `pushes` (m, 3) of springs to the impulses of their vertices, and mark what these touch."""
    for i in prange(len(impulses_inout)):
        for k in range(starts[i], starts[i + 1]):
            spring, w = items[k] >> 2, weights[items[k] >> 2, items[k] & 3]
            touches_inout[i] = max(touches_inout[i], touches[spring])
            for c in range(3):
                impulses_inout[i, c] += w * pushes[spring, c]
