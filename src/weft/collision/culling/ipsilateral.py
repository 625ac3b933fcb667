"""Vertices that stay on one side of a triangle's plane, left out.

He, Cheng, 2009, section V (paper 002): a vertex that is on the same side of the triangle's plane at both ends of the
step did not pass through it. With n the triangle's normal and a one of its corners, the sign of n . (p - a) says on
which side p is; a vertex in the plane (0) is kept.

The paper has one plane and two positions of the vertex, as if the triangle stood still. Three variants:

- `published`: the plane at the start of the step. Misses a triangle that moves onto a resting vertex.
- `ends`: each position against the plane of its own time. Exact where the vertex passes the plane at most once.
- `sound`: f(t) = n(t) . (p(t) - a(t)) is a cubic in t under linear motion. A cubic lies within the hull of its
  Bernstein coefficients, so four coefficients of one sign leave no time at which the vertex is in the plane. With n
  quadratic (coefficients n0, n1, n2) and w = p - a linear (w0, w1) they are

      n0.w0,  (2 n1.w0 + n0.w1) / 3,  (n2.w0 + 2 n1.w1) / 3,  n2.w1

  with n1 = (e0 x f1 + e1 x f0) / 2 for edges e, f of the triangle at both ends. They must clear a bound on their
  rounding error.

A pair that only comes close, without crossing, is removed too: this filter belongs before a test for crossing, not
before one for proximity.
"""

from __future__ import annotations

from typing import Literal, Self

from weft.arrays import Bools, Floats, Ints
from weft.collision.culling.row_filter import RowFilter, all_kept, as_rows
from weft.geometry.mesh import Mesh
from weft.geometry.vectors import Vector, cross, difference, dot
from weft.jit import kernel
from weft.parameters import Parameters, quantity

PUBLISHED, ENDS, SOUND = 0, 1, 2
_VARIANTS = {"published": PUBLISHED, "ends": ENDS, "sound": SOUND}
ROUNDING = 1e-14  # of the product of the lengths involved: some 40 units of float64 rounding


@kernel
def largest(u: Vector) -> float:
    return max(abs(u[0]), abs(u[1]), abs(u[2]))


@kernel
def mark_crossing(
    p_t0: Floats, p_t1: Floats, x_t0: Floats, x_t1: Floats, triangles: Ints, rows: Ints, variant: int, keep_out: Bools
) -> None:
    """Overwrite `keep_out`: True where vertex p may pass the plane of triangle x."""
    for row in range(rows.shape[0]):
        vi, ti = rows[row, 0], rows[row, 1]
        a, b, c = triangles[ti, 0], triangles[ti, 1], triangles[ti, 2]
        e0, f0, w0 = difference(x_t0, b, x_t0, a), difference(x_t0, c, x_t0, a), difference(p_t0, vi, x_t0, a)
        n0 = cross(e0, f0)
        if variant == PUBLISHED:
            c0, c3 = dot(n0, w0), dot(n0, difference(p_t1, vi, x_t0, a))
            c1, c2, error = c0, c3, 0.0
        else:
            e1, f1, w1 = difference(x_t1, b, x_t1, a), difference(x_t1, c, x_t1, a), difference(p_t1, vi, x_t1, a)
            n2 = cross(e1, f1)
            c0, c3 = dot(n0, w0), dot(n2, w1)
            c1, c2, error = c0, c3, 0.0
            if variant == SOUND:
                g, h = cross(e0, f1), cross(e1, f0)
                c1 = (dot(g, w0) + dot(h, w0) + dot(n0, w1)) / 3.0
                c2 = (dot(g, w1) + dot(h, w1) + dot(n2, w0)) / 3.0
                length = max(largest(e0), largest(f0), largest(w0), largest(e1), largest(f1), largest(w1))
                error = ROUNDING * length**3
        smallest, greatest = min(c0, c1, c2, c3), max(c0, c1, c2, c3)
        keep_out[row] = not (smallest > error or greatest < -error)


class IpsilateralParameters(Parameters):
    """Which plane."""

    variant: Literal["published", "ends", "sound"] = quantity(
        "published: the plane stands still; ends: it moves; sound: one side at all times", default="sound"
    )


class Ipsilateral(RowFilter):
    """Removes vertices that stay on one side of a triangle; see the module."""

    acts_on = "vertex_triangle"

    Parameters = IpsilateralParameters

    def __init__(self, mesh: Mesh, parameters: IpsilateralParameters | None = None) -> None:
        super().__init__(mesh, parameters)
        self.sound = self.parameters.variant == "sound"

    def keep(self, rows: Ints, other: Self | None = None) -> Bools:
        """Rows are (own vertex, triangle of `other`, or own triangle)."""
        second = other or self
        keep = all_kept(rows)
        mark_crossing(
            self.x_t0,
            self.x_t1,
            second.x_t0,
            second.x_t1,
            second.triangles,
            as_rows(rows),
            _VARIANTS[self.parameters.variant],
            keep,
        )
        return keep
