"""Run a scene into a recording."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, islice
from pathlib import Path

from weft.errors import WeftError
from weft.scene.files import load_scene
from weft.scene.schema import Scene
from weft.simulation.recording import META, Recording, open_recorder, output_folder, refuse_folder
from weft.simulation.simulation import Frame, Simulation


def run(
    scene: Scene | str | Path,
    output: Path | str | None = None,
    *,
    overwrite: bool = False,
    resume: bool = False,
    on_frame: Callable[[Frame], None] | None = None,
) -> Recording:
    """Simulate `scene` (a Scene, a gallery name or a file) and record every frame.

    Parameters
    ----------
    output : the recording's folder; `out/NAME` by default
    overwrite : replace a recording that is there
    resume : go on from the last checkpoint of a recording that is there; the result is bitwise the one of a run that
        was never interrupted
    on_frame : called after each recorded frame
    """
    if not isinstance(scene, Scene):
        scene = load_scene(scene)
    refuse_folder(output_folder(scene, output), overwrite=overwrite, resume=resume)
    return record(Simulation(scene), output, overwrite=overwrite, resume=resume, on_frame=on_frame)


def record(
    simulation: Simulation,
    output: Path | str | None = None,
    *,
    overwrite: bool = False,
    resume: bool = False,
    on_frame: Callable[[Frame], None] | None = None,
) -> Recording:
    """Run a simulation that is at time 0 to the end of its scene, recording every frame; see `run`."""
    path = output_folder(simulation.scene, output)
    refuse_folder(path, overwrite=overwrite, resume=resume)
    resumes = resume and (path / META).exists()
    # A scene that cannot be stepped fails here, before a folder is made or an old recording replaced.
    try:
        first = [] if resumes else list(islice(simulation.frames(), 2))
    except WeftError as error:
        raise WeftError(f"{simulation.scene.source}: {error}") from None
    recorder = open_recorder(path, simulation, overwrite=overwrite, resume=resume)
    try:
        for frame in chain(first, simulation.frames(resumed=simulation.state.step > 0)):
            recorder.append(frame)
            if on_frame is not None:
                on_frame(frame)
    finally:
        recorder.close()
    return Recording(path)
