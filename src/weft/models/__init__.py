"""Cloth models: from positions and velocities to forces and their derivatives.

A model is built for one cloth, from its mesh at rest and its fabric, and holds nothing that moves. Internal forces
do not change when the whole cloth is shifted, so the derivative matrices have zero row sums: a model hands out only
the blocks off the diagonal, one 3 x 3 block for each pair of vertices it couples, and the diagonal follows.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from weft.arrays import Floats, Ints
from weft.geometry.mesh import Mesh
from weft.models.fabrics import Fabric
from weft.parameters import Parameters
from weft.registry import Family


class Model(Protocol):
    """What an integrator and a simulation need from a cloth model."""

    Parameters: ClassVar[type[Parameters]]
    pairs: Ints
    """(p + q, 2) the vertices that each derivative block couples"""
    even: Floats
    """(q,) -df_i/dx_j of the last pairs [N/m], times the identity: it never changes, and there is no damping with it"""

    def __init__(self, mesh: Mesh, fabric: Fabric, parameters: Any = None) -> None: ...

    def energy(self, x: Floats) -> float:
        """Elastic energy [J]."""

    def add_forces(self, x: Floats, v: Floats, forces_out: Floats) -> None:
        """Add internal forces [N], elastic and damping, to `forces_out` (n, 3)."""

    def update_jacobians(self, x: Floats, v: Floats, stiffness_out: Floats, damping_out: Floats) -> None:
        """Overwrite both `(p, 3, 3)` with -df_i/dx_j [N/m] and -df_i/dv_j [N s/m] of each pair (i, j), even ones
        apart.

        Indefinite parts are dropped, so that the whole matrices are positive semi-definite.
        """


MODELS = Family(
    "model",
    __name__,
    {
        "shell": "Shell",
        "mass_spring": "MassSpring",
        "responsive": "Responsive",
        "elastic_surface": "ElasticSurface",
        "particle_network": "ParticleNetwork",
    },
)
