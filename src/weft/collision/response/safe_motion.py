"""How far pairs may move without crossing: the kernels of dividing planes (see `dividing_planes` for the method)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from weft.arrays import Bools, Floats, Ints
from weft.collision.narrow.conservative import first_contact
from weft.collision.response.pairs import Pairs, along, bounds, free_space
from weft.jit import kernel, prange

RESERVE = 0.1  # of the free space between two sides is never given away
CLOSEST = 4e-6  # [m] nor is this much of it
TO_SPARE = 1e-9  # [m] more than it needs to be safe is what makes way moved
ROUNDING = 1e-12  # [m] is more than arithmetic at the size of a room loses
TURNS = 10  # of planes that push a vertex back, at most
SWEEPS = 100  # over pairs that make way, at most
SETTLED = 2**31 - 1  # passes: a pair that need not be looked at again


class Watched(NamedTuple):
    """Pairs of both kinds that share their free space as they move."""

    rows: Ints
    """(k, 4)"""
    is_edges: Bools
    """(k,)"""
    normals: Floats
    """(k, 3)"""
    gaps: Floats
    """(k,)"""


def join_watched(parts: Sequence[Watched]) -> Watched:
    return Watched(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.is_edges for part in parts]),
        np.concatenate([part.normals for part in parts]),
        np.concatenate([part.gaps for part in parts]),
    )


def watch(pairs: Sequence[Pairs]) -> Watched:
    return join_watched(
        [Watched(part.rows, np.full(len(part.rows), part.edges), part.normals, part.gaps) for part in pairs]
    )


@kernel
def spare_space(sep: float) -> float:
    """How much of the free space between two sides may be used up."""
    return max(0.0, min((1.0 - RESERVE) * sep, sep - CLOSEST))


def spare_of(sep: Floats) -> Floats:
    spare: Floats = np.maximum(0.0, np.minimum((1.0 - RESERVE) * sep, sep - CLOSEST))
    return spare


@kernel(allocates=True)
def _corners(x: Floats, rows: Ints, q: int) -> Floats:
    """(4, 3) where the vertices of row q are."""
    out = np.empty((4, 3))
    for place in range(4):
        for c in range(3):
            out[place, c] = x[rows[q, place], c]
    return out


@kernel
def _may_meet(x: Floats, goal: Floats, i: int, j: int, k: int, m: int, edges: bool, gap: float) -> bool:
    """Whether two sides, `gap` [m] apart at `x`, come nearer than a part of that on their straight way to `goal`."""
    return bool(first_contact(x, goal, i, j, k, m, edges, max(CLOSEST, RESERVE * gap)) <= 1.0)


@kernel(parallel=True)
def mark_unsafe(
    x: Floats, goal: Floats, rows: Ints, edges: bool, normals: Floats, gaps: Floats, unsafe_out: Bools
) -> None:
    """Overwrite whether each pair would have used up its free space, were all its vertices to go all the way."""
    for q in prange(len(rows)):
        i, j, k, m = rows[q, 0], rows[q, 1], rows[q, 2], rows[q, 3]
        nx, ny, nz = normals[q, 0], normals[q, 1], normals[q, 2]
        sep = free_space(x, i, j, k, m, edges, nx, ny, nz)
        left = free_space(goal, i, j, k, m, edges, nx, ny, nz)
        unsafe_out[q] = gaps[q] <= 0.0 or left < sep - spare_space(sep)
        if unsafe_out[q] and gaps[q] > 0.0:
            unsafe_out[q] = _may_meet(x, goal, i, j, k, m, edges, gaps[q])


@kernel(allocates=True)
def hold_back(
    x: Floats,
    goal: Floats,
    rows: Ints,
    is_edges: Bools,
    normals: Floats,
    gaps: Floats,
    n: int,
    lowered_inout: Ints,
    looked_at_inout: Ints,
    share_inout: Floats,
) -> int:
    """Lower the shares of vertices until no pair that is not safe is left; return how many no share can save.

    `lowered_inout` (n + b,) and `looked_at_inout` (k,) are the passes in which each share was lowered last, and each
    pair looked at, 0 for none: a pair is looked at again after a share of it was lowered. Given what the last call
    left, another goes on from there. A pair is `SETTLED` once each of its vertices stays on its own side of a plane
    that does not move: whatever else holds them back, it is safe. A pair in which a body moves into cloth that stays
    has no such plane.
    """
    at, go, places = np.empty(4), np.empty(4), np.arange(4)
    lowered, looked_at = lowered_inout, looked_at_inout
    now, stuck, changed = lowered.max(), 0, True
    while changed:
        changed = False
        now += 1
        for q in range(len(rows)):
            i, j, k, m = rows[q, 0], rows[q, 1], rows[q, 2], rows[q, 3]
            if looked_at[q] > max(max(lowered[i], lowered[j]), max(lowered[k], lowered[m])):
                continue
            looked_at[q] = now
            edges = is_edges[q]
            nx, ny, nz = normals[q, 0], normals[q, 1], normals[q, 2]
            for place in range(4):
                at[place] = along(x, rows[q, place], nx, ny, nz)
                go[place] = along(goal, rows[q, place], nx, ny, nz)
            low, high = bounds(at[0], at[1], at[2], at[3], edges)
            sep = low - high
            spare = spare_space(sep) if gaps[q] > 0.0 else 0.0
            low_end, high_end = bounds(
                at[0] + share_inout[i] * (go[0] - at[0]),
                at[1] + share_inout[j] * (go[1] - at[1]),
                at[2] + share_inout[k] * (go[2] - at[2]),
                at[3] + share_inout[m] * (go[3] - at[3]),
                edges,
            )
            if gaps[q] > 0.0:
                if low_end - high_end >= sep - spare:
                    continue
                start, end = _corners(x, rows, q), _corners(goal, rows, q)
                for place in range(4):
                    share = share_inout[rows[q, place]]
                    for c in range(3):
                        end[place, c] = start[place, c] + share * (end[place, c] - start[place, c])
                if not _may_meet(start, end, places[0], places[1], places[2], places[3], edges, gaps[q]):
                    continue
            low_goal, high_goal = bounds(go[0], go[1], go[2], go[3], edges)
            down, up = max(0.0, low - low_goal), max(0.0, high_goal - high)
            if i >= n:  # a body takes what it needs, and the cloth the rest
                floor, ceiling = low - down, high + max(0.0, spare - down)
                stuck += int(down > spare and down > 1e-12)
            elif m >= n:
                floor, ceiling = low - max(0.0, spare - up), high + up
                stuck += int(up > spare and up > 1e-12)
            else:
                part = down / (down + up) if down + up > 0.0 else 0.5
                floor, ceiling = low - spare * part, high + spare * (1.0 - part)
            looked_at[q] = SETTLED
            for place in range(4):
                v = rows[q, place]
                if v >= n:
                    continue
                share = 1.0
                if place == 0 or (edges and place == 1):
                    if go[place] < floor:
                        share = max(0.0, (at[place] - floor) / (at[place] - go[place]))
                elif go[place] > ceiling:
                    share = max(0.0, (ceiling - at[place]) / (go[place] - at[place]))
                if share < share_inout[v]:
                    share_inout[v] = share
                    lowered[v] = now
                    changed = True
    return stuck


@kernel
def stop_before(vertices: Ints, normals: Floats, free: Floats, least: Floats, x: Floats, goal_inout: Floats) -> None:
    """Push goals (n, 3) back until so much is left before the plane of each contact as `least` (k,) says.

    At `x` (n, 3) there is `free` (k,) space. A vertex may be before several planes: they push in turns.
    """
    for _ in range(TURNS):
        changed = False
        for q in range(len(vertices)):
            i = vertices[q]
            left = free[q]
            for c in range(3):
                left += (goal_inout[i, c] - x[i, c]) * normals[q, c]
            if left < least[q]:
                for c in range(3):
                    goal_inout[i, c] += (least[q] - left + ROUNDING) * normals[q, c]
                changed = True
        if not changed:
            break


@kernel(allocates=True)
def make_way(
    x: Floats,
    rows: Ints,
    is_edges: Bools,
    normals: Floats,
    gaps: Floats,
    n: int,
    is_driven_inout: Bools,
    goal_inout: Floats,
) -> None:
    """Move goals of cloth (the first n) out of the way of bodies, and of cloth that these drive, pair by pair.

    What is in the way of something driven ends just before it and is driven from then on. Where both sides are, each
    gives way by half.
    """
    go = np.empty(4)
    for _ in range(SWEEPS):
        changed = False
        for q in range(len(rows)):
            edges = is_edges[q]
            nx, ny, nz = normals[q, 0], normals[q, 1], normals[q, 2]
            sep = free_space(x, rows[q, 0], rows[q, 1], rows[q, 2], rows[q, 3], edges, nx, ny, nz)
            need = sep - spare_space(sep) + TO_SPARE
            for place in range(4):
                go[place] = along(goal_inout, rows[q, place], nx, ny, nz)
            low, high = bounds(go[0], go[1], go[2], go[3], edges)
            if gaps[q] <= 0.0 or low - high >= need - 0.5 * TO_SPARE:
                continue
            upper_driven = lower_driven = False
            for place in range(4):
                v = rows[q, place]
                if place == 0 or (edges and place == 1):
                    upper_driven |= is_driven_inout[v] and go[place] < high + need
                else:
                    lower_driven |= is_driven_inout[v] and go[place] > low - need
            if not (upper_driven or lower_driven):
                continue
            if rows[q, 0] >= n or (upper_driven and not lower_driven):
                floor, ceiling = low, low - need
            elif rows[q, 3] >= n or not upper_driven:
                floor, ceiling = high + need, high
            else:
                floor, ceiling = 0.5 * (low + high + need), 0.5 * (low + high - need)
            for place in range(4):
                v = rows[q, place]
                is_upper = place == 0 or (edges and place == 1)
                way = max(floor - go[place], 0.0) if is_upper else min(ceiling - go[place], 0.0)
                if v < n and way != 0.0:
                    goal_inout[v, 0] += way * nx
                    goal_inout[v, 1] += way * ny
                    goal_inout[v, 2] += way * nz
                    is_driven_inout[v] = True
                    changed = True
        if not changed:
            break
