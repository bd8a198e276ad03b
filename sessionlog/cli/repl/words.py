"""What begins with a slash: one table, of which help, completion and the nearest word are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from sessionlog.cli.context import context
from sessionlog.cli.options import settings_of
from sessionlog.cli.repl.chat import Chat
from sessionlog.cli.reports import command_of
from sessionlog.cli.status import status


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One of the words.

    Attributes:
        says: Its line of help.
        act: Does it, with what stands behind the word.
        takes: What may stand behind it, as help calls it; empty for nothing.
        also: Other spellings.
    """

    says: str
    act: Callable[[Chat, str], None]
    takes: str = ""
    also: tuple[str, ...] = ()


def _status(chat: Chat, _: str) -> None:
    chat.report("status", status, **settings_of("status", {"session": chat.path, "as_json": chat.face.wants_json}))
    if chat.is_recorded and not chat.session.usage and not chat.face.wants_json:
        chat.face.say("how full the window is, is not known: nobody has told tokens; /context estimates them")


def _usage(chat: Chat, _: str) -> None:
    settings = settings_of("usage", {"paths": [chat.path], "as_json": chat.face.wants_json})
    chat.report("usage", command_of("usage"), **settings)


def _context(chat: Chat, _: str) -> None:
    chat.report("context", context, **settings_of("context", {"target": chat.path, "as_json": chat.face.wants_json}))


def _clear(chat: Chat, _: str) -> None:
    chat.session.clear()
    chat.face.say("the history is empty; what was said is still in the log")


def _quit(chat: Chat, _: str) -> None:
    chat.is_over = True


WORDS = {
    "/save": Word(says="Keep the session as a JSON file, too.", takes="[FILE]", act=Chat.save),
    "/session": Word(
        says="Say which session it is, and where its log is.",
        act=lambda chat, _: chat.face.facts("session", chat.facts()),
    ),
    "/status": Word(says="Tell what it used, how full the window is, and what is left.", act=_status),
    "/usage": Word(says="Report its tokens and cost by model.", act=_usage),
    "/context": Word(says="Show what fills the context window.", act=_context),
    "/fork": Word(says="Go on in a copy; this session stays as it is.", act=lambda chat, _: chat.fork()),
    "/undo": Word(says="Take back the newest turn.", act=lambda chat, _: chat.undo()),
    "/clear": Word(says="Begin the history anew; the log keeps what was said.", act=_clear),
    "/help": Word(says="Say what there is.", act=lambda chat, _: chat.face.facts("help", help_rows())),
    "/quit": Word(says="Leave; Ctrl-D does so, too.", act=_quit, also=("/exit", "/q")),
}
"""In the order of the help."""

_SPELLINGS = {spelling: word for name, word in WORDS.items() for spelling in (name, *word.also)}


def help_rows() -> list[tuple[str, str]]:
    """Every word with its line of help."""
    rows = [(f"{name} {word.takes}".rstrip(), word.says) for name, word in WORDS.items()]
    return [*rows, ("//text", "Say a text that begins with a slash."), ("\\", "At a line's end: it goes on below.")]


def follow(chat: Chat, line: str) -> None:
    """Do what a line with a slash says; a word that is none is said with the nearest that is one."""
    name, _, rest = line.strip().partition(" ")
    word, rest = _SPELLINGS.get(name), rest.strip()
    if word is None:
        near = get_close_matches(name, _SPELLINGS, n=1)
        did = f"did you mean {near[0]}?" if near else "/help says what there is"
        chat.fail(f"there is no {name}; {did} (a text that begins with / is typed with //)")
    elif rest and not word.takes:
        chat.fail(f"{name} takes nothing behind it; /help says what there is")
    else:
        word.act(chat, rest)
