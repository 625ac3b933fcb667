"""Narrow phases: time a candidate against IPC Toolkit's, and what each continuous test misses.

    python benchmarks/narrow_phase.py [--recording DIR] [--queries N] [--skip-peers]

Part 1, on one thread: nanoseconds a candidate on the candidates of a crumpled 101 x 101 cloth, ours against IPC
Toolkit's additive CCD and tight inclusion, all in this run. Candidates that never meet go through the toolkit's own
loop; the few that do meet would end that loop early, so they are timed one by one, the call from Python included.
Times are those of the processor. A step below 1 tells that the toolkit, for safety, reports contacts of its own.
Part 2: constructed contacts that each test misses or reports late. Part 3: false contacts and earliness of the
conservative test, against exact arithmetic.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

sys.path.insert(0, str(Path(__file__).parents[1]))  # the oracles live with the tests

from tests.oracles.contact_queries import FAMILIES, KINDS, build, nearly_flat_motion, nudged, random_motion
from tests.oracles.rational_contact import certainly_apart, first_contact

from weft.arrays import Bools, Floats, Ints
from weft.collision.narrow.continuous import METHODS, first_contact_times, time_of_impact
from weft.errors import WeftError
from weft.geometry.mesh import build_grid
from weft.geometry.topology import build_topology
from weft.jit import set_threads

LATE = 1e-6  # of the step: what counts as late for the tests that make no promise
LAYERS, SPACING = 10, 0.003  # m


class State(NamedTuple):
    """A cloth at the two ends of a step."""

    name: str
    x_t0: Floats
    x_t1: Floats
    triangles: Ints


def folded_state(vertices: int, seed: int = 3) -> State:
    """A square metre folded to and fro into layers 3 mm apart, uneven, sliding and pressed together."""
    mesh = build_grid((1.0, 1.0), (vertices, vertices))
    rng = np.random.default_rng(seed)
    u, v = mesh.positions[:, 0] + 0.5, mesh.positions[:, 1]
    part = u * LAYERS
    layer = np.floor(part)
    along = np.where(layer % 2 == 0, part - layer, 1.0 - (part - layer)) / LAYERS
    x = np.stack([along, v, SPACING * part], axis=1)
    slide = rng.normal(size=(LAYERS + 1, 2)) * 0.002
    motion = np.zeros_like(x)
    motion[:, :2] = slide[layer.astype(int)]
    for _ in range(5):
        k, phase = rng.normal(size=2) * 25.0, rng.uniform(0, 2 * np.pi, size=2)
        x[:, 2] += 0.0003 * np.sin(x[:, :2] @ k + phase[0])
        motion[:, 2] += 0.001 * np.sin(x[:, :2] @ k + part + phase[1])
    motion[:, 2] -= 0.02 * (x[:, 2] - x[:, 2].min())
    return State("folded", x, np.ascontiguousarray(x + motion), mesh.triangles)


def crumpled_state(vertices: int) -> State:
    """The pile that the broad phases are measured on."""
    from crumpled import make_state  # a neighbour of this script

    state = make_state(vertices)
    return State("crumpled", state.x_t0, state.x_t1, state.mesh.triangles)


def recorded_state(folder: Path, frame: int) -> State:
    """Two frames of a recording: positions.f32 and triangles.npy."""
    triangles = np.load(folder / "triangles.npy").astype(np.int32)
    n = int(triangles.max()) + 1
    frames = np.fromfile(folder / "positions.f32", np.float32).astype(np.float64)
    if frames.size % (3 * n):
        raise WeftError(f"{folder}: positions.f32 does not hold whole frames of {n} vertices")
    frames = frames.reshape(-1, n, 3)
    end = frame % len(frames)
    return State(folder.name, np.ascontiguousarray(frames[end - 1]), np.ascontiguousarray(frames[end]), triangles)


def swept_boxes(state: State, rows: Ints) -> tuple[Floats, Floats]:
    corners = np.concatenate([state.x_t0[rows], state.x_t1[rows]], axis=1)
    return corners.min(axis=1), corners.max(axis=1)


def overlapping(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> tuple[Ints, Ints]:
    """Index pairs of boxes that overlap, by a k-d tree of their centres."""
    reach = float((first[1] - first[0]).max() + (second[1] - second[0]).max()) / 2.0
    trees = [cKDTree((low + high) / 2.0) for low, high in (first, second)]
    near = trees[0].sparse_distance_matrix(trees[1], reach, p=np.inf, output_type="ndarray")
    i, j = near["i"].astype(np.int32), near["j"].astype(np.int32)
    keep = (first[0][i] <= second[1][j]).all(axis=1) & (second[0][j] <= first[1][i]).all(axis=1)
    return i[keep], j[keep]


class Candidates(NamedTuple):
    """Pairs with overlapping swept boxes and no vertex in common, as indices of elements and of vertices."""

    vertex: Ints
    face: Ints
    edge_a: Ints
    edge_b: Ints
    vertex_triangles: Ints
    edge_edges: Ints
    edges: Ints


def find_candidates(state: State) -> Candidates:
    edges = build_topology(state.triangles, len(state.x_t0)).edges
    points = np.arange(len(state.x_t0), dtype=np.int32)[:, None]
    edge_boxes = swept_boxes(state, edges)
    vertex, face = overlapping(swept_boxes(state, points), swept_boxes(state, state.triangles))
    strange = (state.triangles[face] != vertex[:, None]).all(axis=1)
    vertex, face = vertex[strange], face[strange]
    a, b = overlapping(edge_boxes, edge_boxes)
    apart = (a < b) & (edges[a][:, :, None] != edges[b][:, None, :]).all(axis=(1, 2))
    a, b = a[apart], b[apart]
    vertex_triangles = np.concatenate([vertex[:, None], state.triangles[face]], axis=1).astype(np.int32)
    edge_edges = np.concatenate([edges[a], edges[b]], axis=1).astype(np.int32)
    return Candidates(vertex, face, a, b, vertex_triangles, edge_edges, edges)


def best_of(call: Callable[[], Any], repeats: int = 5) -> float:
    """Shortest time of `call` in seconds of the processor, which other programs on the machine do not lengthen."""
    call()
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def run_ours(state: State, rows: Ints, edges: bool) -> Floats:
    return first_contact_times(state.x_t0, state.x_t1, rows, edges)


def single_ours(state: State, rows: Ints, edges: bool) -> list[float]:
    """Seconds of each query, from 200 repetitions of it."""
    return [
        best_of(lambda repeated=np.repeat(row[None], 200, axis=0): run_ours(state, repeated, edges), 3) / 200
        for row in rows
    ]


def slowest_ours(state: State, rows: Ints, edges: bool) -> float:
    """Seconds of the slowest query: the slowest chunks are found first, then each of their rows is timed by itself."""
    chunks = [rows[start : start + 64] for start in range(0, len(rows), 64)]
    slow = sorted(chunks, key=lambda chunk: best_of(lambda: run_ours(state, chunk, edges), 2))[-6:]
    return max(single_ours(state, np.concatenate(slow), edges), default=0.0)


def toolkit_loop(
    state: State, found: Candidates, keep: Bools, edges: bool, ccd: Any
) -> tuple[Callable[[], float], int]:
    """The toolkit's own loop over the candidates `keep`, which returns the step that is free of collisions."""
    import ipctk

    x_t0, x_t1 = np.asfortranarray(state.x_t0), np.asfortranarray(state.x_t1)
    mesh = ipctk.CollisionMesh(x_t0, np.asfortranarray(found.edges), np.asfortranarray(state.triangles))
    candidates = ipctk.Candidates()
    if edges:
        pairs = zip(found.edge_a[keep].tolist(), found.edge_b[keep].tolist(), strict=True)
        candidates.ee_candidates = [ipctk.EdgeEdgeCandidate(a, b) for a, b in pairs]
    else:
        pairs = zip(found.face[keep].tolist(), found.vertex[keep].tolist(), strict=True)
        candidates.fv_candidates = [ipctk.FaceVertexCandidate(face, vertex) for face, vertex in pairs]
    return lambda: candidates.compute_collision_free_stepsize(mesh, x_t0, x_t1, 0.0, ccd), len(candidates)


