"""Liu, Ko, Chang 1998: cloth falls on a table and to the ground, with three ways to avoid self-collisions.

J.-D. Liu, M.-T. Ko, R.-C. Chang, "A simple self-collision avoidance for cloth animation", Computers & Graphics 22
(1998), section 5: 21 x 21 and 51 x 51 vertices, 1000 steps each. The authors give neither the size of cloth and table,
nor the step, nor the stiffness; ours are 1 m, 0.5 m, 2 ms and cotton with a tenth of its stiffness against stretch.
Both of their tables have the caption "Cloth falling on the table"; by their text, the second is about the ground.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from weft.arrays import Ints
from weft.collision.certificate import self_intersections
from weft.jit import threads_for
from weft.render.film import Film
from weft.reproduce.report import Heading, Paragraph, Picture, Report, Row, Table
from weft.scene.files import load_scene
from weft.scene.schema import Scene
from weft.simulation.clock import StageClock
from weft.simulation.recording import Recording
from weft.simulation.run import record
from weft.simulation.simulation import Simulation

SYSTEMS = {"S1": "liu1998_s1", "S2": "liu1998_s2", "S3": "liu1998"}
FPS, STEPS_PER_FRAME = 50, 10
EXTENTS: dict[bool, tuple[tuple[int, ...], int]] = {False: ((21, 51), 1000), True: ((21,), 300)}  # quick: sizes, steps
# A sheet that hangs, waved along its height, and a little across lest it stay a cylinder: it is let go just above the
# ground.
GRIDS = {
    "table": "{ size = [1, 1], vertices = [N, N], center = [0, 0, 0.55] }",
    "ground": "{ size = [1, 1], vertices = [N, N], center = [0, 0, 0.52], plane = 'xz', ripples = ["
    "{ amplitude = 0.01, waves = [0, 2.5] }, { amplitude = 0.002, waves = [1, 1] }] }",
}
CLEARANCE = 0.6  # of an edge, kept to the table: a triangle over its rim, with vertices that are clear, stays clear too
GALLERY = {"table": "tablecloth", "ground": "ground"}
FIGURES = {("table", 21): (11,), ("table", 51): (12,), ("ground", 21): (13, 14), ("ground", 51): (15, 16)}
SHOWN = {"table": (0.1, 0.2, 0.3, 0.44, 0.7), "ground": (0.2, 0.34, 0.46, 0.54, 0.64)}  # s, and the end
PICTURE = (480, 360)
AZIMUTHS = {"table": 30.0, "ground": 62.0}
FALLING = {"table": "on the table", "ground": "to the ground"}
INTRODUCTION = (
    "S1: geometric avoidance, vertices of colliding triangles fixed. S2: boxes of triangles kept apart, every pair "
    "compared. S3: the same with a hierarchy of boxes. A run is one detection of all self-collisions; the last one of "
    "a step finds none. Detection times are of one run, total times of one step; both are processor time on one thread."
)
EXPLANATIONS = (
    "Adjacent triangles, those with a common vertex, are not tested, as in section 4.2: to pass through its neighbour "
    "B, a triangle A must carry the edge opposite to the common vertex through B, and the triangle behind that edge, "
    "which has no vertex of B unless the mesh ends there, is tested against B. What the argument does not cover is a "
    "border edge, behind which there is no triangle.",
    "Detection is what finds the pairs that collide; the constraints that they set are not part of it. S2 computes the "
    "time intervals T_x, T_y, T_z (section 4.1) of every pair of moving boxes, and is done with a pair at the first "
    "axis that leaves none. S3 computes them, with the same code, for the pairs that its tree finds: both get the same "
    "pairs. S1 compares the boxes at the end of the step, and tests triangles whose boxes meet; the paper's, three "
    "times as slow as its S2, seems to have tested all.",
    'The paper gives detection times "in one simulation step", but they are of one run, too: at 51 x 51 its S2 took '
    "40.1 s with 2 runs a step, and with 4, and the total times grow with the runs. That is 3.2 us for each of 12.5 "
    "million pairs, and for S3 46 us a triangle.",
    "Our S3 searches less than the paper's, which goes down from the root with the box of each triangle: some 80 tests "
    "of boxes a triangle, as triangles always meet their neighbours. Ours starts at the pairs of nodes that have no "
    "vertex in common, which are known beforehand, and what it has found lasts until a vertex leaves the room that it "
    "was given. Box tests count both the boxes of the tree and the pairs whose intervals are computed.",
)


class Case(NamedTuple):
    """One animation with one system."""

    place: str
    size: int
    system: str

    @property
    def folder(self) -> str:
        return f"{self.place}-{self.size}-{self.system}"

    @property
    def label(self) -> str:
        return f"{self.place}, {self.size} x {self.size}, {self.system}"


class Published(NamedTuple):
    """A column of Tables 1 and 2."""

    average_runs: int
    most_runs: int
    detection: float
    """[s] a run, on a DEC 5000/260; the paper has "in one simulation step", see `EXPLANATIONS`"""
    total: float
    """[s] a step"""


PAPER = {
    ("table", 21): {
        "S1": Published(2, 4, 3.97, 12.96),
        "S2": Published(2, 4, 1.33, 2.79),
        "S3": Published(2, 4, 0.05, 0.39),
    },
    ("table", 51): {
        "S1": Published(2, 4, 116.53, 272.76),
        "S2": Published(2, 4, 40.14, 73.26),
        "S3": Published(2, 4, 0.23, 2.02),
    },
    ("ground", 21): {
        "S1": Published(3, 4, 4.07, 10.42),
        "S2": Published(3, 5, 1.32, 4.04),
        "S3": Published(3, 5, 0.03, 0.40),
    },
    ("ground", 51): {
        "S1": Published(4, 5, 118.43, 312.87),
        "S2": Published(4, 8, 40.09, 149.54),
        "S3": Published(4, 8, 0.21, 3.56),
    },
}


@dataclass(frozen=True)
class Measured:
    """What one run of one system gave."""

    steps: int
    average_runs: float
    most_runs: int
    detection: float
    """[s] a run"""
    total: float
    """[s] a step, without the certificate"""
    box_tests: float
    """a detection"""
    unfinished: int
    """steps in which the runs did not end by themselves"""
    went_back: int
    frames: int
    crossings: int
    """pairs of triangles without a common vertex that cross, over all frames"""
    adjacent_crossings: int
    body_crossings: int
    frames_crossing: int
    """frames with the first or the last kind"""
    energies: list[float]
    """[J] frame by frame"""
    end_speed: float
    """[m/s] of the fastest vertex in the last frame"""
    end_height: float
    """[m] of the highest vertex in the last frame"""
    max_stretch: float


def build_scene(case: Case, steps: int) -> Scene:
    """One of the paper's four animations, with one of its systems."""
    place, size, system = case
    frames = max(1, steps // STEPS_PER_FRAME)
    overrides = [
        f"cloth.0.grid={GRIDS[place].replace('N', str(size))}",
        "cloth.0.fabric=cotton",
        f"method={SYSTEMS[system]}",
        f"steps_per_frame={STEPS_PER_FRAME}",
        f"fps={FPS}",
        f"duration={frames / FPS}",
        f"name=liu1998-{case.folder}",
    ]
    if place == "table":
        overrides.append(f"cloth.0.contact_distance={CLEARANCE / (size - 1)}")
    return load_scene(GALLERY[place], overrides)


def measure(scene: Scene, folder: Path, on_frame: Callable[[int], None]) -> Measured:
    """Run `scene` into `folder` and count."""
    simulation = Simulation(scene)
    simulation.clock = StageClock(time.process_time)
    seconds: list[float] = []
    energies: list[float] = []
    speeds: list[float] = []

    def note(frame: Any) -> None:
        spent = frame.certificate.seconds
        seconds.append(sum(spent.values()) - spent.get("certify", 0.0))
        energies.append(frame.certificate.energy)
        speeds.append(float(np.linalg.norm(frame.velocities, axis=1).max()))
        on_frame(frame.index)

    recording = record(simulation, folder, overwrite=True, on_frame=note)
    counts = simulation.response.counts
    apart, adjacent = count_crossings(recording)
    bodies = np.array([row["body_intersections"] for row in recording.certificates])
    return Measured(
        steps=counts.steps,
        average_runs=counts.runs / counts.steps,
        most_runs=counts.most_runs,
        detection=counts.seconds / counts.runs,
        total=sum(seconds) / counts.steps,
        box_tests=counts.box_tests / counts.runs,
        unfinished=counts.unfinished,
        went_back=counts.went_back,
        frames=len(recording),
        crossings=int(apart.sum()),
        adjacent_crossings=int(adjacent.sum()),
        body_crossings=int(bodies.sum()),
        frames_crossing=int(((apart > 0) | (bodies > 0)).sum()),
        energies=energies,
        end_speed=speeds[-1],
        end_height=float(recording.positions[-1][:, 2].max()),
        max_stretch=max(row["max_stretch"] for row in recording.certificates),
    )


def count_crossings(recording: Recording) -> tuple[Ints, Ints]:
    """Pairs of triangles that cross in each recorded frame: those without and those with a common vertex."""
    triangles = recording.triangles
    apart = np.zeros(len(recording), np.int32)
    adjacent = np.zeros(len(recording), np.int32)
    for k, x in enumerate(recording.positions):
        pairs = self_intersections(np.asarray(x, np.float64), triangles)
        shared = (triangles[pairs[:, 0], :, None] == triangles[pairs[:, 1], None, :]).any(axis=(1, 2))
        apart[k], adjacent[k] = int((~shared).sum()), int(shared.sum())
    return apart, adjacent


class Liu1998:
    """Tables 1 and 2, figures 11 to 16."""

    def __init__(self, folder: Path, *, quick: bool = False, overwrite: bool = False) -> None:
        self.folder, self.overwrite = folder, overwrite
        self.sizes, self.steps = EXTENTS[quick]
        self.results: dict[Case, Measured] = {}

    @staticmethod
    def n_parts(quick: bool) -> int:
        sizes, steps = EXTENTS[quick]
        return len(GRIDS) * len(sizes) * len(SYSTEMS) * (steps // STEPS_PER_FRAME)

    def run(self, advance: Callable[[int], None]) -> Report:
        frames = self.steps // STEPS_PER_FRAME
        cases = [Case(place, size, system) for place in GRIDS for size in self.sizes for system in SYSTEMS]
        for k, case in enumerate(cases):
            self.results[case] = self._measured(case, lambda frame, k=k: advance(k * frames + frame))  # type: ignore[misc]
            advance((k + 1) * frames)
        report = self._report()
        report.write(self.folder)
        return report

    def _measured(self, case: Case, on_frame: Callable[[int], None]) -> Measured:
        """What was measured of a case, now or before."""
        scene = build_scene(case, self.steps)
        folder = self.folder / case.folder
        kept = folder / "measured.json"
        if not self.overwrite and kept.exists() and _is_same(Recording(folder).scene, scene):
            return Measured(**json.loads(kept.read_text(encoding="utf-8")))
        with threads_for(1):  # as many as the paper's machine had
            Simulation(build_scene(case._replace(size=5), 1)).step()  # compiles: the times are to be of steps alone
            result = measure(scene, folder, on_frame)
        kept.write_text(json.dumps(asdict(result)), encoding="utf-8")
        return result

    def _report(self) -> Report:
        report = Report("Liu, Ko, Chang 1998: a simple self-collision avoidance for cloth animation")
        report.add(Paragraph(f"{INTRODUCTION} {self.steps} steps of 2 ms; times are means."))
        for number, (place, falling) in enumerate(FALLING.items(), start=1):
            report.add(Heading(f"Table {number}: cloth falling {falling}"))
            report.add(self._times(place), self._ratios(place))
        report.add(Heading("Certified"), self._certificate(), *(Paragraph(text) for text in EXPLANATIONS))
        report.add(Heading("At rest"), self._rest(), Heading("Figures"))
        for case in self.results:
            if case.system != "S2":  # which moves as S3 does
                report.add(self._sheet(case))
            if case.system == "S3" and case.place == "ground":
                report.add(self._end(case))
        return report

    def _times(self, place: str) -> Table:
        head = ["", "runs, mean: paper", "ours", "runs, most: paper", "ours"]
        head += ["detection, a run: paper [s]", "ours [ms]", "total, a step: paper [s]", "ours [ms]"]
        rows: list[Row] = []
        for case, m in self.results.items():
            if case.place == place:
                p = PAPER[place, case.size][case.system]
                runs = (p.average_runs, m.average_runs, p.most_runs, m.most_runs)
                times = (p.detection, 1e3 * m.detection, p.total, 1e3 * m.total)
                rows.append((f"{case.size} x {case.size}, {case.system}", *runs, *times))
        return Table(head, rows)

    def _ratios(self, place: str) -> Table:
        head = ["ratio", "detection: paper", "ours", "box tests a run: ours", "total: paper", "ours"]
        rows: list[Row] = []
        for case, m in self.results.items():
            if case.place == place and case.system != "S3":
                p, p3 = PAPER[place, case.size][case.system], PAPER[place, case.size]["S3"]
                m3 = self.results[case._replace(system="S3")]
                detection = (p.detection / p3.detection, m.detection / m3.detection, m.box_tests / m3.box_tests)
                total = (p.total / p3.total, m.total / m3.total)
                rows.append((f"{case.size} x {case.size}, {case.system} / S3", *detection, *total))
        return Table(head, rows)

    def _certificate(self) -> Table:
        head = ["", "frames", "pairs that cross", "adjacent pairs that cross", "cloth and table"]
        head += ["steps whose runs did not end", "vertices that went back"]
        rows: list[Row] = []
        for case, m in self.results.items():
            crossing = (m.crossings, m.adjacent_crossings, m.body_crossings)
            rows.append((case.label, m.frames, *crossing, m.unfinished, m.went_back))
        return Table(head, rows)

    def _rest(self) -> Table:
        head = ["", "energy at the start [J]", "after 80 % of the time", "at the end"]
        head += ["fastest vertex at the end [m/s]", "height at the end [m]", "largest strain"]
        rows: list[Row] = []
        for case, m in self.results.items():
            energies = (m.energies[0], m.energies[(4 * (len(m.energies) - 1)) // 5], m.energies[-1])
            rows.append((case.label, *energies, m.end_speed, m.end_height, m.max_stretch))
        return Table(head, rows)

    def _film(self, case: Case, size: tuple[int, int]) -> Film:
        return Film(Recording(self.folder / case.folder), size, AZIMUTHS[case.place], 18.0)

    def _sheet(self, case: Case) -> Picture:
        """Six frames: the fall, and the end."""
        film = self._film(case, PICTURE)
        last = len(film.recording) - 1
        frames = [*(min(round(moment * FPS), last) for moment in SHOWN[case.place]), last]
        name = f"{case.folder}.png"
        film.write_sheet(self.folder / name, frames, 3)
        caption = f"{case.label}, at {', '.join(f'{frame / FPS:.2f}' for frame in frames)} s"
        if case.system == "S3":
            caption += f" (the paper's Fig. {FIGURES[case.place, case.size][0]})"
        return Picture(name, caption)

    def _end(self, case: Case) -> Picture:
        """The last frame, from near by."""
        name = f"{case.folder}-end.png"
        self._film(case, (2 * PICTURE[0], 2 * PICTURE[1])).write_picture(self.folder / name)
        return Picture(name, f"{case.label}, at the end (the paper's Fig. {FIGURES[case.place, case.size][1]})")


def _is_same(a: Scene, b: Scene) -> bool:
    hidden = {"folder", "source"}
    return bool(a.model_dump(exclude=hidden) == b.model_dump(exclude=hidden))
