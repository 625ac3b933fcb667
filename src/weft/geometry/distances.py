"""Closest points between a point and a segment, a point and a triangle, and two segments ("edges").

Item kernels: scalars in, tuples out, no arrays, no allocation; other kernels call them in their loops. Each returns the
weights of the closest points and the vector `r` between them, whose length is the distance. The distance is right to a
few roundings of the size of the elements in every region, and so is the direction of `r` as long as the distance is
well above those roundings:

- which feature is closest is decided by the sides that the projection violates. If the projection of the point on the
  plane lies outside side bc only, the closest point lies on bc: were it inside another side, `r` would be that side's
  outer normal and the point would lie outside of that side too. The same holds for the square 0 <= s, t <= 1 of two
  edges, where the squared distance is a convex quadratic. So at most two sides are projected on, not all;
- in the interior `r` is the projection on the normal n = e1 x e2, not a difference of nearly equal points, so that its
  direction survives down to the smallest gaps. The rounding of n is relative to |e1||e2|, not to |n|: where the two
  edges enclose a small angle, n is made orthogonal to the longer edge once more, and the weights are computed from the
  part of the difference in the plane;
- where the angle is below the roundings of n (slivers, parallel edges), or an edge has no length, all sides are
  projected on and the nearest is taken.

There is no scaling: products of four lengths must not overflow or underflow, so lengths from 1e-70 to 1e70 are right.

Reference: Sunday, "Distance between lines and segments with their closest point of approach", as cited by da Silva,
"Cloth animation with collision detection", section 6.2; the case distinction here is our own.
"""

from __future__ import annotations

from weft.geometry.vectors import Vector
from weft.jit import kernel

NARROW_SIN_SQ = 1e-2  # below this squared sine of the angle between two edges, their normal is refined
FLAT_SIN_SQ = 1e-14  # below this one the normal cannot be trusted at all: the azimuth of e1 x e2 is off by > 1e-9

SegmentClosest = tuple[float, float, float, float]
EdgesClosest = tuple[float, float, float, float, float]
TriangleClosest = tuple[float, float, float, float, float, float]


@kernel
def closest_on_segment(dx: float, dy: float, dz: float, ex: float, ey: float, ez: float) -> SegmentClosest:
    """Closest point on the segment a + t e, 0 <= t <= 1, to the point a + d.

    Returns
    -------
    t, rx, ry, rz : r = d - t e points from the segment to the point
    """
    along = dx * ex + dy * ey + dz * ez
    if not along > 0.0:
        return 0.0, dx, dy, dz
    ee = ex * ex + ey * ey + ez * ez
    if along >= ee:
        return 1.0, dx - ex, dy - ey, dz - ez
    t = along / ee
    rx, ry, rz = dx - t * ex, dy - t * ey, dz - t * ez
    again = (rx * ex + ry * ey + rz * ez) / ee  # what rounding left along e would tilt a short r
    return t, rx - again * ex, ry - again * ey, rz - again * ez


@kernel
def _refined_normal(
    nx: float, ny: float, nz: float, e1x: float, e1y: float, e1z: float, e2x: float, e2y: float, e2z: float
) -> Vector:
    """n without the part along the longer of e1, e2 that rounding left in it."""
    e1e1 = e1x * e1x + e1y * e1y + e1z * e1z
    e2e2 = e2x * e2x + e2y * e2y + e2z * e2z
    if e1e1 < e2e2:
        e1x, e1y, e1z, e1e1 = e2x, e2y, e2z, e2e2
    along = (nx * e1x + ny * e1y + nz * e1z) / e1e1
    return nx - along * e1x, ny - along * e1y, nz - along * e1z


@kernel
def _settled_weights(
    px: float,
    py: float,
    pz: float,
    e1x: float,
    e1y: float,
    e1z: float,
    e2x: float,
    e2y: float,
    e2z: float,
    v: float,
    w: float,
) -> tuple[float, float]:
    """v, w with p = v e1 + w e2, without the error along the longer edge: e1 and e2 enclose a small angle."""
    qx, qy, qz = px - v * e1x - w * e2x, py - v * e1y - w * e2y, pz - v * e1z - w * e2z
    e1e1 = e1x * e1x + e1y * e1y + e1z * e1z
    e2e2 = e2x * e2x + e2y * e2y + e2z * e2z
    if e1e1 < e2e2:
        return v, w + (qx * e2x + qy * e2y + qz * e2z) / e2e2
    return v + (qx * e1x + qy * e1y + qz * e1z) / e1e1, w


