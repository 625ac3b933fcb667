"""Recordings: a folder that numpy can read, and that survives a kill at any moment.

    meta.json           written first: the scene, the sizes, what each file holds
    triangles.npy       (m, 3) int32
    positions.f32       (frames, n, 3) float32, appended frame by frame
    velocities.f32      likewise, where the scene asks for it
    certificate.jsonl   a line a frame, written after the frame's arrays: the frame is there once its line is
    checkpoint-*.npz    float64, all that a step depends on; written under another name, then renamed

`np.fromfile("positions.f32", np.float32).reshape(-1, n, 3)` opens it without Weft.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import weft
from weft.arrays import Ints, as_indices
from weft.errors import WeftError
from weft.parameters import check
from weft.scene.schema import Scene
from weft.simulation.state import State

if TYPE_CHECKING:  # a recording is opened and refused without numba
    from weft.simulation.simulation import Frame, Simulation

META, TRIANGLES, CERTIFICATE = "meta.json", "triangles.npy", "certificate.jsonl"
KEPT_CHECKPOINTS = 2


class Recording:
    """A recording on disk, complete or still growing.

    Attributes
    ----------
    path : the folder
    meta : contents of meta.json
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise WeftError(f"{self.path}: no such recording")
        if not self.path.is_dir() or not (self.path / META).exists():
            raise WeftError(f"{self.path}: not a recording (a folder with {META})")
        try:
            self.meta: dict[str, Any] = json.loads((self.path / META).read_text(encoding="utf-8"))
            self.n_vertices = int(self.meta["n_vertices"])
            self.fps = float(self.meta["fps"])
            self._scene_values: dict[str, Any] = dict(self.meta["scene"])
            owned = sum(int(cloth["n_vertices"]) for cloth in self.meta["cloth"])
            if not 0 < self.n_vertices == owned or not 0.0 < self.fps < np.inf:
                raise ValueError
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise WeftError(f"{self.path / META}: damaged; run the scene again") from None

    def __len__(self) -> int:
        """The number of whole frames."""
        return len(self.certificates)

    @property
    def n_due(self) -> int:
        """How many frames it has when its run is done."""
        return int(self.meta.get("n_frames", len(self)))

    @property
    def positions(self) -> npt.NDArray[np.float32]:
        """(frames, n, 3) float32 [m], mapped from disk."""
        return self._array("positions")

    @property
    def velocities(self) -> npt.NDArray[np.float32]:
        """(frames, n, 3) float32 [m/s], mapped from disk."""
        if not (self.path / "velocities.f32").exists():
            raise WeftError(f'{self.path}: holds no velocities; run the scene with record = ["velocities"]')
        return self._array("velocities")

    def _array(self, name: str) -> npt.NDArray[np.float32]:
        file, n, frames = self.path / f"{name}.f32", self.n_vertices, len(self)
        there = file.stat().st_size // (12 * n) if file.exists() else 0
        if there < frames:
            raise WeftError(f"{file}: holds {there} of {frames} frames; run the scene again with --resume")
        if frames == 0:
            return np.zeros((0, n, 3), np.float32)
        return np.memmap(file, np.float32, "r", shape=(frames, n, 3))

    @cached_property
    def triangles(self) -> Ints:
        """(m, 3) int32"""
        try:
            return as_indices(np.load(self.path / TRIANGLES), self.n_vertices)
        except (OSError, ValueError, EOFError, WeftError):
            raise WeftError(f"{self.path / TRIANGLES}: missing or damaged; run the scene again") from None

    @property
    def certificates(self) -> list[dict[str, Any]]:
        """The lines of certificate.jsonl, up to the first that is not whole."""
        return _whole_lines(self.path / CERTIFICATE)

    @cached_property
    def scene(self) -> Scene:
        """The scene that was run, with every override."""
        source = f"{self.path / META}: scene"
        values = {**self._scene_values, "folder": self.meta.get("folder", "."), "source": source}
        scene: Scene = check(Scene, values, source)
        return scene


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    if path.exists():
        for line in path.read_bytes().split(b"\n")[:-1]:  # what follows the last line end is not whole
            try:
                rows.append(json.loads(line))
            except ValueError:
                break
    return rows


def _scene_values(scene: Scene) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(scene.model_dump_json())
    return values


