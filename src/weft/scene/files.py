"""From a name or a file, with overrides, to a checked Scene."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.errors import WeftError, nearest

if TYPE_CHECKING:
    from weft.scene.schema import Scene

MAX_BYTES = 10_000_000  # of a scene file: one that is larger is something else


def _gallery() -> dict[str, Path]:
    folder = Path(str(files("weft.scene").joinpath("gallery")))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def gallery_names() -> list[str]:
    """Names of the scenes that ship with Weft, the default first."""
    return sorted(_gallery(), key=lambda name: (name != "tablecloth", name))


def scene_summary(name: str) -> str:
    """The one-line description of a gallery scene, without loading what checks the rest."""
    return str(tomllib.loads(_gallery()[name].read_text(encoding="utf-8")).get("description", ""))


def load_scene(source: str | Path, overrides: list[str] | None = None) -> Scene:
    """Read a gallery scene by name or a TOML file by path, apply `key=value` overrides, and check every key."""
    from weft.explain import keys_of
    from weft.parameters import check
    from weft.scene.schema import Scene

    path = _find(source)
    values = _read_toml(path)
    for override in overrides or []:
        apply_override(values, override)
    where = f"{path}" if str(source) not in _gallery() else f"scene {source}"
    values.setdefault("name", path.stem)
    for hidden in ("folder", "source"):
        if hidden in values:
            raise WeftError(f"{where}: {hidden}: unknown key{nearest(hidden, keys_of(Scene))}")
    scene: Scene = check(Scene, {**values, "folder": str(path.parent), "source": where}, where)
    return scene


def _find(source: str | Path) -> Path:
    gallery = _gallery()
    if str(source) in gallery:
        return gallery[str(source)]
    path = Path(source)
    if path.is_dir():
        raise WeftError(f"{path}: is a folder; give a scene file (.toml) or a name: {', '.join(gallery)}")
    if path.suffix.lower() != ".toml" and not path.exists():
        raise WeftError(f"unknown scene {str(source)!r}{nearest(str(source), gallery)}")
    if not path.exists():
        raise WeftError(f"{path}: no such file; `weft scenes` lists the scenes that ship")
    return path


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise WeftError(f"{path}: cannot be read ({error.strerror})") from None
    if len(data) > MAX_BYTES:
        raise WeftError(f"{path}: too large for a scene (more than {MAX_BYTES:,} bytes)")
    try:
        return tomllib.loads(data.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError:
        raise WeftError(f"{path}: not a text file in UTF-8; a scene is TOML, see `weft describe scene`") from None
    except (ValueError, RecursionError) as error:
        raise WeftError(f"{path}: not valid TOML: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """Of a TOML error; tomllib lets endless nesting and numbers of thousands of digits through as other errors."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error) if isinstance(error, tomllib.TOMLDecodeError) else "a number has too many digits"


def apply_override(values: dict[str, Any], override: str) -> None:
    """Set one key in place: `cloth.0.fabric=denim`, `duration=1.5`, `cloth.0.grid.vertices=[21, 21]`."""
    key, separator, text = override.partition("=")
    key = key.strip()
    if not separator or not key:
        raise WeftError(f"--set {override}: expected key=value, e.g. cloth.0.fabric=denim")
    try:
        value = tomllib.loads(f"value = {text.strip()}")["value"]
    except (ValueError, RecursionError):
        value = text.strip()  # a bare word is text: fabric=denim
    path = key.split(".")
    try:
        if path[0] == "method" and len(path) > 1:
            _open_method(values, path[1])
        _set(values, path, value)
    except WeftError as error:
        raise WeftError(f"--set {override}: {error}") from None


def _open_method(values: dict[str, Any], key: str) -> None:
    """Put the parts of a method that is given by name, or not at all, in its place, and a table for the part `key`.

    So `method.response.rounds=5` changes that alone; a part that a method's table leaves out is the default one.
    """
    from weft.methods import PARTS, Method, load_method
    from weft.scene.schema import Scene

    method = values.setdefault("method", Scene.model_fields["method"].default)
    if isinstance(method, str):
        method = values["method"] = load_method(method).model_dump(exclude={"description"})
    if key in PARTS and isinstance(method, dict):
        part = method.setdefault(key, Method.model_fields[key].default)
        if isinstance(part, str):
            method[key] = {"name": part}


def _set(table: Any, path: list[str], value: Any) -> None:
    """Walk down `path`, making tables where there are none, and put `value` at its end."""
    for depth, part in enumerate(path):
        here, last = ".".join(path[:depth]) or "the scene", depth == len(path) - 1
        if isinstance(table, list):
            positions = [str(k) for k in range(len(table))]
            if part not in positions:
                raise WeftError(f"{here} has {_entries(positions)}; to add one, set the whole list: {here}=[...]")
            place: Any = positions.index(part)
        elif isinstance(table, dict):
            if not last and part not in table and path[depth + 1].isdecimal():
                key = ".".join(path[: depth + 1])
                raise WeftError(f"there is no {key} yet; set the whole list: {key}=[...]")
            place = part
            table.setdefault(part, {})
        else:
            raise WeftError(f"{here} is {table!r}, not a table; set all of it: {here}={{ {part} = ... }}")
        if last:
            table[place] = value
        else:
            table = table[place]


def _entries(positions: list[str]) -> str:
    if not positions:
        return "no entries"
    return f"one entry, {positions[0]}" if len(positions) == 1 else f"entries {positions[0]} to {positions[-1]}"
