"""`sessionlog guard`: the command of an agent's hook.

A hook's command always ends with exit code 0 and within `_SECONDS`: agents take exit code 2 for "block", and wait for
their hooks. An error of its own allows what was asked about, with one line on stderr; with `--strict` it denies it. So
does a command line that this version does not know, as one that a later version has installed. The module imports
little, because agents run it before every tool call.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock, start_new_thread

from sessionlog.cli.output import fail, note, print_json
from sessionlog.errors import InvalidQuery
from sessionlog.guard.hook import AGENTS, denial, find_agent, parse_hook, unparsed_denial, warning
from sessionlog.ledger.refreshing import refresh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from sessionlog.guard.decide import Decision, Rules
    from sessionlog.guard.hook import Agent, Hook
    from sessionlog.settings import Settings

_SECONDS = 2.0
"""How long a hook may take in all."""

_MAX_BYTES = 32 << 20
_LATE = f"no answer within {_SECONDS:g} s"
_NO_HOOK = ("--install", "--uninstall", "--write", "--help", "-h")
"""Options that no hook's command has."""

_STRICT = "--strict"
_DENIED = '{"decision": "block", "reason": "sessionlog guard failed (denied, as --strict asks)"}\n'
_NOT_SYNCED = "sessionlog guard: only this session counts; `sessionlog ledger sync` reads the others once"


def guard(
    *, agent: str | None, install: str | None, write: bool, uninstall: str | None, strict: bool, ledger: str | None
) -> None:
    """Stop an agent when a budget is spent or when it goes in circles: the command of its hook.

    The hook's JSON is read from stdin, and the answer is the agent's own JSON. Budgets are those of config.toml, other
    limits its table [guard].

    Example: sessionlog guard --install claude-code
    """
    names = [name for name in (agent, install, uninstall) if name is not None]
    if len(names) != 1 or (write and install is None):
        fail("name one agent: AGENT for its hook, `--install AGENT [--write]` or `--uninstall AGENT`")
    found = find_agent(names[0])
    if agent is not None:
        fail("agents run this as a hook, with the hook's JSON on stdin; `--install AGENT` makes them")
    from sessionlog.cli import guard_settings

    if install is None:
        guard_settings.uninstall(found)
    else:
        guard_settings.install(found, write=write, strict=strict, ledger=ledger)


def is_hook(words: Sequence[str]) -> bool:
    """Whether a command line is a hook's: not typed on a terminal, and without an option for people."""
    if words[:1] != ["guard"] or any(word.partition("=")[0] in _NO_HOOK for word in words):
        return False
    return sys.stdin is None or sys.stdin.closed or not sys.stdin.isatty()


def answer_hook(words: Sequence[str], settings: Mapping[str, Any] | None) -> int:
    """Answer an agent's hook, and return 0, whatever happens.

    Args:
        words: The command line.
        settings: What it sets, by name; None for one that this version does not understand.
    """
    is_strict = any(word.partition("=")[0] == _STRICT for word in words)
    try:
        _Answer(words, settings, is_strict=is_strict).run()
    except Exception as error:  # noqa: BLE001 - such as no memory for a sentence
        if is_strict:
            _write(sys.stdout, _DENIED)
        else:
            _write(sys.stderr, f"sessionlog guard: {type(error).__name__} (allowed)\n")
    return 0


def _write(stream: Any, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError):  # it is closed or full
        return


