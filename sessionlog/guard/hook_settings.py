"""Hook settings: the guard's hooks in an agent's settings file, added and taken back.

All three agents read hooks from a JSON file: `hooks.EVENT` is a list of groups, each with an optional matcher of tools
and a list of hooks. Only hooks that run `sessionlog guard` for this agent, and nothing else, are ever added, changed or
removed. A file that is not such JSON, as one with comments, is never written to.

The bytes before and a hash of the bytes after are kept in the state folder: a file that was not changed since is put
back to the byte, and removed if there was none.
"""

from __future__ import annotations

import json
import os
import shlex

from sessionlog import files
from sessionlog.errors import InvalidSettings
from sessionlog.guard.warned import guard_folder
from sessionlog.hashes import blake2b
from sessionlog.places import user_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from sessionlog.guard.hook import Agent

_MAX_BYTES = 16 << 20
_INDENT = 2
_HASH_BYTES = 32


def settings_path(agent: Agent, env: Mapping[str, str]) -> str:
    """Return the file from which an agent reads hooks for all projects; links are resolved."""
    folder = env.get(agent.home_variable)
    folder = os.path.join(folder, agent.home_below) if folder else os.path.join(user_home(env), agent.home)
    return files.real_path(os.path.join(folder, agent.settings_file))


def hooks_of(agent: Agent, command: str) -> dict[str, Any]:
    """Return the settings that make an agent run a command as its guard: the JSON object of `hooks`."""
    hook = {"type": "command", "command": command, "timeout": agent.timeout}
    matchers = agent.matchers
    return {
        event: [{**({"matcher": matchers[event]} if event in matchers else {}), "hooks": [hook]}]
        for event in agent.moments
    }


def install(agent: Agent, command: str, env: Mapping[str, str]) -> bool:
    """Add the guard's hooks to an agent's settings; return whether that changed anything.

    Hooks of another guard command, such as one at another path, are replaced.

    Raises:
        InvalidSettings: The file is not JSON with hooks as the agent reads them; it is left as it is.
        LogNotReadable: The file cannot be read.
        OSError: It cannot be written.
    """
    path = settings_path(agent, env)
    content = files.read_small(path, _MAX_BYTES)
    settings = {} if content is None else _parse(path, content)
    wanted = hooks_of(agent, command)
    present = settings.get("hooks", {})
    if all(group in present.get(event, ()) for event, groups in wanted.items() for group in groups):
        return False
    hooks = _without_ours(present, agent)
    for event, groups in wanted.items():
        hooks[event] = [*hooks.get(event, ()), *groups]
    data = _text({**settings, "hooks": hooks}, content)
    kept = _read_kept(agent, env)
    if kept and _is_as_written(kept, path, content):
        before = kept["before"]
    else:
        before = None if content is None else content.decode()
    _write(_kept_path(agent, env), json.dumps({"path": path, "before": before, "written": _hash(data)}).encode())
    _write(path, data)
    return True


def uninstall(agent: Agent, env: Mapping[str, str]) -> bool:
    """Remove the guard's hooks from an agent's settings; return whether there were any.

    Raises:
        InvalidSettings: The file is not JSON with hooks as the agent reads them; it is left as it is.
        LogNotReadable: The file cannot be read.
        OSError: It cannot be written.
    """
    path = settings_path(agent, env)
    content = files.read_small(path, _MAX_BYTES)
    kept = _read_kept(agent, env)
    if content is None:
        return False
    if kept and _is_as_written(kept, path, content) and not _has_ours(path, kept["before"], agent):
        _put_back(path, kept["before"])
    else:
        settings = _parse(path, content)
        present = settings.pop("hooks", {})
        hooks = _without_ours(present, agent)
        if hooks == present:
            return False
        _write(path, _text({**settings, **({"hooks": hooks} if hooks else {})}, content))
    files.remove_file(_kept_path(agent, env))
    return True


def _has_ours(path: str, before: str | None, agent: Agent) -> bool:
    """Whether the file already had hooks of the guard, added by hand, before `install` replaced them."""
    hooks = _parse(path, before.encode()).get("hooks", {}) if before is not None else {}
    return _without_ours(hooks, agent) != hooks


def _put_back(path: str, before: str | None) -> None:
    if before is None:
        files.remove_file(path)
    else:
        _write(path, before.encode())


