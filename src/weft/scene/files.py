"""From a name or a file, with overrides, to a checked Scene."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.errors import WeftError, nearest

if TYPE_CHECKING:
    from weft.scene.schema import Scene


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
    from weft.parameters import check
    from weft.scene.schema import Scene

    path = _find(source)
    values = _read_toml(path)
    for override in overrides or []:
        apply_override(values, override)
    where = f"{path}" if str(source) not in _gallery() else f"scene {source}"
    values.setdefault("name", path.stem)
    if "folder" in values:
        raise WeftError(f"{where}: folder: unknown key{nearest('folder', Scene.model_fields.keys() - {'folder'})}")
    scene: Scene = check(Scene, {**values, "folder": str(path.parent)}, where)
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
        raise WeftError(f"{path}: no such file")
    return path


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise WeftError(f"{path}: not a text file; a scene is TOML in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise WeftError(f"{path}: not valid TOML: {error}") from None
    except OSError as error:
        raise WeftError(f"{path}: cannot be read ({error.strerror})") from None


def apply_override(values: dict[str, Any], override: str) -> None:
    """Set one key in place: `cloth.0.fabric=denim`, `duration=1.5`, `cloth.0.grid.vertices=[21, 21]`."""
    key, separator, text = override.partition("=")
    key = key.strip()
    if not separator or not key:
        raise WeftError(f"--set {override}: expected key=value, e.g. cloth.0.fabric=denim")
    try:
        value = tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()  # a bare word is text: fabric=denim
    *path, last = key.split(".")
    table: Any = values
    for part in path:
        table = _enter(table, part, override)
    if isinstance(table, list):
        table[_position(table, last, override)] = value
    elif isinstance(table, dict):
        table[last] = value
    else:
        raise WeftError(f"--set {override}: {'.'.join(path)} is a value, not a table")


def _enter(table: Any, part: str, override: str) -> Any:
    if isinstance(table, list):
        return table[_position(table, part, override)]
    if isinstance(table, dict):
        return table.setdefault(part, {})
    raise WeftError(f"--set {override}: nothing lies under {part!r}")


def _position(items: list[Any], part: str, override: str) -> int:
    if not part.isdigit() or int(part) >= len(items):
        raise WeftError(f"--set {override}: {part!r} is not one of the {len(items)} entries, which count from 0")
    return int(part)
