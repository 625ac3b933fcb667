"""How much further a fabric gives way along the edges of its mesh than along its stiffest thread."""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats
from weft.geometry.mesh import Mesh
from weft.models.fabrics import Fabric
from weft.models.hinge import build_frames

SOFTEST = 2.0  # at most: a mesh whose edges are several times too long looks torn, however soft the cloth


def edge_softness(mesh: Mesh, fabric: Fabric) -> Floats:
    """(e,) the strain of each edge under a pull along it, over that of the stiffer thread under the same; 1 to 2.

    At the angle p from the weft, a strip of an orthotropic sheet has the compliance

        cos^4 p / Y_u + sin^4 p / Y_v + cos^2 p sin^2 p (1 / G - 2 poisson / sqrt(Y_u Y_v)).

    Cloth shears far more easily than its threads stretch: on the bias it is often twenty times as soft.
    """
    frames, topology = build_frames(mesh), mesh.topology
    ends = mesh.positions[topology.edges]
    along, side = ends[:, 1] - ends[:, 0], topology.edge_triangles[:, 0]
    u, v = ((along * frame[side]).sum(axis=1) ** 2 for frame in frames)
    total = u + v
    u, v = u / total, v / total
    y_u, y_v, shear = fabric.stretch_weft, fabric.stretch_warp, max(fabric.shear, 1e-9 * fabric.stretch_weft)
    across = 1.0 / shear - 2.0 * fabric.poisson / np.sqrt(y_u * y_v)
    softness = (u**2 / y_u + v**2 / y_v + u * v * across) * max(y_u, y_v)
    clipped: Floats = np.clip(softness, 1.0, SOFTEST)
    return clipped
