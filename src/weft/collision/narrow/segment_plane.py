"""Segment against plane: does the path of a node, or an edge, cross a triangle, and which features meet?

Paper: Bigliani and Eischen, "Collision detection in cloth modeling", section 3.1. The segment runs from F to D, the
triangle ABC is that of the start of the step:

1. F and D on the same side of the plane: no crossing. This is also the same-side (ipsilateral) filter of He and Cheng,
   "A quad tree based self-collision detection method", section V. A point exactly on the plane (their x = 0) belongs to
   neither side, and the segment goes on to the next step; a segment within the plane crosses nowhere;
2. the crossing point Q = F + t_Q (D - F), t_Q = -p / s, p = n . (F - A), s = n . (D - F) (their eq. 7);
3. Q at a vertex of the triangle, within the precision of the machine: node-node;
4. is Q inside? By angles: one of the three angles under which Q sees the sides is pi within eps: on that side,
   node-edge; they sum to 2 pi within eps: inside, node-triangle (eq. 9, 10; eps = 2 pi / 100). Or by axis crossing,
   without trigonometry: seen from Q, the positive X axis crosses one side (inside), or none or two (outside); the plane
   is projected along the largest component of n;
5. where the segment is an edge of the cloth, and node D itself stays on its side during the step, the two meet edge on
   edge.

Corrected: eq. 1 defines X_F by a point E; Fig. 2 and the text mean F.

Limits, in its own words and ours: the triangle's motion during the step is not looked at; a path along the plane is not
seen. The tolerance makes each triangle larger than it is, so that no path slips between two of them; on the long sides
of flat triangles it reaches far out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weft.arrays import Floats, Ints
from weft.collision.narrow import ContactKind, Contacts
from weft.errors import WeftError, nearest
from weft.geometry.vectors import Vector
from weft.jit import kernel

TOLERANCE = 2.0 * math.pi / 100.0  # rad, eq. 10
INSIDE_TESTS = ("angle-sum", "axis-crossing")
COINCIDENT = 1e-14  # of the triangle's size: "within the precision of the machine"
NONE = -1
NODE_NODE, NODE_EDGE = int(ContactKind.NODE_NODE), int(ContactKind.NODE_EDGE)
NODE_TRIANGLE, EDGE_EDGE = int(ContactKind.NODE_TRIANGLE), int(ContactKind.EDGE_EDGE)

Triangle = tuple[float, float, float, float, float, float, float, float, float]


@kernel
def triangle_at(x: Floats, a: int, b: int, c: int) -> Triangle:
    """The nine coordinates of a triangle."""
    return x[a, 0], x[a, 1], x[a, 2], x[b, 0], x[b, 1], x[b, 2], x[c, 0], x[c, 1], x[c, 2]


@kernel
def triangle_normal(s: Triangle) -> Vector:
    """(B - A) x (C - A)."""
    ux, uy, uz = s[3] - s[0], s[4] - s[1], s[5] - s[2]
    vx, vy, vz = s[6] - s[0], s[7] - s[1], s[8] - s[2]
    return uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx


@kernel
def is_same_side(at_f: float, at_d: float) -> bool:
    """Step 1, from n . (F - A) and n . (D - A): both points strictly on one side of the plane, or both on it."""
    return (at_f > 0.0 and at_d > 0.0) or (at_f < 0.0 and at_d < 0.0) or (at_f == 0.0 and at_d == 0.0)


@kernel
def _angle(ax: float, ay: float, az: float, bx: float, by: float, bz: float) -> float:
    """The angle between two vectors, from 0 to pi (eq. 9)."""
    cosine = (ax * bx + ay * by + az * bz) / math.sqrt((ax * ax + ay * ay + az * az) * (bx * bx + by * by + bz * bz))
    return math.acos(max(-1.0, min(1.0, cosine)))


@kernel
def kind_by_angles(q: Vector, s: Triangle, tolerance: float) -> int:
    """Step 4 by angles: NODE_EDGE, NODE_TRIANGLE or NONE."""
    ax, ay, az = s[0] - q[0], s[1] - q[1], s[2] - q[2]
    bx, by, bz = s[3] - q[0], s[4] - q[1], s[5] - q[2]
    cx, cy, cz = s[6] - q[0], s[7] - q[1], s[8] - q[2]
    alpha, beta = _angle(ax, ay, az, bx, by, bz), _angle(bx, by, bz, cx, cy, cz)
    gamma = _angle(cx, cy, cz, ax, ay, az)
    if max(max(alpha, beta), gamma) >= math.pi - tolerance:
        return NODE_EDGE
    return NODE_TRIANGLE if alpha + beta + gamma >= 2.0 * math.pi - tolerance else NONE


@kernel
def _crosses_axis(px: float, py: float, qx: float, qy: float) -> bool:
    """Does the side from p to q cross the positive X axis? A Y of zero counts as positive."""
    if (py >= 0.0) == (qy >= 0.0):
        return False
    return (px * (qy - py) - py * (qx - px)) * (qy - py) > 0.0


@kernel
def kind_by_axis(q: Vector, s: Triangle, n: Vector) -> int:
    """Step 4 by axis crossing: NODE_TRIANGLE or NONE."""
    i, j = 0, 1  # the plane that n is most nearly normal to
    if abs(n[0]) > abs(n[2]) and abs(n[0]) >= abs(n[1]):
        i, j = 1, 2
    elif abs(n[1]) > abs(n[2]):
        i, j = 2, 0
    ax, ay = s[i] - q[i], s[j] - q[j]
    bx, by = s[3 + i] - q[i], s[3 + j] - q[j]
    cx, cy = s[6 + i] - q[i], s[6 + j] - q[j]
    crossings = int(_crosses_axis(ax, ay, bx, by)) + int(_crosses_axis(bx, by, cx, cy))
    return NODE_TRIANGLE if crossings + int(_crosses_axis(cx, cy, ax, ay)) == 1 else NONE


@kernel
def segment_triangle(f: Vector, d: Vector, s: Triangle, by_angles: bool, tolerance: float) -> tuple[int, float]:
    """Kind of contact of the segment from f to d with triangle s, NONE for no crossing, and t_Q."""
    n = triangle_normal(s)
    at_f = n[0] * (f[0] - s[0]) + n[1] * (f[1] - s[1]) + n[2] * (f[2] - s[2])
    at_d = n[0] * (d[0] - s[0]) + n[1] * (d[1] - s[1]) + n[2] * (d[2] - s[2])
    if is_same_side(at_f, at_d):
        return NONE, 0.0
    t = at_f / (at_f - at_d)
    q = f[0] + t * (d[0] - f[0]), f[1] + t * (d[1] - f[1]), f[2] + t * (d[2] - f[2])
    size = 0.0
    for k in range(3):
        size = max(size, max(abs(s[3 + k] - s[k]), abs(s[6 + k] - s[k])))
    for corner in range(3):
        k = 3 * corner
        away = max(max(abs(q[0] - s[k]), abs(q[1] - s[k + 1])), abs(q[2] - s[k + 2]))
        if away <= COINCIDENT * size:
            return NODE_NODE, t
    if by_angles:
        return kind_by_angles(q, s, tolerance), t
    return kind_by_axis(q, s, n), t


@kernel
def _barycentric(q: Vector, s: Triangle) -> Vector:
    """Barycentric weights of q, each at least 0 (the tolerance lets q lie a little outside), summing to 1."""
    n = triangle_normal(s)
    ux, uy, uz = s[3] - s[0], s[4] - s[1], s[5] - s[2]
    vx, vy, vz = s[6] - s[0], s[7] - s[1], s[8] - s[2]
    px, py, pz = q[0] - s[0], q[1] - s[1], q[2] - s[2]
    nn = n[0] * n[0] + n[1] * n[1] + n[2] * n[2]
    b = (n[0] * (py * vz - pz * vy) + n[1] * (pz * vx - px * vz) + n[2] * (px * vy - py * vx)) / nn
    c = (n[0] * (uy * pz - uz * py) + n[1] * (uz * px - ux * pz) + n[2] * (ux * py - uy * px)) / nn
    a, b, c = max(0.0, 1.0 - b - c), max(0.0, b), max(0.0, c)
    return a / (a + b + c), b / (a + b + c), c / (a + b + c)


@kernel
def compute_crossings(
    x_t0: Floats,
    x_t1: Floats,
    rows: Ints,
    by_angles: bool,
    tolerance: float,
    weights_out: Floats,
    normals_out: Floats,
    times_out: Floats,
    kinds_out: npt.NDArray[np.int8],
) -> None:
    """Overwrites the rows of all `*_out` with the crossings of rows (F, D, A, B, C); kind NONE where there is none.

    F = D means the path of node D; otherwise the segment is an edge, F where it is and D where it will be. A normal
    points to the side that F is on; the weights are those of D and the triangle at Q.
    """
    for r in range(len(rows)):
        f, d = rows[r, 0], rows[r, 1]
        s = triangle_at(x_t0, rows[r, 2], rows[r, 3], rows[r, 4])
        start = x_t0[f, 0], x_t0[f, 1], x_t0[f, 2]
        end = x_t1[d, 0], x_t1[d, 1], x_t1[d, 2]
        kind, t = segment_triangle(start, end, s, by_angles, tolerance)
        kinds_out[r] = kind
        if kind == NONE:
            continue
        n = triangle_normal(s)
        at_f = n[0] * (start[0] - s[0]) + n[1] * (start[1] - s[1]) + n[2] * (start[2] - s[2])
        at_d = n[0] * (end[0] - s[0]) + n[1] * (end[1] - s[1]) + n[2] * (end[2] - s[2])
        if f != d:
            before = n[0] * (x_t0[d, 0] - s[0]) + n[1] * (x_t0[d, 1] - s[1]) + n[2] * (x_t0[d, 2] - s[2])
            if is_same_side(before, at_d):
                kinds_out[r] = EDGE_EDGE
        q = (
            start[0] + t * (end[0] - start[0]),
            start[1] + t * (end[1] - start[1]),
            start[2] + t * (end[2] - start[2]),
        )
        wa, wb, wc = _barycentric(q, s)
        length = math.copysign(math.sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]), at_f - at_d)
        weights_out[r, 0], weights_out[r, 1], weights_out[r, 2], weights_out[r, 3] = 1.0, -wa, -wb, -wc
        normals_out[r, 0], normals_out[r, 1], normals_out[r, 2] = n[0] / length, n[1] / length, n[2] / length
        times_out[r] = t


@dataclass(frozen=True)
class SegmentPlane:
    """Nodes whose path crosses a triangle, and edges that do.

    | parameter | unit | default | range |
    |---|---|---|---|
    | inside | | "angle-sum" | "angle-sum", "axis-crossing" |
    | tolerance | rad | 2 pi / 100 | 0 to pi |

    `find_contacts` follows the paths of the vertices; edge-edge candidates are not looked at, since an edge that
    crosses a triangle is found by `find_edge_contacts`, from the triangle's side.
    """

    inside: str = "angle-sum"
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        if self.inside not in INSIDE_TESTS:
            raise WeftError(f"unknown inside test {self.inside!r}{nearest(self.inside, INSIDE_TESTS)}")
        if not 0.0 <= self.tolerance <= math.pi:
            raise WeftError(f"tolerance: expected 0 to pi, got {self.tolerance}")

    def find_contacts(self, x_t0: Floats, x_t1: Floats, vertex_triangles: Ints, edge_edges: Ints) -> Contacts:
        return self._crossings(x_t0, x_t1, np.concatenate([vertex_triangles[:, :1], vertex_triangles], axis=1))

    def find_edge_contacts(self, x_t0: Floats, x_t1: Floats, edge_triangles: Ints) -> Contacts:
        """Contacts of edges with triangles, as contacts of the moving node D with the triangle.

        Parameters
        ----------
        edge_triangles : (m, 5) int32, rows (F, D, A, B, C): the edge from F, where it is at the start, to D, where it
            is at the end, and the triangle
        """
        return self._crossings(x_t0, x_t1, np.ascontiguousarray(edge_triangles, np.int32))

    def _crossings(self, x_t0: Floats, x_t1: Floats, rows: Ints) -> Contacts:
        m = len(rows)
        weights, normals, times = np.zeros((m, 4)), np.zeros((m, 3)), np.zeros(m)
        kinds = np.full(m, NONE, np.int8)
        by_angles = self.inside == "angle-sum"
        compute_crossings(x_t0, x_t1, rows, by_angles, self.tolerance, weights, normals, times, kinds)
        met = kinds != NONE
        vertices = np.ascontiguousarray(rows[met, 1:])
        return Contacts(vertices, weights[met], normals[met], np.zeros(len(vertices)), times[met], kinds[met])
