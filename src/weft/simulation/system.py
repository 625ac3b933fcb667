"""All cloths as one mechanical system: what moves them, in any state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.arrays import Floats, Ints
from weft.geometry.rows import centred_rows
from weft.geometry.topology import Topology
from weft.integrators import Dynamics
from weft.models import Model
from weft.models.air import add_air_forces
from weft.models.wind import Wind


class ClothSystem:
    """Internal forces of every cloth, gravity and air.

    Attributes
    ----------
    pairs : (p + q, 2) the vertices that each derivative block couples, those of even blocks last
    time : start of the current step [s]
    """

    def __init__(
        self,
        models: Sequence[Model],
        owned: Sequence[slice],
        masses: Floats,
        gravity: Floats,
        topology: Topology,
        wind: Wind,
        half_density_drag: Floats,
    ) -> None:
        self.models, self.owned = models, owned
        self.masses, self.gravity = masses, gravity
        self.wind, self._half_density_drag = wind, half_density_drag
        self._topology = topology
        self._sizes = [len(model.pairs) - len(model.even) for model in models]  # of what changes
        shifted = [model.pairs + np.int32(own.start) for model, own in zip(models, owned, strict=True)]
        full = [part[:size] for part, size in zip(shifted, self._sizes, strict=True)]
        even = [part[size:] for part, size in zip(shifted, self._sizes, strict=True)]
        self.pairs: Ints = np.ascontiguousarray(np.concatenate(full + even), np.int32)
        self._even: Floats = np.concatenate([model.even for model in models])
        self._stiffness, self._damping = np.zeros((sum(self._sizes), 3, 3)), np.zeros((sum(self._sizes), 3, 3))
        self.time = 0.0

    def forces(self, x: Floats, v: Floats, elapsed: float) -> Floats:
        """All forces (n, 3) [N], `elapsed` seconds after the start of the step."""
        return self._forces_and_drag(x, v, elapsed)[0]

    def dynamics(self, x: Floats, v: Floats, elapsed: float) -> Dynamics:
        """Forces and their derivatives; the next call overwrites the latter."""
        forces, extra = self._forces_and_drag(x, v, elapsed)
        first = 0
        for model, own, size in zip(self.models, self.owned, self._sizes, strict=True):
            blocks = slice(first, first + size)
            model.update_jacobians(x[own], v[own], self._stiffness[blocks], self._damping[blocks])
            first += size
        return Dynamics(self.masses, forces, self.pairs, self._stiffness, self._damping, extra, self._even)

    def elastic_energy(self, x: Floats) -> float:
        """Energy [J] of all cloths."""
        return float(sum(model.energy(x[own]) for model, own in zip(self.models, self.owned, strict=True)))

    def energy(self, x: Floats, v: Floats) -> float:
        """Kinetic, elastic and gravitational energy [J]."""
        motion = 0.5 * np.einsum("i,ij,ij->", self.masses, v, v) - np.einsum("i,ij,j->", self.masses, x, self.gravity)
        return float(motion) + self.elastic_energy(x)

    def _forces_and_drag(self, x: Floats, v: Floats, elapsed: float) -> tuple[Floats, Floats]:
        forces = self.masses[:, None] * self.gravity
        drag = np.zeros((len(x), 3, 3))
        for model, own in zip(self.models, self.owned, strict=True):
            model.add_forces(x[own], v[own], forces[own])
        t, wind = self._topology, self.wind.at(self.time + elapsed)
        sway = np.concatenate([centred_rows(v[own]) for own in self.owned])
        add_air_forces(x, v, sway, wind, t.triangles, *t.vertex_triangles, self._half_density_drag, forces, drag)
        return forces, drag