def _parse(path: str, content: bytes) -> dict[str, Any]:
    """Parse a settings file as far as hooks are concerned."""
    try:
        settings = json.loads(content.decode("utf-8")) if content.strip() else {}
    except (ValueError, RecursionError) as error:
        raise _invalid(path, f"not JSON ({error})") from error
    if not isinstance(settings, dict):
        raise _invalid(path, "not a JSON object")
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict) or not all(_is_groups(groups) for groups in hooks.values()):
        raise _invalid(path, "`hooks` is not an object of lists of groups")
    return settings


def _is_groups(groups: Any) -> bool:
    return isinstance(groups, list) and all(
        isinstance(group, dict) and isinstance(group.get("hooks", []), list) for group in groups
    )


def _invalid(path: str, why: str) -> Exception:
    return InvalidSettings(f"{path}: {why}; it is left as it is: add or remove the hooks by hand")


def _without_ours(hooks: Mapping[str, Any], agent: Agent) -> dict[str, Any]:
    """Return hooks without the guard's; lists that only had these are left out."""
    kept = {}
    for event, groups in hooks.items():
        left = [others for group in groups if (others := _others(group, agent)) is not None]
        if left or not groups:
            kept[event] = left
    return kept


def _others(group: dict[str, Any], agent: Agent) -> dict[str, Any] | None:
    """Return a group without our hooks; None if it only had these."""
    hooks = group.get("hooks", [])
    others = [hook for hook in hooks if not _is_ours(hook, agent)]
    if len(others) == len(hooks):
        return group
    return {**group, "hooks": others} if others else None


def _is_ours(hook: Any, agent: Agent) -> bool:
    """Whether a hook's command is `sessionlog guard AGENT`, by any path and with any options, and nothing else.

    One that only has these words, as arguments of another program or among other commands, is its user's own.
    """
    command = hook.get("command") if isinstance(hook, dict) else None
    words = _simple_command(command) if isinstance(command, str) else []
    match _without_python(words):
        case [program, "guard", agent.id, *options]:
            is_ours = os.path.basename(program.replace("\\", "/")).removesuffix(".exe") == "sessionlog"
            return is_ours and _are_options(options)
    return False


def _simple_command(command: str) -> list[str]:
    """Return the words of a command; none for one with operators of the shell, such as `a && b` and `a > b`."""
    operators = shlex.shlex(command, posix=True, punctuation_chars=True)
    operators.whitespace_split, operators.commenters = True, ""
    try:
        words = shlex.split(command)
        is_simple = [*operators] == words and "\n" not in command
    except ValueError:  # an open quote
        return []
    return words if is_simple else []


def _without_python(words: list[str]) -> list[str]:
    """Return a command's words without `python -P -m` before `sessionlog`."""
    at = words.index("-m") if "-m" in words[1:] else 0
    return words[at + 1 :] if at and all(word.startswith("-") for word in words[1:at]) else words


def _are_options(words: list[str]) -> bool:
    """Whether words are options, each with one value at most; those of later versions count, too."""
    before = ""
    for word in words:
        has_value = before.startswith("--") and "=" not in before and before != "--strict"
        if not (word.startswith("--") or has_value):
            return False
        before = word
    return True


def _text(settings: Mapping[str, Any], content: bytes | None) -> bytes:
    """Return settings as JSON in the style of the file that they replace: its indent, its last newline."""
    style = (content or b"").decode() or "{\n}\n"
    second = style.partition("\n")[2]
    indent = len(second) - len(second.lstrip(" ")) or _INDENT
    unit: int | str | None = ("\t" if second.startswith("\t") else indent) if "\n" in style.rstrip() else None
    text = json.dumps(settings, indent=unit, ensure_ascii=style.isascii())
    text += "\n" if style.endswith("\n") else ""
    return (text.replace("\n", "\r\n") if "\r\n" in style else text).encode()


def _write(path: str, data: bytes) -> None:
    files.make_directories(os.path.dirname(path))
    files.replace_file(path, [data], like=files.stat_path(path))


def _kept_path(agent: Agent, env: Mapping[str, str]) -> str:
    return os.path.join(guard_folder(env), "installed", f"{agent.id}.json")


def _read_kept(agent: Agent, env: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what the last `install` kept; None if there is none, or it is damaged: then only our hooks are removed."""
    try:
        kept = json.loads(files.read_small(_kept_path(agent, env), 2 * _MAX_BYTES) or b"")
    except ValueError:
        return None
    return kept if isinstance(kept, dict) and isinstance(kept.get("before", 0), str | None) else None


def _is_as_written(kept: Mapping[str, Any], path: str, content: bytes | None) -> bool:
    return content is not None and kept.get("path") == path and kept.get("written") == _hash(content)


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=_HASH_BYTES).hexdigest()
