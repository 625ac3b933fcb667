"""da Silva: cloth in the wind, with limited strain, against itself and on a table; as published, and completed.

M. G. da Silva, "Cloth animation with collision detection". The paper has pictures and no tables, and gives neither
sizes nor steps nor stiffness: the numbers beside its claims are ours alone. Published: method `silva`. Completed:
`silva_completed`, with what the paper lists as future work. Both have the same cloth.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from weft.arrays import Floats, Ints
from weft.collision.broad import BROAD_PHASES, join_meshes
from weft.collision.culling.adjacency import Adjacency
from weft.collision.narrow.continuous import first_contact_times
from weft.geometry.mesh import Mesh
from weft.methods import METHODS
from weft.render.film import Film
from weft.reproduce.report import Heading, Paragraph, Picture, Report, Row, Table
from weft.scene.build import build_bodies, build_world
from weft.scene.files import load_scene
from weft.scene.schema import Scene
from weft.simulation.recording import Recording
from weft.simulation.run import record
from weft.simulation.simulation import Simulation
from weft.strain import share_over

PUBLISHED, COMPLETED = "silva", "silva_completed"
EDGE_STEPS = 60 * 0.02  # steps in a frame times the length of an edge [m]: explicit steps follow the mesh
FALLS = ("tablecloth", "ground", "sphere")
LIMITERS: dict[str, Any] = {
    "none": "none",
    "position": "position_limit",
    "velocity": {"name": "velocity_limit", "rate": 0.1},
    "velocity-jacobi": {"name": "velocity_limit", "rate": 0.1, "sweep": "jacobi", "max_sweeps": 100},
}
SOFTEST = 6e-4  # of the fabric's structural stiffness: gravity alone takes springs beyond 10 %
PICTURE = (480, 360)
SELF = ("passing-off", "ground-published", "ground-completed")
SEARCHES = 12  # moments of a recording that detection is timed at
TOUCHING = 1e-6  # [m]
SPREAD = 4  # frames of motion taken for one step, so that there is something to find
INTRODUCTION = (
    "Published: explicit Euler, repulsion and inelastic impulses in one pass, no friction, the cubic. Completed: "
    "friction, strain and its rate limited through velocities, a final velocity solved implicitly, impulses in sweeps "
    "and passes by the conservative continuous test, then impact zones. The paper shows pictures and counts nothing; "
    "its claims stand beside our counts."
)
STAGES = (
    "The paper: the first stage eliminates almost all collisions. With explicit steps of a fraction of a millisecond "
    "cloth moves less than its contact distance in a step, and what is about to meet is near first. Longer: the fall "
    "to the ground with steps of 8 ms, which responsive cloth and implicit Euler allow; there the stages differ."
)
STRAIN = (
    "The paper: without a limit springs stretch by more than 10 %, the position method keeps the size of the cloth, "
    "the velocity method did not work, and positions without velocities made collisions explode. Here a limit moves "
    "velocities along with positions, and all of them hold."
)
SHARING = (
    "Section 9.1.1: neighbours are left out, and the two triangles of a quad share a box. Times are those of the "
    "processor, in this run, over the same steps; the share is that of the whole step, the dynamics of the cloth being "
    "the rest."
)
SPACES = (
    "Section 9.1.2: the vertex in the space of the triangle, against the cubic, on the same candidates, of the cloth "
    "that passes through itself; those that touch at the start or the end, as sheets in the plane of the floor do, are "
    "left out. What the conservative test finds is taken as the truth."
)


class Case(NamedTuple):
    """One animation."""

    name: str
    """of its folder"""
    scene: str
    """of the gallery"""
    vertices: int
    duration: float
    method: dict[str, Any]
    changes: tuple[str, ...] = ()
    steps: int | None = None
    """in a frame; as many as explicit steps need where absent"""

    @property
    def label(self) -> str:
        return self.name.replace("-", ", ", 1).replace("-", " ")


def _method(name: str, **changes: Any) -> dict[str, Any]:
    return {**METHODS[name].model_dump(exclude={"description", "steps_per_frame"}), **changes}


def build_cases(quick: bool) -> list[Case]:
    """All animations of the report."""
    n, few = (21, 21) if quick else (51, 31)
    cases = []
    for scene in FALLS:
        duration = 1.0 if quick and scene != "sphere" else 2.0
        for label, method in (("published", PUBLISHED), ("completed", COMPLETED)):
            cases.append(Case(f"{scene}-{label}", scene, n, duration, _method(method)))
    for label, response in (("published", "impulses"), ("completed", "impact_zones")):
        parts = _method(PUBLISHED, model="responsive", integrator="implicit_euler", response=response)
        cases.append(Case(f"longer-{label}", "ground", few, 1.0, parts, steps=2))
    cases.append(Case("wind-completed", "banner", few, 1.5, _method(COMPLETED)))
    for label, strain in LIMITERS.items():
        soft = {"name": "mass_spring", "structural": SOFTEST, "damping": 0.02}
        still = ("wind.velocity=[0, 0, 0]", "wind.gust=0")
        parts = _method(PUBLISHED, strain=strain, model=soft)
        cases.append(Case(f"hanging-{label}", "banner", 21, 0.8 if quick else 1.5, parts, still))
    passing = _method(PUBLISHED, response={"name": "impulses", "self_collision": False})
    cases.append(Case("passing-off", "ground", n, 1.0 if quick else 2.0, passing))
    return cases


def build_scene(case: Case) -> Scene:
    """The scene of one animation."""
    overrides = [f"cloth.0.grid.vertices=[{case.vertices}, {case.vertices}]", f"duration={case.duration}"]
    loaded = load_scene(case.scene, [*overrides, *case.changes])
    grid = loaded.cloth[0].grid
    assert grid is not None
    steps = case.steps or max(10, math.ceil(EDGE_STEPS * (case.vertices - 1) / grid.size[0]))
    values = {"name": f"silva-{case.name}", "method": case.method, "steps_per_frame": steps}
    return Scene.model_validate({**loaded.model_dump(exclude_unset=True), **values})


@dataclass(frozen=True)
class Measured:
    """What one animation gave."""

    steps: int
    frames: int
    crossings: int
    """pairs of cloth triangles that cross, over all frames"""
    body_crossings: int
    inside: int
    """vertices inside bodies, over all frames"""
    frames_crossing: int
    near: int
    """contacts of stage one"""
    met: int
    """pairs of stage two"""
    steps_met: int
    zone_steps: int
    rigid_steps: int
    detection: float
    """[s] a step"""
    total: float
    """[s] a step, without the certificate"""
    over: float
    """share of springs beyond 10 % in the last frame"""
    most_over: float
    """and the largest share of all frames"""
    max_stretch: float
    lowest: float
    """[m] of the lowest vertex in the last frame"""
    end_speed: float
    """[m/s] of the fastest vertex in the last frame"""


def measure(scene: Scene, folder: Path, on_frame: Callable[[int], None]) -> Measured:
    """Run `scene` into `folder` and count."""
    simulation = Simulation(scene)
    spent: list[float] = []
    over: list[float] = []
    speeds: list[float] = []

    def note(frame: Any) -> None:
        seconds = frame.certificate.seconds
        spent.append(sum(seconds.values()) - seconds.get("certify", 0.0))
        over.append(share_over(frame.positions, simulation.strain.springs, 0.1, compression=False))
        speeds.append(float(np.linalg.norm(frame.velocities, axis=1).max()))
        on_frame(frame.index)

    recording = record(simulation, folder, overwrite=True, on_frame=note)
    counts, rows = simulation.response.counts, recording.certificates
    crossing = [row["intersections"] + row["body_intersections"] + row["inside"] > 0 for row in rows]
    return Measured(
        steps=counts.steps,
        frames=len(recording),
        crossings=sum(row["intersections"] for row in rows),
        body_crossings=sum(row["body_intersections"] for row in rows),
        inside=sum(row["inside"] for row in rows),
        frames_crossing=sum(crossing),
        near=counts.near,
        met=counts.met,
        steps_met=counts.steps_met,
        zone_steps=counts.zone_steps,
        rigid_steps=counts.rigid_steps,
        detection=counts.seconds / counts.steps,
        total=sum(spent) / counts.steps,
        over=over[-1],
        most_over=max(over),
        max_stretch=max(row["max_stretch"] for row in rows),
        lowest=float(recording.positions[-1][:, 2].min()),
        end_speed=speeds[-1],
    )


class Silva:
    """Figures 1 and 4 to 7, and sections 7 and 9 in numbers."""

    def __init__(self, folder: Path, *, quick: bool = False, overwrite: bool = False) -> None:
        self.folder, self.overwrite = folder, overwrite
        self.cases = build_cases(quick)
        self.results: dict[str, Measured] = {}

    @staticmethod
    def n_parts(quick: bool) -> int:
        return sum(build_scene(case).n_frames for case in build_cases(quick))

    def run(self, advance: Callable[[int], None]) -> Report:
        done = 0
        for case in self.cases:
            self.results[case.name] = self.measured(case, lambda frame, done=done: advance(done + frame))  # type: ignore[misc]
            done += build_scene(case).n_frames
            advance(done)
        report = self._report()
        report.write(self.folder)
        return report

    def measured(self, case: Case, on_frame: Callable[[int], None]) -> Measured:
        """What was measured of a case, now or before."""
        scene = build_scene(case)
        folder = self.folder / case.name
        kept = folder / "measured.json"
        if not self.overwrite and kept.exists() and _is_same(Recording(folder).scene, scene):
            return Measured(**json.loads(kept.read_text(encoding="utf-8")))
        Simulation(build_scene(case._replace(vertices=5))).step()  # compiles: the times are to be of steps alone
        result = measure(scene, folder, on_frame)
        kept.write_text(json.dumps(asdict(result)), encoding="utf-8")
        return result

    def _report(self) -> Report:
        report = Report("da Silva: cloth animation with collision detection")
        report.add(Paragraph(INTRODUCTION), Heading("Certified"), self._certificate())
        report.add(Heading("Stage one and stage two"), self._stages(), Paragraph(STAGES))
        report.add(Heading("Figure 1: cloth blowing in the wind"), self._sheet("wind-completed", (0.3, 0.6, 1.1), 50.0))
        report.add(Heading("Figure 4: unlimited and limited strain"), self._strain(), Paragraph(STRAIN))
        for label in ("none", "position", "velocity"):
            report.add(self._end(f"hanging-{label}", f"strain, limit: {label}", 75.0, stretch=True))
        report.add(Heading("Figure 5: boxes not tested"), *self._boxes())
        report.add(Heading("Figure 6: self-collision off and on"), self._passing())
        for name in SELF:
            report.add(self._end(name, f"self-collision: {name.split('-')[1]}", 62.0))
        report.add(Heading("Figure 7: cloth falling on a table"))
        report.add(self._sheet("tablecloth-completed", (0.15, 0.3, 0.45), 30.0))
        report.add(Heading("A cloth dropped on a ball and dragged off it"))
        report.add(self._sheet("sphere-completed", (0.4, 0.9, 1.2), 60.0))
        report.add(Heading("Self-collision: neighbours and shared boxes"), self._sharing(), Paragraph(SHARING))
        report.add(Heading("The space of the triangle against the cubic"), self._spaces(), Paragraph(SPACES))
        return report

    def _certificate(self) -> Table:
        head = ["", "frames", "frames with crossings", "cloth and cloth", "cloth and body", "vertices inside bodies"]
        rows: list[Row] = []
        for name, m in self._of(*FALLS, "longer"):
            rows.append((name, m.frames, m.frames_crossing, m.crossings, m.body_crossings, m.inside))
        return Table(head, rows)

    def _stages(self) -> Table:
        head = [
            "",
            "steps",
            "contacts, stage one",
            "pairs, stage two",
            "share of stage one [%]",
            "steps with stage two",
        ]
        head += ["steps with zones", "of these rigid", "time [ms a step]"]
        rows: list[Row] = []
        for name, m in self._of(*FALLS, "longer"):
            share = 100.0 * m.near / max(1, m.near + m.met)
            zones = (m.steps_met, m.zone_steps, m.rigid_steps)
            rows.append((name, m.steps, m.near, m.met, f"{share:.4f}", *zones, 1e3 * m.total))
        return Table(head, rows)

    def _strain(self) -> Table:
        head = ["limit", "springs over 10 % at the end [%]", "at most [%]", "largest strain [%]", "lowest vertex [m]"]
        head += ["fastest vertex at the end [m/s]"]
        rows: list[Row] = []
        for name, m in self._of("hanging"):
            shares = (100.0 * m.over, 100.0 * m.most_over, 100.0 * m.max_stretch)
            rows.append((name.removeprefix("hanging, "), *shares, m.lowest, m.end_speed))
        return Table(head, rows)

    def _passing(self) -> Table:
        head = ["self-collision", "frames", "frames with crossings", "pairs that cross, all frames"]
        rows: list[Row] = []
        for name in SELF:
            m = self.results[name]
            rows.append((name.split("-")[1], m.frames, m.frames_crossing, m.crossings))
        return Table(head, rows)

    def _of(self, *scenes: str) -> list[tuple[str, Measured]]:
        return [(case.label, self.results[case.name]) for case in self.cases if case.name.split("-")[0] in scenes]

    def _film(self, name: str, azimuth: float, **more: Any) -> Film:
        return Film(Recording(self.folder / name), PICTURE, azimuth, 18.0, **more)

    def _sheet(self, name: str, times: tuple[float, ...], azimuth: float) -> Picture:
        film = self._film(name, azimuth)
        last = len(film.recording) - 1
        frames = [*(min(round(t * film.recording.fps), last) for t in times), last]
        film.write_sheet(self.folder / f"{name}.png", frames, 2)
        shown = ", ".join(f"{frame / film.recording.fps:.2f}" for frame in frames)
        return Picture(f"{name}.png", f"{name.replace('-', ', ')}, at {shown} s")

    def _end(self, name: str, caption: str, azimuth: float, **more: Any) -> Picture:
        self._film(name, azimuth, **more).write_picture(self.folder / f"{name}.png")
        return Picture(f"{name}.png", caption)

    def _boxes(self) -> tuple[Table, Picture]:
        """The search of the cloth against the ball, at the moment when it lies on it."""
        name = "sphere-completed"
        recording = Recording(self.folder / name)
        frame = min(round(0.45 * recording.fps), len(recording) - 1)
        rows: list[Row] = []
        for broad, share in (("aabb_tree", False), ("aabb_tree", True)):
            tested, boxes, tests = count_tested(recording, frame, broad, share)
            label = "one box a quad" if share else "one box a triangle"
            rows.append((label, boxes, tested, 100.0 * (1.0 - tested / boxes), tests))
        table = Table(["cloth against ball", "boxes", "boxes tested", "not tested [%]", "box tests"], rows)
        self._film(name, 60.0, boxes="aabb_tree").write_picture(self.folder / "boxes.png", frame)
        return table, Picture("boxes.png", f"boxes that were not tested, green, at {frame / recording.fps:.2f} s")

    def _sharing(self) -> Table:
        recording = Recording(self.folder / "ground-completed")
        total, seconds = 0.0, 0.0
        for row in recording.certificates:
            total += sum(value for stage, value in row["seconds"].items() if stage in ("forces", "solve", "strain"))
        per_step = total / max(1, self.results["ground-completed"].steps)
        head = ["", "box tests", "pairs of triangles", "pairs of features", "time [ms]", "share of the step [%]"]
        rows: list[Row] = []
        for adjacent, share in ((False, False), (True, False), (False, True), (True, True)):
            label = " and ".join(
                text for text, on in (("neighbours left out", adjacent), ("one box a quad", share)) if on
            )
            tests, pairs, features, seconds = time_detection(recording, adjacent, share)
            part = 100.0 * seconds / (seconds + per_step)
            rows.append((label or "as published", tests, pairs, features, 1e3 * seconds, part))
        return Table(head, rows)

    def _spaces(self) -> Table:
        recording = Recording(self.folder / "passing-off")
        head = ["vertex against triangle", "candidates", "met", "missed", "not there", "time [ns each]"]
        return Table(head, compare_tests(recording))


def moments(recording: Recording, spread: int, first: float) -> list[tuple[Floats, Floats]]:
    """Pairs of positions `spread` frames apart, from the share `first` of a recording on."""
    last = max(0, len(recording) - 1 - spread)
    frames = np.unique(np.linspace(first * last, last, SEARCHES).astype(int))
    x = recording.positions
    return [(np.asarray(x[k], np.float64), np.asarray(x[min(k + spread, len(x) - 1)], np.float64)) for k in frames]


def count_tested(recording: Recording, frame: int, broad: str, share: bool) -> tuple[int, int, int]:
    """Boxes of the cloth that its search against the first body tested, all of them, and tests between boxes."""
    member = BROAD_PHASES.load(broad)
    parameters = member.Parameters(share_quad_box=share)
    world, body = build_world(recording.scene), build_bodies(recording.scene)[0]
    cloth = member(join_meshes([piece.mesh for piece in world.pieces]), parameters)
    at = frame / recording.fps
    other = member(Mesh(*body.triangulate(at)), parameters)
    x = recording.positions
    cloth.refit(x[max(0, frame - 1)], x[frame], world.pieces[0].contact_distance)
    other.refit(body.triangulate(at)[0])
    cloth.pairs(other)
    boxes = cloth.tested_boxes()
    return int(boxes.tested.sum()), len(boxes.tested), cloth.counters.boxes_tested


def time_detection(recording: Recording, adjacent: bool, share: bool) -> tuple[int, int, int, float]:
    """Box tests, pairs of triangles and of features, and processor time [s] of one search of a cloth against itself."""
    member = BROAD_PHASES.load("aabb_tree")
    world = build_world(recording.scene)
    mesh = join_meshes([piece.mesh for piece in world.pieces])
    phase = member(mesh, member.Parameters(share_quad_box=share))
    neighbours = Adjacency(mesh)
    steps = moments(recording, 1, 0.5)
    n_pairs = n_features = 0

    def search(x_t0: Floats, x_t1: Floats) -> tuple[int, int]:
        phase.refit(x_t0, x_t1, world.pieces[0].contact_distance)
        pairs = phase.self_pairs()
        pairs = neighbours.apply(pairs) if adjacent else pairs
        features = feature_rows(mesh, pairs)
        for rows, edges in zip(features, (False, True), strict=True):
            first_contact_times(x_t0, x_t1, rows, edges, 0.0, "cubic")
        return len(pairs), sum(map(len, features))

    search(*steps[0])  # compiles
    phase.counters.clear()
    start = time.process_time()
    for x_t0, x_t1 in steps:
        found = search(x_t0, x_t1)
        n_pairs, n_features = n_pairs + found[0], n_features + found[1]
    seconds = time.process_time() - start
    k = len(steps)
    return phase.counters.boxes_tested // k, n_pairs // k, n_features // k, seconds / k


def feature_rows(mesh: Mesh, pairs: Ints) -> tuple[Ints, Ints]:
    """What the paper tests of each pair of triangles: six times a vertex and a triangle, nine times two edges.

    Rows of the four vertices; a vertex with a triangle that it belongs to, and edges with a common vertex, touch
    always and are left out.
    """
    a, b = mesh.triangles[pairs[:, 0]], mesh.triangles[pairs[:, 1]]
    vertex = [np.column_stack([p[:, i], q]) for p, q in ((a, b), (b, a)) for i in range(3)]
    corners = [(0, 1), (1, 2), (2, 0)]
    edge = [np.column_stack([a[:, i], a[:, j], b[:, k], b[:, m]]) for i, j in corners for k, m in corners]
    rows_v, rows_e = np.concatenate(vertex), np.concatenate(edge)
    apart = (rows_v[:, :1] != rows_v[:, 1:]).all(axis=1)
    free = (rows_e[:, :2, None] != rows_e[:, None, 2:]).all(axis=(1, 2))
    return np.ascontiguousarray(rows_v[apart], np.int32), np.ascontiguousarray(rows_e[free], np.int32)


def compare_tests(recording: Recording) -> list[Row]:
    """The continuous tests of a vertex and a triangle on the candidates of a recording."""
    world = build_world(recording.scene)
    mesh = join_meshes([piece.mesh for piece in world.pieces])
    phase = BROAD_PHASES.load("aabb_tree")(mesh)
    queries = []
    for x_t0, x_t1 in moments(recording, SPREAD, 0.15):
        phase.refit(x_t0, x_t1)
        pairs = phase.candidates().vertex_triangle
        rows = np.ascontiguousarray(np.column_stack([pairs[:, 0], mesh.triangles[pairs[:, 1]]]), np.int32)
        apart = (np.isinf(first_contact_times(x, x, rows, False, TOUCHING)) for x in (x_t0, x_t1))
        queries.append((x_t0, x_t1, np.ascontiguousarray(rows[np.logical_and(*apart)])))
    total = sum(len(rows) for _, _, rows in queries)
    found: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    for method in ("conservative", "cubic", "triangle-space"):
        first_contact_times(*queries[0], False, 0.0, method)  # compiles
        start = time.process_time()
        times = [first_contact_times(*query, False, 0.0, method) for query in queries]
        seconds[method] = time.process_time() - start
        found[method] = np.isfinite(np.concatenate(times))
    truth = found["conservative"]
    return [
        (
            method,
            total,
            int(met.sum()),
            int((truth & ~met).sum()),
            int((met & ~truth).sum()),
            1e9 * seconds[method] / total,
        )
        for method, met in found.items()
    ]


def _is_same(a: Scene, b: Scene) -> bool:
    hidden = {"folder", "source"}
    return bool(a.model_dump(exclude=hidden) == b.model_dump(exclude=hidden))
