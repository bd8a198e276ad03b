"""What the path of a `wire.jsonl` and the small files around it tell: session, agent, working folder, model.

Kimi CLI names the folder of a project by the MD5 of its path, which only `kimi.json` can turn back, and says nowhere in
a session which model it used: the configured default is the best guess. Kimi Code writes both down.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from sessionlog import files
from sessionlog.errors import LogNotReadable
from sessionlog.sources.record import MAIN, UNKNOWN, read_name

PROVIDER = "moonshotai"
_OWN = ("kimi", "moonshot")
_CONFIGS = ("config.toml", "config.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Whose log a file is.

    Attributes:
        session_id: The session, of a sub-agent's file its parent's.
        folder: The session's folder.
        share: The agent's own folder.
        agent: The sub-agent's id; empty for the session's own file.
        own_folder: The folder of the file.
    """

    session_id: str
    folder: str
    share: str
    agent: str
    own_folder: str

    @property
    def part(self) -> bool:
        """Whether it is a sub-agent's file."""
        return bool(self.agent)

    @property
    def name(self) -> str:
        """What the file is asked for by: the session's id is its own file's alone."""
        return f"{self.session_id}/{self.agent}" if self.part else self.session_id


def place_of(path: str) -> Place:
    """Read a path: `…/<share>/sessions/<project>/<session>[/subagents/<id> | /agents/<id>]/wire.jsonl`."""
    own = folder = os.path.dirname(os.path.abspath(path))
    agent = ""
    above = os.path.basename(os.path.dirname(own))
    if above in {"subagents", "agents"}:
        folder = os.path.dirname(os.path.dirname(own))
        name = os.path.basename(own)
        agent = "" if above == "agents" and name == MAIN else name
    share = os.path.dirname(os.path.dirname(os.path.dirname(folder)))
    return Place(
        session_id=os.path.basename(folder) or UNKNOWN, folder=folder, share=share, agent=agent, own_folder=own
    )


def _small(path: str) -> Mapping[str, Any]:
    """A small JSON or TOML file; empty when it is missing or damaged."""
    try:
        raw = files.read_small(path)
        if raw is None:
            return {}
        value = tomllib.loads(raw.decode("utf-8", "replace")) if path.endswith(".toml") else orjson.loads(raw)
    except (LogNotReadable, OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def files_beside(path: str) -> Iterator[str]:
    """The small files around a log that its scan reads."""
    place = place_of(path)
    yield from (os.path.join(place.share, name) for name in ("kimi.json", "workspaces.json", *_CONFIGS))
    yield os.path.join(place.folder, "state.json")
    if place.part:
        yield os.path.join(place.own_folder, "meta.json")


def agent_kind(place: Place) -> str:
    """The kind of a sub-agent of Kimi CLI; empty when it is not written down."""
    return read_name(_small(os.path.join(place.own_folder, "meta.json")).get("subagent_type")) or ""


def work_dir(place: Place) -> str:
    """The working folder, as far as some file knows it; else `unknown`."""
    state = _small(os.path.join(place.folder, "state.json"))
    spaces = _map(_small(os.path.join(place.share, "workspaces.json")).get("workspaces"))
    project = os.path.basename(os.path.dirname(place.folder))
    told = [state.get("workDir"), _map(state.get("custom")).get("cwd"), _map(spaces.get(project)).get("root")]
    known = _small(os.path.join(place.share, "kimi.json")).get("work_dirs")
    for entry in known if isinstance(known, list) else ():
        path = _map(entry).get("path")
        if isinstance(path, str) and _md5(path) == project.rpartition("_")[2]:
            told.append(path)
    return next((path for path in told if isinstance(path, str) and os.path.isabs(path)), UNKNOWN)


def _md5(path: str) -> str:
    return hashlib.md5(path.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


def default_model(place: Place) -> tuple[str, str]:
    """(provider, model) that Kimi CLI is set to use now, or that a sub-agent was launched with."""
    for name in _CONFIGS:
        config = _small(os.path.join(place.share, name))
        if config:
            break
    launched = _map(_small(os.path.join(place.own_folder, "meta.json")).get("launch_spec")) if place.part else {}
    alias = read_name(launched.get("effective_model")) or read_name(config.get("default_model"))
    if alias is None:
        return PROVIDER, UNKNOWN
    model = _map(_map(config.get("models")).get(alias))
    provider = read_name(model.get("provider")) or ""
    type_ = _map(_map(config.get("providers")).get(provider)).get("type")
    return provider_name(provider, type_), model_name(read_name(model.get("model")) or alias)


def provider_name(name: str, type_: Any = None) -> str:
    """The provider as the price list knows it; `type_` is what the configuration says it speaks."""
    own = not name or type_ == "kimi" or any(word in name.lower() for word in _OWN)
    return PROVIDER if own else name


def model_name(alias: str) -> str:
    """The model behind an alias such as `kimi-code/kimi-for-coding`; empty for a reference such as `__env_model__`."""
    name = alias.removeprefix("kimi-code/")
    return "" if name.startswith("__") and name.endswith("__") else name