def single_queries(state: State, rows: Ints, edges: bool, ccd: Any) -> Floats:
    """Seconds of each query by itself, the call from Python (a few microseconds) included."""
    test = ccd.edge_edge_ccd if edges else ccd.point_triangle_ccd
    seconds = []
    for row in rows:
        x_t0, x_t1 = list(state.x_t0[row]), list(state.x_t1[row])
        seconds.append(best_of(lambda x_t0=x_t0, x_t1=x_t1: test(*x_t0, *x_t1, 0.0, 1.0), 3))
    return np.array(seconds)


def print_times(state: State, peers: bool) -> None:
    """Part 1 for one state."""
    set_threads(1)
    found = find_candidates(state)
    for kind, rows in zip(KINDS, (found.vertex_triangles, found.edge_edges), strict=True):
        edges = kind == "edge-edge"
        times = run_ours(state, rows, edges)
        apart = ~np.isfinite(times)
        ours = best_of(lambda: run_ours(state, rows[apart], edges)) / max(apart.sum(), 1)  # noqa: B023
        print(f"\n{state.name}, {kind}: {len(rows)} candidates, {int((~apart).sum())} meet")
        print(f"  {'ours':24s} {1e9 * ours:8.0f} ns a candidate that stays apart")
        single = single_ours(state, rows[~apart], edges)
        if single:
            print(f"  {'':24s} {1e9 * np.mean(single):8.0f} ns one that meets")
        slowest = max([slowest_ours(state, rows, edges), *single])
        print(f"  {'':24s} {1e9 * slowest:8.0f} ns the slowest single query")
        for name, make in _peers(peers):
            ccd = make()
            loop, count = toolkit_loop(state, found, apart, edges, ccd)
            seconds = best_of(loop, 2) / max(count, 1)
            print(
                f"  {name:24s} {1e9 * seconds:8.0f} ns a candidate that stays apart: {seconds / ours:.1f} times ours"
                f" (its step: {loop():.6f})"
            )
            if single:
                alone = single_queries(state, rows[~apart][:200], edges, ccd)
                print(f"  {'':24s} {1e9 * alone.mean():8.0f} ns one that meets, the slowest {1e9 * alone.max():.0f} ns")
    set_threads(None)


