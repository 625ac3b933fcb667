"""Broad phases and filters side by side, and against IPC Toolkit (extra `peers`), in one run.

    python benchmarks/broad_phase.py                     # 51, 101 and 201 vertices a side; growth up to 401
    python benchmarks/broad_phase.py --sizes 51 --rounds 5
    python benchmarks/broad_phase.py --recording out/ground --frame 60

States come from the scene `ground` as it crumples, run once into out/ground-N (201 a side takes half an hour); the
motion is that of one frame, 1/60 s. Sheets folded without a simulator follow: one with crossings, for what filters
miss, and growth with size, on one thread.

Times are the smallest of several rounds in which all methods take turns. On a machine that others use too, a long
task meets fewer quiet moments than a short one; the ratio of processor times, printed for one thread, is free of that.
`static` and `swept` are from positions to vertex-triangle and edge-edge candidates: refit and search for ours, build
and detect for theirs. Theirs inflates every box by `inflation_radius` = margin / 2, the same meaning as ours.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from crumpled import State, ground_state, make_state, read_state
from weft.arrays import Bools, Ints
from weft.collision.broad import BROAD_PHASES
from weft.collision.culling import CULLING_FILTERS
from weft.geometry.intersections import update_crossings
from weft.jit import set_threads, threads

MARGIN = 0.001  # m
PATIENCE = 0.3  # s: a method slower than this is measured in two rounds only
FOLDED = 101  # vertices a side of the sheet folded without a simulator
LARGEST_FOR_ALL_PAIRS = 25_000  # triangles
LARGEST_TO_COMPARE = 25_000  # triangles: theirs come out one by one

OURS: list[tuple[str, dict[str, Any]]] = [
    ("all_pairs", {}),
    ("binary_tree", {}),
    ("aabb_tree", {}),
    ("aabb_tree", {"share_quad_box": True}),
    ("quad_tree", {}),
    ("spatial_hash", {}),
    ("spatial_hash", {"fill": "nodes"}),
    ("linear_tree", {}),
]
THEIRS = ["LBVH", "BVH", "SpatialHash", "HashGrid", "SweepAndPrune"]

Task = Callable[[], object]


class Time(NamedTuple):
    """Smallest times of a task [ms]."""

    wall: float
    processor: float


def measure(tasks: dict[str, Task], rounds: int) -> dict[str, Time]:
    """Smallest times of every task, all of them taking turns."""
    best = {}
    for name, task in tasks.items():
        task()  # compiles, and grows the buffers
        best[name] = Time(np.inf, np.inf)
    gc.disable()
    for turn in range(rounds):
        for name, task in tasks.items():
            if turn >= 2 and best[name].wall > 1e3 * PATIENCE:
                continue
            start, processor_start = time.perf_counter(), time.process_time()
            task()
            wall, processor = time.perf_counter() - start, time.process_time() - processor_start
            best[name] = Time(min(best[name].wall, 1e3 * wall), min(best[name].processor, 1e3 * processor))
    gc.enable()
    return best


def label(name: str, options: dict[str, Any]) -> str:
    words = [f"{key}" if value is True else str(value) for key, value in options.items()]
    return " ".join([name, *words])


def make(family: Any, name: str, options: dict[str, Any], state: State) -> Any:
    member = family.load(name)
    return member(state.mesh, member.Parameters(**options))


def our_tasks(state: State) -> tuple[dict[str, Task], dict[str, Any]]:
    """Tasks named "member/what", and the members."""
    tasks: dict[str, Task] = {}
    members = {}
    for name, options in OURS:
        if name == "all_pairs" and len(state.mesh.triangles) > LARGEST_FOR_ALL_PAIRS:
            continue
        phase = make(BROAD_PHASES, name, options, state)
        key = label(name, options)
        members[key] = phase
        tasks[f"{key}/refit"] = lambda p=phase: p.refit(state.x_t0, state.x_t1, MARGIN)
        tasks[f"{key}/pairs"] = lambda p=phase: p.self_pairs()

        def candidates(p: Any = phase, end: Any = None) -> Any:
            p.refit(state.x_t0, end, MARGIN)
            return p.candidates()

        tasks[f"{key}/static"] = candidates
        tasks[f"{key}/swept"] = lambda c=candidates: c(end=state.x_t1)
    return tasks, members


def their_tasks(state: State) -> dict[str, Task]:
    """The same for IPC Toolkit, or nothing where it is not installed."""
    try:
        import ipctk
    except ImportError:
        return {}
    topology = state.mesh.topology
    mesh = ipctk.CollisionMesh(
        np.asfortranarray(state.x_t0), np.asfortranarray(topology.edges), np.asfortranarray(topology.triangles)
    )
    x_t0, x_t1 = np.asfortranarray(state.x_t0), np.asfortranarray(state.x_t1)
    tasks: dict[str, Task] = {}
    for name in THEIRS:
        if not hasattr(ipctk, name):
            continue

        kind = getattr(ipctk, name)

        def build(*ends: Any, kind: Any = kind) -> Any:
            candidates = ipctk.Candidates()
            candidates.build(mesh, *ends, MARGIN / 2, kind())
            return candidates

        tasks[f"ipctk {name}/static"] = lambda b=build: b(x_t0)
        tasks[f"ipctk {name}/swept"] = lambda b=build: b(x_t0, x_t1)
    return tasks


def set_all_threads(n: int) -> None:
    set_threads(n)
    try:
        import ipctk

        ipctk.set_num_threads(n)
    except ImportError:
        pass


def print_times(state: State, times: dict[int, dict[str, Time]], members: dict[str, Any]) -> None:
    n_threads = list(times)
    columns = ["refit", "pairs", "static", "swept"]
    names = list(dict.fromkeys(key.rsplit("/", 1)[0] for key in times[n_threads[0]]))
    head = "".join(f"{f'{column} {n}T':>12}" for column in columns for n in n_threads)
    print(f"\n{state.name}: {len(state.mesh.triangles):,} triangles, margin {1e3 * MARGIN:g} mm, times in ms")
    print(f"{'':28}{head}{'B/triangle':>12}")
    for name in names:
        cells = ""
        for column in columns:
            for n in n_threads:
                value = times[n].get(f"{name}/{column}")
                cells += f"{value.wall:12.2f}" if value is not None else f"{'-':>12}"
        memory = f"{members[name].memory() / len(state.mesh.triangles):12.0f}" if name in members else ""
        print(f"{name:28}{cells}{memory}")
    theirs = [name for name in names if name.startswith("ipctk")]
    if not theirs:
        print("ipctk is not installed (extra `peers`): no comparison")
        return
    for column in ("static", "swept"):
        for n in n_threads:
            own = min((times[n][f"{name}/{column}"], name) for name in members if members[name].complete)
            peer = min((times[n][f"{name}/{column}"], name) for name in theirs)
            text = f"{own[1]} {own[0].wall:.2f} ms, {peer[1]} {peer[0].wall:.2f} ms: {peer[0].wall / own[0].wall:.1f} x"
            if n == 1:
                text += f" (processor time {own[0].processor:.2f} and {peer[0].processor:.2f} ms:"
                text += f" {peer[0].processor / own[0].processor:.1f} x)"
            print(f"  {column}, {n} thread{'s' if n > 1 else ''}: {text}")


def keys_of(rows: Any) -> set[int]:
    array = np.asarray(rows, np.int64).reshape(-1, 2)
    return set((array[:, 0] << 32 | array[:, 1]).tolist())


def compare_candidates(state: State, tasks: dict[str, Task]) -> None:
    """Whether both sides find the same candidates."""
    for what in ("static", "swept"):
        own: Any = tasks[f"linear_tree/{what}"]()
        ours = keys_of(own.vertex_triangle), keys_of(own.edge_edge)
        for name in ("LBVH", "SpatialHash"):
            if f"ipctk {name}/{what}" not in tasks:
                continue
            found: Any = tasks[f"ipctk {name}/{what}"]()
            theirs = (
                keys_of([(c.vertex_id, c.face_id) for c in found.fv_candidates]),
                keys_of([sorted((c.edge0_id, c.edge1_id)) for c in found.ee_candidates]),
            )
            words = [
                f"{kind} {len(a):,} of ours, {len(b):,} of theirs, {len(b - a)} missing here, {len(a - b)} more here"
                for kind, a, b in zip(("vertex-triangle", "edge-edge"), ours, theirs, strict=True)
            ]
            print(f"  {what}, against {name}: {'; '.join(words)}")


def find_crossings(state: State, pairs: Ints) -> Bools:
    """Which pairs of triangles without a common vertex pass through each other at the start of the step, exactly."""
    t = state.mesh.topology.triangles
    crossing = np.zeros(len(pairs), np.bool_)
    update_crossings(state.x_t0, t, state.x_t0, t, True, np.ascontiguousarray(pairs), crossing)
    return crossing


def print_misses(state: State) -> None:
    """What the published shortcuts lose, and what each filter removes."""
    phase = make(BROAD_PHASES, "quad_tree", {}, state)
    phase.refit(state.x_t0)
    adjacency = make(CULLING_FILTERS, "adjacency", {}, state)
    pairs = adjacency.apply(phase.self_pairs())
    crossing = find_crossings(state, pairs)
    every = keys_of(pairs)
    real = keys_of(pairs[crossing])
    print(f"\n{state.name}: {len(every):,} pairs without neighbours (static, no margin), {len(real):,} of them cross")
    print(f"  adjacency removed {adjacency.counters.pairs_removed:,} pairs")

    nodes = make(BROAD_PHASES, "spatial_hash", {"fill": "nodes"}, state)
    nodes.refit(state.x_t0)
    found = keys_of(nodes.self_pairs())
    print(
        f"  spatial_hash, nodes only: misses {share(len(every - found), len(every))} of the pairs,"
        f" {share(len(real - found), len(real))} of those that cross"
    )
    for name, options in [("normal_cone", {"variant": v}) for v in ("published", "sound")] + [
        ("centroid_distance", {"threshold": t}) for t in (0.5, 0.7, 0.9, 1.0, 1.1, 1.3, 4 / 3, 1.5)
    ]:
        filter_ = make(CULLING_FILTERS, name, options, state)
        filter_.refit(state.x_t0)
        kept = filter_.keep(pairs)
        value = next(iter(options.values()))
        text = value if isinstance(value, str) else f"{value:.2f} L"
        print(
            f"  {name} {text}: removes {share(int((~kept).sum()), len(kept))} of the pairs,"
            f" misses {share(int((crossing & ~kept).sum()), len(real))} of those that cross"
        )
    phase.refit(state.x_t0, state.x_t1)
    rows = phase.candidates().vertex_triangle
    sound = None
    for variant in ("sound", "ends", "published"):
        filter_ = make(CULLING_FILTERS, "ipsilateral", {"variant": variant}, state)
        filter_.refit(state.x_t0, state.x_t1)
        kept = filter_.keep(rows)
        sound = kept if sound is None else sound
        print(
            f"  ipsilateral {variant}: removes {share(int((~kept).sum()), len(kept))} of {len(rows):,} swept"
            f" vertex-triangle candidates, {int((sound & ~kept).sum())} of the {int(sound.sum())} that may cross"
        )


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if whole else "none"


def print_growth(sizes: list[int], rounds: int) -> None:
    """Time of linear_tree against the number of triangles, with the margin kept at a tenth of an edge."""
    set_threads(1)
    print("\ngrowth of linear_tree, refit and candidates, margin a tenth of an edge, one thread")
    logs = {"static": [], "swept": []}
    counts = []
    for size in sizes:
        state = make_state(size)
        phase = make(BROAD_PHASES, "linear_tree", {}, state)
        margin = 0.1 / (size - 1)
        # the motion shrinks with the edges, as a smaller time step would have it
        end = state.x_t0 + (state.x_t1 - state.x_t0) * (50 / (size - 1))

        def run(x_t1: Any, p: Any = phase, s: State = state, m: float = margin) -> Any:
            p.refit(s.x_t0, x_t1, m)
            return p.candidates()

        best = measure({"static": lambda: run(None), "swept": lambda e=end: run(e)}, rounds)
        found = run(end)
        n = len(state.mesh.triangles)
        counts.append(n)
        for what in logs:
            logs[what].append(best[what].wall)
        static, swept = best["static"].wall, best["swept"].wall
        print(
            f"  {state.name}: {n:9,} triangles, static {static:8.2f} ms, swept {swept:8.2f} ms,"
            f" {len(found.vertex_triangle):,} + {len(found.edge_edge):,} candidates,"
            f" {1e6 * static / n:.0f} ns a triangle"
        )
    reference = np.polyfit(np.log(counts), np.log(np.array(counts) * np.log(counts)), 1)[0]
    for what, times in logs.items():
        exponent = np.polyfit(np.log(counts), np.log(times), 1)[0]
        print(f"  {what}: time grows as n^{exponent:.2f} (n log n over this range: n^{reference:.2f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[51, 101, 201], help="vertices along a side")
    parser.add_argument("--rounds", type=int, default=15, help="how often each method is measured")
    parser.add_argument("--recording", type=Path, help="measure a step of this recording instead")
    parser.add_argument("--frame", type=int, default=-1, help="frame of the recording at the end of the step")
    arguments = parser.parse_args()

    if arguments.recording:
        states = [read_state(arguments.recording, arguments.frame)]
    else:
        states = [*(ground_state(size) for size in arguments.sizes), make_state(FOLDED)]
    n_all = threads()
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before the start")
    for state in states:
        tasks, members = our_tasks(state)
        tasks |= their_tasks(state)
        times = {}
        for n in sorted({1, n_all}):
            set_all_threads(n)
            times[n] = measure(tasks, arguments.rounds)
        print_times(state, times, members)
        if len(state.mesh.triangles) <= LARGEST_TO_COMPARE:
            compare_candidates(state, tasks)
    print_misses(states[-1])
    if not arguments.recording:
        print_growth([51, 101, 201, 401], arguments.rounds)


if __name__ == "__main__":
    main()