@kernel
def closest_on_triangle(
    ax: float, ay: float, az: float, bx: float, by: float, bz: float, cx: float, cy: float, cz: float
) -> TriangleClosest:
    """Closest point of a triangle to a point p, from the differences a = p - A, b = p - B, c = p - C to its corners.

    Returns
    -------
    wa, wb, wc, rx, ry, rz : barycentric weights of the closest point (they sum to 1, each in [0, 1]) and the vector
        r = wa a + wb b + wc c from it to p
    """
    e1x, e1y, e1z = ax - bx, ay - by, az - bz
    e2x, e2y, e2z = ax - cx, ay - cy, az - cz
    nx, ny, nz = e1y * e2z - e1z * e2y, e1z * e2x - e1x * e2z, e1x * e2y - e1y * e2x
    nn = nx * nx + ny * ny + nz * nz
    sizes = (e1x * e1x + e1y * e1y + e1z * e1z) * (e2x * e2x + e2y * e2y + e2z * e2z)
    flat, narrow = not nn > FLAT_SIN_SQ * sizes, nn < NARROW_SIN_SQ * sizes
    va, vb, vc = -1.0, -1.0, -1.0
    if nn > 0.0:
        px, py, pz = ax, ay, az
        if narrow:
            nx, ny, nz = _refined_normal(nx, ny, nz, e1x, e1y, e1z, e2x, e2y, e2z)
            nn = nx * nx + ny * ny + nz * nz
            height = (nx * ax + ny * ay + nz * az) / nn
            px, py, pz = ax - height * nx, ay - height * ny, az - height * nz
        vb = (nx * (py * e2z - pz * e2y) + ny * (pz * e2x - px * e2z) + nz * (px * e2y - py * e2x)) / nn
        vc = (nx * (e1y * pz - e1z * py) + ny * (e1z * px - e1x * pz) + nz * (e1x * py - e1y * px)) / nn
        if narrow:
            vb, vc = _settled_weights(px, py, pz, e1x, e1y, e1z, e2x, e2y, e2z, vb, vc)
        va = 1.0 - vb - vc
        if va >= 0.0 and vb >= 0.0 and vc >= 0.0 and not flat:
            height = (nx * ax + ny * ay + nz * az) / nn
            return va, vb, vc, height * nx, height * ny, height * nz
    wa, wb, wc, rx, ry, rz = 1.0, 0.0, 0.0, ax, ay, az
    best = rx * rx + ry * ry + rz * rz
    if flat and va >= 0.0 and vb >= 0.0 and vc >= 0.0:
        qx, qy, qz = ax - vb * e1x - vc * e2x, ay - vb * e1y - vc * e2y, az - vb * e1z - vc * e2z
        qq = qx * qx + qy * qy + qz * qz
        if qq < best:
            wa, wb, wc, rx, ry, rz, best = va, vb, vc, qx, qy, qz, qq
    if flat or vc < 0.0:  # beyond side ab
        t, qx, qy, qz = closest_on_segment(ax, ay, az, e1x, e1y, e1z)
        qq = qx * qx + qy * qy + qz * qz
        if qq < best:
            wa, wb, wc, rx, ry, rz, best = 1.0 - t, t, 0.0, qx, qy, qz, qq
    if flat or vb < 0.0:  # beyond side ac
        t, qx, qy, qz = closest_on_segment(ax, ay, az, e2x, e2y, e2z)
        qq = qx * qx + qy * qy + qz * qz
        if qq < best:
            wa, wb, wc, rx, ry, rz, best = 1.0 - t, 0.0, t, qx, qy, qz, qq
    if flat or va < 0.0:  # beyond side bc
        t, qx, qy, qz = closest_on_segment(bx, by, bz, bx - cx, by - cy, bz - cz)
        if qx * qx + qy * qy + qz * qz < best:
            wa, wb, wc, rx, ry, rz = 0.0, 1.0 - t, t, qx, qy, qz
    return wa, wb, wc, rx, ry, rz


