"""What is certified about a frame, as it is recorded: after rounding to float32."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.bodies.shapes import Plane
from weft.collision.certificate import intersections, self_intersections

if TYPE_CHECKING:
    from weft.simulation.simulation import Simulation


@dataclass(frozen=True)
class Certificate:
    """One line of `certificate.jsonl`, without the frame's index and time."""

    intersections: int
    """pairs of cloth triangles that cross, exactly"""
    body_intersections: int
    """pairs of a cloth and a body triangle that cross, exactly; a curved body counts as its triangles"""
    inside: int
    """vertices inside a body"""
    contacts: int
    """vertex contacts with bodies in the last step"""
    max_stretch: float
    """largest strain of an edge"""
    mean_stretch: float
    """mean size of the strain of the edges"""
    over_limit: float
    """share of springs beyond the strain limit at the end of the last step"""
    pin_lag: float
    """largest distance of a pinned vertex from where its keyframes want it [m]: pins yield where they would force an
    intersection"""
    energy: float
    """kinetic, elastic and gravitational [J]"""
    seconds: dict[str, float]
    """wall time since the frame before, by stage"""

    def row(self, frame: int, time: float) -> dict[str, Any]:
        return {"frame": frame, "time": round(time, 9), **asdict(self)}


def certify(simulation: Simulation, seconds: dict[str, float]) -> Certificate:
    """Check the current state with predicates that are independent of how it was computed."""
    with simulation.clock("certify"):
        x = simulation.state.positions.astype(np.float32).astype(np.float64)
        triangles = simulation.world.triangles
        time = simulation.time
        crossing = len(self_intersections(x, triangles))
        through = inside = 0
        free = np.ones(len(x), bool)
        free[simulation.pinned] = False
        for body in simulation.world.bodies:
            inside += int(((body.distances(x, time)[0] < 0.0) & free).sum())
            if not isinstance(body.shape, Plane):  # a plane is crossed only where a vertex is behind it
                through += len(intersections(x, triangles, *body.triangulate(time)))
        stretch = simulation.stretch()
        energy = simulation.energy()
    seconds = {**seconds, **simulation.clock.take()}
    return Certificate(
        intersections=crossing,
        body_intersections=through,
        inside=inside,
        contacts=simulation.n_contacts,
        max_stretch=round(float(stretch.max()), 6),
        mean_stretch=round(float(np.abs(stretch).mean()), 6),
        over_limit=round(simulation.over_limit, 6),
        pin_lag=float(f"{simulation.pin_lag():.3g}"),
        energy=float(f"{energy:.9g}"),
        seconds={stage: round(spent, 6) for stage, spent in seconds.items()},
    )