def _peers(wanted: bool) -> list[tuple[str, Callable[[], Any]]]:
    if not wanted or importlib.util.find_spec("ipctk") is None:
        return []
    import ipctk

    ipctk.set_num_threads(1)
    return [
        (f"ipctk {ipctk.__version__} additive", ipctk.AdditiveCCD),
        (f"ipctk {ipctk.__version__} tight incl.", ipctk.TightInclusionCCD),
    ]


def print_misses(n: int) -> None:
    """Part 2: missed + late contacts of every method, on the same constructed contacts."""
    print(f"\nConstructed contacts, {n} of each: missed + late (conservative: later than exact; others: by > {LATE:g})")
    print(f"{'kind':16s} {'family':22s}" + "".join(f"{method:>20s}" for method in METHODS))
    totals = dict.fromkeys(METHODS, 0)
    for kind in KINDS:
        for family in FAMILIES:
            queries = build(family, np.random.default_rng(1), n, kind)
            cells = []
            for method in METHODS:
                if method == "triangle-space" and kind == "edge-edge":
                    cells.append("-")
                    continue
                times = time_of_impact(queries.x_t0, queries.x_t1, kind, method=method)
                missed = np.isinf(times)
                allowance = 0.0 if method == "conservative" else LATE
                late = ~missed & (times > queries.contact_times + allowance)
                cells.append(f"{int(missed.sum())} + {int(late.sum())}")
                totals[method] += int(missed.sum())
            print(f"{kind:16s} {family:22s}" + "".join(f"{cell:>20s}" for cell in cells))
    print(f"{'missed in all':39s}" + "".join(f"{totals[method]:>20d}" for method in METHODS))
    slowest = 0.0
    for kind in KINDS:
        for family in FAMILIES:
            queries = build(family, np.random.default_rng(1), n, kind)
            state = State(family, queries.x_t0.reshape(-1, 3), queries.x_t1.reshape(-1, 3), np.empty((0, 3), np.int32))
            rows = np.arange(4 * n, dtype=np.int32).reshape(n, 4)
            slowest = max(slowest, slowest_ours(state, rows, kind == "edge-edge"))
    print(f"slowest conservative query among all of these: {1e6 * slowest:.1f} microseconds")


