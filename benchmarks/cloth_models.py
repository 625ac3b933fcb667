"""Cloth models side by side, in one run: forces, their derivatives, and what these weigh in the linear system.

    python benchmarks/cloth_models.py                    # 51 vertices a side, one thread
    python benchmarks/cloth_models.py --vertices 101 --threads 2

Times are the smallest of several rounds in which all models take turns. `blocks` are the 3 x 3 blocks off the diagonal
of a row: each costs a product in every iteration of conjugate gradients. `shell, curved` has angles at rest.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np

from weft.arrays import Floats
from weft.geometry.mesh import Mesh, build_grid
from weft.jit import set_threads
from weft.models import MODELS
from weft.models.fabrics import load_fabric

ROUNDS = 30
RADIUS = 0.3  # m: of the cylinder on which the curved cloth is at rest


class Entry:
    """One model on one cloth, slightly crumpled."""

    def __init__(self, model: Any, mesh: Mesh) -> None:
        rng = np.random.default_rng(0)
        self.model = model
        self.n_vertices = mesh.n_vertices
        self._x = mesh.positions + rng.normal(scale=1e-3, size=mesh.positions.shape)
        self._v = rng.normal(scale=0.1, size=self._x.shape)
        self._forces = np.zeros_like(self._x)
        self._blocks = np.zeros((2, len(model.pairs), 3, 3))
        self.times = np.full(2, np.inf)

    def measure(self) -> None:
        """Forces and derivatives in a state that the model has not seen."""
        self._x += 1e-12
        marks: list[float] = [time.perf_counter()]
        self.model.add_forces(self._x, self._v, self._forces)
        marks.append(time.perf_counter())
        self.model.update_jacobians(self._x, self._v, self._blocks[0], self._blocks[1])
        marks.append(time.perf_counter())
        self.times = np.minimum(self.times, np.diff(marks))

    def blocks_of_a_row(self) -> float:
        pairs = np.unique(np.sort(self.model.pairs, axis=1), axis=0)
        return 2.0 * len(pairs) / self.n_vertices


def build_entries(vertices: int) -> dict[str, Entry]:
    flat = build_grid((1.0, 1.0), (vertices, vertices))
    fabric = load_fabric("cotton")
    entries = {name: Entry(MODELS.load(name)(flat, fabric), flat) for name in MODELS}
    angle: Floats = flat.positions[:, 0] / RADIUS
    bent = np.stack([RADIUS * np.sin(angle), flat.positions[:, 1], RADIUS * np.cos(angle)], axis=1)
    curved = Mesh(np.ascontiguousarray(bent), flat.triangles, flat.material)
    entries["shell, curved"] = Entry(MODELS.load("shell")(curved, fabric), curved)
    return entries


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vertices", type=int, default=51)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    set_threads(options.threads)
    entries = build_entries(options.vertices)
    for _ in range(ROUNDS):
        for entry in entries.values():
            entry.measure()
    base = entries["mass_spring"].times.sum()
    sys.stdout.write(f"{2 * (options.vertices - 1) ** 2} triangles, {options.threads} thread(s), times in ms\n")
    sys.stdout.write(f"{'model':18}{'forces':>9}{'derivatives':>13}{'both / mass_spring':>20}{'blocks':>9}\n")
    for name, entry in entries.items():
        forces, derivatives = 1e3 * entry.times
        ratio = entry.times.sum() / base
        row = f"{name:18}{forces:9.2f}{derivatives:13.2f}{ratio:20.2f}{entry.blocks_of_a_row():9.1f}\n"
        sys.stdout.write(row)


if __name__ == "__main__":
    main()