@kernel
def closest_on_edges(
    dx: float, dy: float, dz: float, e1x: float, e1y: float, e1z: float, e2x: float, e2y: float, e2z: float
) -> EdgesClosest:
    """Closest points a0 + s e1 and b0 + t e2 of two edges, 0 <= s, t <= 1, from d = a0 - b0.

    Returns
    -------
    s, t, rx, ry, rz : r = d + s e1 - t e2 points from the second edge to the first
    """
    nx, ny, nz = e1y * e2z - e1z * e2y, e1z * e2x - e1x * e2z, e1x * e2y - e1y * e2x
    nn = nx * nx + ny * ny + nz * nz
    sizes = (e1x * e1x + e1y * e1y + e1z * e1z) * (e2x * e2x + e2y * e2y + e2z * e2z)
    flat, narrow = not nn > FLAT_SIN_SQ * sizes, nn < NARROW_SIN_SQ * sizes
    s, t = -1.0, -1.0
    if nn > 0.0:
        px, py, pz = dx, dy, dz
        if narrow:
            nx, ny, nz = _refined_normal(nx, ny, nz, e1x, e1y, e1z, e2x, e2y, e2z)
            nn = nx * nx + ny * ny + nz * nz
            height = (nx * dx + ny * dy + nz * dz) / nn
            px, py, pz = dx - height * nx, dy - height * ny, dz - height * nz
        s = (nx * (e2y * pz - e2z * py) + ny * (e2z * px - e2x * pz) + nz * (e2x * py - e2y * px)) / nn
        t = (nx * (e1y * pz - e1z * py) + ny * (e1z * px - e1x * pz) + nz * (e1x * py - e1y * px)) / nn
        if narrow:
            s, t = _settled_weights(-px, -py, -pz, e1x, e1y, e1z, -e2x, -e2y, -e2z, s, t)
        if 0.0 <= s <= 1.0 and 0.0 <= t <= 1.0 and not flat:
            height = (nx * dx + ny * dy + nz * dz) / nn
            return s, t, height * nx, height * ny, height * nz
    ws, wt, rx, ry, rz = 0.0, 0.0, dx, dy, dz
    best = rx * rx + ry * ry + rz * rz
    if flat and 0.0 <= s <= 1.0 and 0.0 <= t <= 1.0:
        qx, qy, qz = dx + s * e1x - t * e2x, dy + s * e1y - t * e2y, dz + s * e1z - t * e2z
        qq = qx * qx + qy * qy + qz * qz
        if qq < best:
            ws, wt, rx, ry, rz, best = s, t, qx, qy, qz, qq
    if flat or s < 0.0:
        q, qx, qy, qz = closest_on_segment(dx, dy, dz, e2x, e2y, e2z)
        qq = qx * qx + qy * qy + qz * qz
        if qq < best:
            ws, wt, rx, ry, rz, best = 0.0, q, qx, qy, qz, qq
    if flat or s > 1.0:
        q, qx, qy, qz = closest_on_segment(dx + e1x, dy + e1y, dz + e1z, e2x, e2y, e2z)
        qq = qx * qx + qy * qy + qz * qz
        if qq < best:
            ws, wt, rx, ry, rz, best = 1.0, q, qx, qy, qz, qq
    if flat or t < 0.0:
        q, qx, qy, qz = closest_on_segment(-dx, -dy, -dz, e1x, e1y, e1z)
        qq = qx * qx + qy * qy + qz * qz
        if qq < best:
            ws, wt, rx, ry, rz, best = q, 0.0, -qx, -qy, -qz, qq
    if flat or t > 1.0:
        q, qx, qy, qz = closest_on_segment(e2x - dx, e2y - dy, e2z - dz, e1x, e1y, e1z)
        if qx * qx + qy * qy + qz * qz < best:
            ws, wt, rx, ry, rz = q, 1.0, -qx, -qy, -qz
    return ws, wt, rx, ry, rz