class _Answer:
    """The answer to one call of a hook, printed once: by `run`, or by its timer when that takes too long."""

    def __init__(self, words: Sequence[str], settings: Mapping[str, Any] | None, *, is_strict: bool) -> None:
        self._words, self._settings, self._is_strict = words, settings, is_strict
        self._hook: Hook | None = None
        self._is_printed, self._is_done = allocate_lock(), allocate_lock()

    def run(self) -> None:
        """Read the hook's JSON, decide, and print the answer."""
        self._is_done.acquire()
        start_new_thread(self._wait, ())
        try:
            try:
                print_answer = self._decide()
            except Exception as error:  # noqa: BLE001 - whatever it is, the agent gets an answer
                print_answer = self._failed(error)
            if self._is_printed.acquire(blocking=False):
                print_answer()
                sys.stdout.flush()
        finally:
            self._is_done.release()  # also after an error: the timer would end the process

    def _wait(self) -> None:
        """Print the answer to a failure and end the process, unless another one is printed in time."""
        if not self._is_done.acquire(timeout=_SECONDS) and self._is_printed.acquire(blocking=False):
            try:
                self._failed(TimeoutError(_LATE))()
                sys.stdout.flush()
            finally:
                os._exit(0)  # the other thread may be anywhere, in a database or a read of stdin

    def _decide(self) -> Callable[[], None]:
        text = _read_stdin()  # first: an agent may fail that cannot write it
        agent = self._find_agent()
        self._hook = hook = parse_hook(agent, text)
        if hook is None:
            return lambda: None
        if self._settings is None:
            import shlex

            raise InvalidQuery(
                f"this version does not know `{shlex.join(self._words)}`: update sessionlog, or write the hook again "
                f"with `sessionlog guard --install {agent.id} --write`"
            )
        from sessionlog.settings import load_settings

        settings = load_settings()
        rules = _rules(settings, self._settings["ledger"], is_strict=self._is_strict)
        decision = _decision(hook, rules, settings)
        if decision.denies:
            reason, interrupt = _denial_sentence(hook, decision, rules, settings), rules.limits.interrupt
            return lambda: self._deny(reason, interrupt=interrupt)
        return lambda: self._warn(decision, settings)

    def _find_agent(self) -> Agent:
        """Return the agent whose hook it is; of a command line that is not understood, the one that it names.

        Raises:
            InvalidQuery: It names none that is known.
        """
        if self._settings is not None:
            return find_agent(self._settings["agent"] or "")
        named = [word for word in self._words[1:] if not word.startswith("-")]
        return find_agent(next((word for word in named if word in AGENTS), "".join(named[:1])))

    def _deny(self, reason: str, *, interrupt: bool = False) -> None:
        hook = self._hook
        print_json(unparsed_denial(reason) if hook is None else denial(hook.agent, hook.event, reason))
        sys.stdout.flush()
        if interrupt and hook is not None and hook.agent.id == "codex" and hook.moment == "call":
            from sessionlog.guard.interrupt import interrupt_codex_run

            interrupt_codex_run()

    def _warn(self, decision: Decision, settings: Settings) -> None:
        if decision.nearly_spent:
            words = _sentences(settings)
            print_json(warning(" · ".join(map(words.nearly_spent, decision.nearly_spent))))

    def _failed(self, error: Exception) -> Callable[[], None]:
        from sessionlog.render.guard import error_sentence

        sentence = error_sentence(error)
        if self._is_strict:
            return lambda: self._deny(f"{sentence} (denied, as --strict asks)")
        return lambda: note(f"{sentence} (allowed)")


def _read_stdin() -> str:
    """Return the hook's JSON.

    Raises:
        ValueError: There is none, or it is too long.
    """
    if sys.stdin is None:
        raise ValueError("stdin is closed: agents write the hook's JSON to it")
    text = sys.stdin.buffer.read(_MAX_BYTES + 1)
    if len(text) > _MAX_BYTES:
        raise ValueError(f"the hook's JSON has more than {_MAX_BYTES >> 20} MiB")
    return text.decode("utf-8", "replace")


def _rules(settings: Settings, ledger: str | None, *, is_strict: bool) -> Rules:
    """Return the budgets and limits of config.toml; an invalid budget is named, and the others hold."""
    from sessionlog.analytics.budgets.rules import parse_each_budget
    from sessionlog.errors import InvalidSettings
    from sessionlog.guard.decide import Rules
    from sessionlog.guard.limits import parse_limits

    budgets, errors = parse_each_budget(settings.budgets, path=settings.config_path)
    if errors and is_strict:
        raise InvalidSettings("; ".join(errors.values()))
    for error in errors.values():
        note(f"sessionlog guard: {error}")
    return Rules(
        budgets=budgets, limits=parse_limits(settings.guard, path=settings.config_path),
        zone=settings.timezone or "local", ledger=ledger or settings.ledger_path,
        env={**os.environ, "SESSIONLOG_DIR": settings.session_dir}, is_strict=is_strict,
    )  # fmt: skip


def _decision(hook: Hook, rules: Rules, settings: Settings) -> Decision:
    from sessionlog.guard.decide import decide, decide_unread, has_spent_budget
    from sessionlog.guard.fresh_ledger import open_fresh, wait_for_call

    wait_for_call(hook)
    decision = decide_unread(hook, rules)
    if decision is not None:
        return decision
    prices = None
    if settings.prices:
        from sessionlog.pricing.book import PriceBook

        prices = PriceBook.load(settings.prices)
    with open_fresh(hook, rules.ledger, rules.env, prices, is_strict=rules.is_strict) as book:
        if not book.is_complete and hook.moment == "prompt" and not has_spent_budget(hook, book, rules):
            if rules.is_strict or book.meta("snapshot") is not None:
                refresh(book, rules.env)
            else:
                note(_NOT_SYNCED)
        with book.reading():
            return decide(hook, book, rules)


def _denial_sentence(hook: Hook, decision: Decision, rules: Rules, settings: Settings) -> str:
    words = _sentences(settings)
    found = [words.spent(state) for state in decision.spent]
    if decision.repeats:
        found.append(words.repeated(hook.tool, hook.call_text, decision.repeats))
    if decision.cost_per_minute is not None:
        found.append(words.too_fast(decision.cost_per_minute, rules.limits.cost_per_minute or 0.0))
    if decision.unknown:
        found.append(words.unknown(decision.unknown))
    return " · ".join(found)


def _sentences(settings: Settings) -> Any:
    from datetime import UTC, datetime

    from sessionlog.places import user_home
    from sessionlog.render.guard import Sentences

    return Sentences(
        config_path=settings.config_path, home=user_home(os.environ), tz=settings.timezone or "local",
        now=datetime.now(UTC),
    )  # fmt: skip