class Recorder:
    """Writes a recording, frame by frame. Use `record` to get one.

    The order of writes makes every moment safe: arrays, then the certificate line; before a checkpoint all of that
    is on disk.
    """

    def __init__(self, path: Path, simulation: Simulation, lock: IO[str]) -> None:
        self.path = path
        self.simulation = simulation
        self._lock = lock
        self._files: dict[str, IO[bytes]] = {}
        self.frames_per_checkpoint = max(1, round(simulation.scene.fps))

    def start(self) -> None:
        """Begin at time 0, in a folder without frames."""
        sim, scene = self.simulation, self.simulation.scene
        n = len(sim.world.positions)
        meta = {
            "format": "weft recording",
            "version": 1,
            "weft": weft.__version__,
            "n_vertices": n,
            "n_triangles": len(sim.world.triangles),
            "n_frames": scene.n_frames + 1,
            "fps": scene.fps,
            "arrays": {f"{name}.f32": {"dtype": "<f4", "shape": ["frames", n, 3]} for name in self._names()},
            "cloth": [{"first": piece.first, "n_vertices": piece.mesh.n_vertices} for piece in sim.world.pieces],
            "untangled": sim.untangled._asdict() if sim.untangled else None,
            "scene": _scene_values(scene),
            "folder": str(Path(scene.folder).resolve()),
        }
        _write_whole(self.path / META, json.dumps(meta, indent=1).encode())
        with _replacing(self.path / TRIANGLES) as file:
            np.save(file, sim.world.triangles)
        self._open(0)

    def resume(self) -> None:
        """Go on from the newest checkpoint whose frames are all there, or from the start."""
        rows = len(_whole_lines(self.path / CERTIFICATE))
        n = len(self.simulation.world.positions)
        for name in self._names():
            file = self.path / f"{name}.f32"
            rows = min(rows, file.stat().st_size // (12 * n) if file.exists() else 0)
        for path in sorted(self.path.glob("checkpoint-*.npz"), reverse=True):
            checkpoint = _read_checkpoint(path, n)
            if checkpoint is not None and checkpoint[0] < rows:
                frame, state = checkpoint
                self.simulation.state = state
                scene = self.simulation.scene
                meta = Recording(self.path).meta | {"n_frames": scene.n_frames + 1, "scene": _scene_values(scene)}
                _write_whole(self.path / META, json.dumps(meta, indent=1).encode())  # it may last longer now
                self._open(frame + 1)
                return
        self.start()

    def _names(self) -> list[str]:
        return ["positions", *self.simulation.scene.record]

    def _open(self, frames: int) -> None:
        """Open all files for appending after the first `frames` frames; what follows them goes."""
        n = len(self.simulation.world.positions)
        for name in self._names():
            self._files[name] = (self.path / f"{name}.f32").open("ab", buffering=0)
            self._files[name].truncate(frames * n * 12)
        lines = (self.path / CERTIFICATE).read_bytes().split(b"\n")[:frames] if frames else []
        self._files["certificate"] = (self.path / CERTIFICATE).open("ab", buffering=0)
        self._files["certificate"].truncate(sum(len(line) + 1 for line in lines))
        for path in self.path.glob("checkpoint-*.npz"):
            if int(path.stem.split("-")[1]) >= frames:
                path.unlink()

    def append(self, frame: Frame) -> None:
        """Record one frame, and a checkpoint where one is due."""
        sizes = {name: file.seek(0, os.SEEK_END) for name, file in self._files.items()}
        arrays = {"positions": frame.positions, "velocities": frame.velocities}
        try:
            for name in self._names():
                _write_all(self._files[name], arrays[name].astype("<f4").tobytes())
            row = json.dumps(frame.certificate.row(frame.index, frame.time))
            _write_all(self._files["certificate"], row.encode() + b"\n")
            last = frame.index >= self.simulation.scene.n_frames
            if last or (frame.index and frame.index % self.frames_per_checkpoint == 0):
                self._checkpoint(frame.index)
        except OSError as error:
            for name, file in self._files.items():
                file.truncate(sizes[name])
            kept = f"frames 0 to {frame.index - 1} are kept" if frame.index else "nothing was recorded"
            problem = f"cannot write frame {frame.index} ({error.strerror}); {kept}"
            raise WeftError(f"{self.path}: {problem}: make room, then run again with --resume") from None

    def _checkpoint(self, frame: int) -> None:
        for file in self._files.values():
            os.fsync(file.fileno())
        state = self.simulation.state
        with _replacing(self.path / f"checkpoint-{frame:08d}.npz") as file:
            np.savez(file, frame=frame, **vars(state))
        for old in sorted(self.path.glob("checkpoint-*.npz"))[:-KEPT_CHECKPOINTS]:
            old.unlink()

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._lock.close()


def _write_all(file: IO[bytes], data: bytes) -> None:
    """Write every byte: an unbuffered file may take only part of them, e.g. just before the disk is full."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _read_checkpoint(path: Path, n_vertices: int) -> tuple[int, State] | None:
    try:
        with np.load(path) as data:
            state = State(**{name: _value(data[name]) for name in State.__dataclass_fields__})
            frame = int(data["frame"])
    except (OSError, ValueError, KeyError, EOFError):
        return None
    return (frame, state) if state.positions.shape == (n_vertices, 3) else None


def _value(array: Any) -> Any:
    """An array as it is, or the one number that it holds."""
    return array if array.ndim else array.item()


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """Write a file under another name, then rename it: readers see the old one or the whole new one."""
    partial = path.with_name(path.name + ".part")
    with partial.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def _write_whole(path: Path, data: bytes) -> None:
    with _replacing(path) as file:
        file.write(data)


def output_folder(scene: Scene, output: Path | str | None) -> Path:
    """Where a run of `scene` is recorded."""
    return Path(output) if output is not None else Path("out") / scene.name


def refuse_folder(path: Path, *, overwrite: bool = False, resume: bool = False) -> None:
    """Say so where a run may not write to `path`, without touching it."""
    there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not there.is_dir():
        raise WeftError(f"{path}: {there} is a file; choose another folder with -o")
    if not os.access(there, os.W_OK | os.X_OK):
        raise WeftError(f"{path}: {there} cannot be written; choose another folder with -o")
    used = path.exists() and any(path.iterdir())
    ours = (path / META).exists() or (path / ".lock").exists()
    if used and not ours:
        raise WeftError(f"{path}: is not empty and not a recording; choose another folder with -o")
    if used and not (overwrite or resume):
        raise WeftError(
            f"{path}: holds a recording already; add --resume to go on with it or --overwrite to replace it"
        )


def open_recorder(path: Path, simulation: Simulation, *, overwrite: bool = False, resume: bool = False) -> Recorder:
    """Make, clear or take up the folder `path` for `simulation`."""
    refuse_folder(path, overwrite=overwrite, resume=resume)
    with ExitStack() as on_failure:
        try:
            path.mkdir(parents=True, exist_ok=True)
            recorder = Recorder(path, simulation, _lock(path))
            on_failure.callback(recorder.close)
            if resume and (path / META).exists():
                _refuse_other_scene(path, simulation.scene)
                recorder.resume()
            else:
                _clear(path)
                recorder.start()
        except OSError as error:
            raise WeftError(f"{path}: cannot be written ({error.strerror})") from None
        on_failure.pop_all()
    return recorder


def _lock(path: Path) -> IO[str]:
    """Keep a second run out of the folder; the lock goes with the process, however that ends."""
    lock = (path / ".lock").open("w")
    try:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # not on Windows: there a second run is not noticed
        pass
    except OSError:
        lock.close()
        raise WeftError(f"{path}: another run is writing to it; wait for it or choose another folder with -o") from None
    return lock


def _refuse_other_scene(path: Path, scene: Scene) -> None:
    """A resumed run may last longer or shorter; everything else must be as it was."""
    old, new = dict(Recording(path).meta["scene"]), _scene_values(scene)
    for values in (old, new):
        values.pop("duration", None)
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            raise WeftError(f"{path}: was recorded with another {key}; resume with the same scene, or use --overwrite")


def _clear(path: Path) -> None:
    """Remove the files of a recording, and nothing else."""
    names = [META, TRIANGLES, CERTIFICATE, "positions.f32", "velocities.f32"]
    for file in [*(path / name for name in names), *path.glob("checkpoint-*.npz"), *path.glob("*.part")]:
        file.unlink(missing_ok=True)