def print_conservatism(n: int) -> None:
    """Part 3: what the conservative test costs, against exact arithmetic."""
    print(f"\nConservative against exact arithmetic, {n} queries each; earliness in parts of the step")
    print(
        f"{'kind':16s} {'queries':14s} {'contacts':>9s} {'missed':>7s} {'late':>6s} {'false':>6s} {'early: median':>14s} {'99 %':>9s} {'most':>9s}"
    )
    for kind in KINDS:
        for name in ("random", "nearly flat", "nudged"):
            x_t0, x_t1 = _uncertain(name, n, kind)
            times = time_of_impact(x_t0, x_t1, kind)
            apart = certainly_apart(x_t0, x_t1, kind)
            exact = [None if apart[i] else first_contact(x_t0[i], x_t1[i], kind) for i in range(n)]
            hits = [(root, t) for root, t in zip(exact, times, strict=True) if root is not None]
            early = np.array([root.approximate() - t for root, t in hits if np.isfinite(t)])
            missed = sum(bool(np.isinf(t)) for _, t in hits)
            late = sum(root.compare(t) < 0 for root, t in hits if np.isfinite(t))
            false = sum(root is None and bool(np.isfinite(t)) for root, t in zip(exact, times, strict=True))
            print(
                f"{kind:16s} {name:14s} {len(hits):9d} {missed:7d} {late:6d} {false:6d} {np.median(early):14.1e}"
                f" {np.quantile(early, 0.99):9.1e} {early.max():9.1e}"
            )


def _uncertain(name: str, n: int, kind: str) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(2)
    if name == "random":
        return random_motion(rng, n)
    if name == "nearly flat":
        return nearly_flat_motion(rng, n)
    parts = [nudged(build(family, rng, n // len(FAMILIES) + 1, kind), rng) for family in FAMILIES]
    return np.concatenate([a for a, _ in parts])[:n], np.concatenate([b for _, b in parts])[:n]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recording", type=Path, help="a folder with positions.f32 and triangles.npy")
    parser.add_argument("--frame", type=int, default=-1, help="the step that ends at this frame of the recording")
    parser.add_argument("--vertices", type=int, default=101, help="along a side of the generated cloths")
    parser.add_argument("--queries", type=int, default=2000, help="of each family in parts 2 and 3")
    parser.add_argument("--skip-peers", action="store_true", help="do not run IPC Toolkit")
    arguments = parser.parse_args()
    if arguments.recording:
        states = [recorded_state(arguments.recording, arguments.frame)]
    else:
        states = [folded_state(arguments.vertices)]
        if importlib.util.find_spec("crumpled"):
            states.append(crumpled_state(arguments.vertices))
    for state in states:
        print_times(state, not arguments.skip_peers)
    if not arguments.skip_peers and not _peers(True):
        print("\nIPC Toolkit is not installed: pip install ipctk")
    print_misses(arguments.queries)
    print_conservatism(arguments.queries)


if __name__ == "__main__":
    main()
