"""Air drag and wind, triangle by triangle.

A triangle of area A and normal n that moves through air of density r at the relative velocity u (wind minus its own)
feels f = 1/2 r c A |u . n| (u . n) n, the drag of a plate across the flow, c being the fabric's coefficient. Flow
along the cloth has no drag here. Each corner takes a third.

That is the drag of steady flow. Cloth that sways by less than its width never leaves its own wake, and the coefficient
of a plate that oscillates grows as its swing gets smaller (J. M. R. Graham, "The forces on sharp-edged cylinders in
oscillatory flow at low Keulegan-Carpenter numbers", J. Fluid Mech. 97, 1980: with the power -1/3 of that number, to 12
for 0.1 m/s at 1.4 Hz on 25 cm). Where a triangle moves at w relative to its whole cloth, there is therefore another
-1/2 r c A s0 (w . n) n, s0 being the speed at which stirred air goes around: swaying dies down, as it does in a room.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats, Ints
from weft.jit import kernel, prange

STIRRED = 0.5  # [m/s] s0


@kernel(parallel=True)
def add_air_forces(
    x: Floats,
    v: Floats,
    sway: Floats,
    wind: Floats,
    triangles: Ints,
    starts: Ints,
    vertex_triangles: Ints,
    half_density_drag: Floats,
    forces_out: Floats,
    damping_out: Floats,
) -> None:
    """Add drag to `forces_out` (n, 3) and -df/dv, lumped on the diagonal, to `damping_out` (n, 3, 3).

    `sway` (n, 3) are velocities relative to the whole cloth. `half_density_drag` (n,) is 1/2 r c at each vertex.
    The lumped derivative is the row sum, exact where neighbours move together; that of stirred air is left out,
    being slow against any step.
    """
    push = np.empty((len(triangles), 6))  # per area and drag, the force, then the root of the slope along the normal
    for t in prange(len(triangles)):
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        abx, aby, abz = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
        acx, acy, acz = x[c, 0] - x[a, 0], x[c, 1] - x[a, 1], x[c, 2] - x[a, 2]
        nx, ny, nz = aby * acz - abz * acy, abz * acx - abx * acz, abx * acy - aby * acx
        doubled = np.sqrt(nx * nx + ny * ny + nz * nz)
        if doubled == 0.0:
            push[t] = 0.0
            continue
        nx, ny, nz = nx / doubled, ny / doubled, nz / doubled
        ux = wind[0] - (v[a, 0] + v[b, 0] + v[c, 0]) / 3.0
        uy = wind[1] - (v[a, 1] + v[b, 1] + v[c, 1]) / 3.0
        uz = wind[2] - (v[a, 2] + v[b, 2] + v[c, 2]) / 3.0
        across = ux * nx + uy * ny + uz * nz
        swaying = (
            (sway[a, 0] + sway[b, 0] + sway[c, 0]) * nx
            + (sway[a, 1] + sway[b, 1] + sway[c, 1]) * ny
            + (sway[a, 2] + sway[b, 2] + sway[c, 2]) * nz
        ) / 3.0
        share = doubled / 6.0
        force = share * (abs(across) * across - STIRRED * swaying)
        root = np.sqrt(2.0 * share * abs(across))
        push[t, 0], push[t, 1], push[t, 2] = force * nx, force * ny, force * nz
        push[t, 3], push[t, 4], push[t, 5] = root * nx, root * ny, root * nz
    for vi in prange(len(x)):
        drag = half_density_drag[vi]
        for k in range(starts[vi], starts[vi + 1]):
            t = vertex_triangles[k]
            for r in range(3):
                forces_out[vi, r] += drag * push[t, r]
                for s in range(3):
                    damping_out[vi, r, s] += drag * push[t, 3 + r] * push[t, 3 + s]
