"""The options and arguments of every command, as data that costs nothing to import.

Both typer's commands (`signatures`) and the light parser (`fast_path`) are made from these declarations, so that they
cannot differ. A command's function takes exactly the settings that its declaration names; defaults are here only.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal

    Kind = Literal["text", "texts", "rest", "number", "decimal", "flag"]


class Option:
    """One option, or the argument of a command.

    Attributes:
        name: As it is typed, `--since`; empty for the argument.
        setting: The name of the setting that it becomes.
        kind: `texts` may be given several times, `rest` is an argument with all that follows it, options too, `number`
            is whole, `decimal` need not be, and a `flag` has no value.
        help: Its line of help.
        metavar: The name of its value in the help.
        default: The setting if it is not given.
        least: The lowest number allowed; None for any.
        most: The highest number allowed; None for any.
        default_help: How help describes the default; None for the default itself.
        short: Its short form, `-f`; None for none.
        required: Whether an argument has to be given.
        may_be_empty: Whether an option's text may be empty: `--by ""` groups by nothing.
    """

    __slots__ = (
        "default", "default_help", "help", "kind", "least", "may_be_empty", "metavar", "most", "name", "required",
        "setting", "short",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        setting: str,
        kind: Kind,
        help: str,  # noqa: A002 - typer's and argparse's name for it
        metavar: str | None = None,
        *,
        default: str | float | bool | None = None,
        least: float | None = None,
        most: float | None = None,
        default_help: str | None = None,
        short: str | None = None,
        required: bool = False,
        may_be_empty: bool = False,
    ) -> None:
        self.name = name
        self.setting = setting
        self.kind = kind
        self.help = help
        self.metavar = metavar
        self.default = False if kind == "flag" else default
        self.least = least
        self.most = most
        self.default_help = default_help
        self.short = short
        self.required = required
        self.may_be_empty = may_be_empty


SESSIONS_SHOWN = 50
"""Sessions that a table shows by default; JSON, CSV and Markdown have all."""

HITS_SHOWN, ERRORS_SHOWN = 20, 5
"""Hits that `find` shows by default; what followed an error is read from its whole log."""

SESSIONS_LISTED = 20
"""Sessions that the page of a report lists by default."""

USAGE_BY = "provider,model"
"""What `usage` groups by if no other keys are given."""

BLOCKS_SHOWN = 30
"""Blocks that a table shows by default; JSON, CSV and Markdown have all."""

FINDINGS_SHOWN = 20
"""Findings that a table shows by default; JSON, CSV and Markdown have all."""

PATHS = Option("", "paths", "texts", "Logs, or folders of logs.", "PATH", default_help="every agent's logs found")
SINCE = Option(
    "--since", "since", "text", "7d, 24h, 2w, 1mo, today, last-week, 2026-11, 2026-11-21, A..B.", "WHEN", short="-s"
)
UNTIL = Option("--until", "until", "text", "The end of the time; a date includes that day.", "WHEN")
PROVIDER = Option("--provider", "provider", "texts", "Only this provider; may be repeated.", "GLOB")
MODEL = Option("--model", "model", "texts", "Only this model; may be repeated.", "GLOB")
PROJECT = Option("--project", "project", "texts", "Only this project folder; may be repeated.", "GLOB")
STATUS = Option(
    "--status", "status", "texts",
    "Only this status (success, error, unfinished and others); may be repeated.", "GLOB",
)  # fmt: skip
SOURCE = Option(
    "--source", "source", "texts", "Only these agents' logs, e.g. claude-code,codex; may be repeated.", "IDS"
)
TZ = Option("--tz", "tz", "text", "Whose days and hours: an IANA name, UTC, or local (the default).", "ZONE")
NOW = Option("--now", "now", "text", "The present, an RFC 3339 time.", "TIME")
PRICES = Option("--prices", "prices", "text", "Prices of your own, TOML or JSON.", "FILE")
AS_JSON = Option("--json", "as_json", "flag", "One JSON document.", short="-j")
AS_CSV = Option("--csv", "as_csv", "flag", "CSV with exact numbers.")
AS_LINE = Option("--line", "as_line", "flag", "One line, for the bottom of an agent's screen.")
AS_MARKDOWN = Option("--markdown", "as_markdown", "flag", "A Markdown table.")
WIDE = Option("--wide", "wide", "flag", "All columns, whatever the width.")
STRICT = Option("--strict", "strict", "flag", "Exit with 3 if any log is damaged.")
LEDGER = Option("--ledger", "ledger", "text", "The ledger's file.", "FILE")
NO_LEDGER = Option("--no-ledger", "no_ledger", "flag", "Scan all logs again, in memory.")
LIVE = Option("--live", "live", "flag", "Leave out sessions whose logs have been deleted since.")
ALLOW_PATHS = Option("--allow-paths", "allow_paths", "flag", "Read logs at any path, not only where agents write.")
JOBS = Option("--jobs", "jobs", "number", "Processes that scan.", "N", least=1)
ENGINE = Option("--engine", "engine", "text", "Read the logs on a cluster: spark.", "NAME")
MASTER = Option(
    "--master", "master", "text", "With --engine spark: local[4], spark://HOST:7077, yarn, sc://HOST:15002.", "URL",
    default_help="Spark's configuration, or local[*]",
)  # fmt: skip

_LIMIT = Option(
    "--limit", "limit", "number", "At most so many rows; of hours to months the newest.", "N", least=0, short="-n"
)
_WORKTREES = Option(
    "--merge-worktrees", "merge_worktrees", "flag", "Count git worktrees as the project they belong to."
)
_SORT = "A column, as the table or the JSON calls it, or a group key; -NAME turns it round."
_COSTLIEST_FIRST = Option("--sort", "sort", "text", _SORT, "NAME", default_help="costliest first")

FORMATS = (AS_JSON, AS_CSV, AS_MARKDOWN)
_TIME = (SINCE, UNTIL)
_FILTERS = (PROVIDER, MODEL, PROJECT, STATUS, SOURCE)
_BOOK = (LEDGER, NO_LEDGER, LIVE, JOBS)
_SCAN = (*_BOOK, ENGINE, MASTER)

USAGE = (
    PATHS, *_TIME,
    Option(
        "--by", "by", "texts",
        "Group by: source, provider, model, response_model, session, project, branch, agent, skill, plugin, mcp, "
        "tier, region, kind, version, hour, day, week, month, status, route, harness, machine, meta.KEY; "
        "may be repeated.",
        "KEYS", default_help=USAGE_BY, short="-b", may_be_empty=True,
    ),
    Option("--heatmap", "heatmap", "flag", "The days as a calendar, a year unless a time is given."),
    *_FILTERS, Option("--sort", "sort", "text", _SORT, "NAME"), _LIMIT, _WORKTREES,
    *FORMATS, WIDE, TZ, NOW, PRICES, *_SCAN, STRICT,
)  # fmt: skip

MODELS = (
    PATHS, *_TIME,
    Option("--unpriced", "unpriced", "flag", "Only models of which a cost is unknown: why, and what to do."),
    *_FILTERS, _COSTLIEST_FIRST, _LIMIT,
    *FORMATS, WIDE, TZ, NOW, PRICES, *_SCAN, STRICT,
)  # fmt: skip

SESSIONS = (
    PATHS, *_TIME, *_FILTERS,
    Option(
        "--limit", "limit", "number", "At most so many sessions, the newest.", "N", least=0, short="-n",
        default_help=f"{SESSIONS_SHOWN} in the table",
    ),
    Option("--tree", "tree", "flag", "Forks below the session that they were forked from, in the table."),
    *FORMATS, WIDE, TZ, NOW, PRICES, *_SCAN, STRICT,
)  # fmt: skip

TOOLS = (
    PATHS, *_TIME,
    Option(
        "--by", "by", "texts",
        "Group by: server, tool, agent, project, machine, source, session, hour, day, week, month, status; may be "
        "repeated.",
        "KEYS", default_help="server,tool", short="-b", may_be_empty=True,
    ),
    Option("--tool", "tool", "texts", "Only this tool; may be repeated.", "GLOB"),
    Option("--server", "server", "texts", "Only this MCP server, or `built-in`; may be repeated.", "GLOB"),
    PROJECT, STATUS, SOURCE, Option("--sort", "sort", "text", _SORT, "NAME", default_help="most calls first"),
    _LIMIT, _WORKTREES, *FORMATS, WIDE, TZ, NOW, *_SCAN, STRICT,
)  # fmt: skip

SOURCES = (SOURCE, *FORMATS, WIDE, TZ, NOW, LEDGER, NO_LEDGER, JOBS)

BLOCKS = (
    PATHS, *_TIME,
    Option("--recent", "recent", "flag", "The last three days."),
    Option("--active", "active", "flag", "Only the present block."),
    Option("--hours", "hours", "number", "How long a block is.", "N", default=5, least=1, most=744),
    Option("--gaps", "gaps", "flag", "Show in the table how long the pauses were."),
    PROVIDER, MODEL, PROJECT, STATUS,
    Option(
        "--source", "source", "texts", "Only these agents' logs, '*' for all together; may be repeated.", "IDS",
        default_help="claude-code if it has such blocks, else all",
    ),
    Option(
        "--limit", "limit", "number", "At most so many blocks, the newest.", "N", least=0, short="-n",
        default_help=f"{BLOCKS_SHOWN} in the table",
    ),
    *FORMATS, WIDE, TZ, NOW, PRICES, *_SCAN, STRICT,
)  # fmt: skip

STATUS_OF = (
    Option(
        "", "session", "text", "A log, or an id, or the beginning or end of one.", "SESSION|PATH",
        default_help="the session with the newest event",
    ),
    Option("--all", "everything", "flag", "The sum over all sessions."),
    AS_JSON, AS_LINE, TZ, NOW, PRICES, LEDGER, NO_LEDGER,
)  # fmt: skip

_TARGET = Option(
    "",
    "target",
    "text",
    "A log, or the beginning of a session's id.",
    "FILE|SESSION",
    default_help="the newest session",
)
_DIRECTORY = Option("--dir", "directory", "text", "The folder of sessions.", "FOLDER")

_FORCE = Option("--force", "force", "flag", "Replace a file that is no page of sessionlog.")

REPLAY = (
    _TARGET,
    Option("--follow", "follow", "flag", "Show new events as the log grows, to the session's end.", short="-f"),
    Option("--speed", "speed", "text", "Pause as the session did: 1x, 10x; 5 s at most.", "FACTOR"),
    Option("--only", "only", "texts", "Event types: tool.call,llm.*,progress; may be repeated.", "TYPES"),
    Option("--at", "at", "text", "Begin with what was going on at this RFC 3339 time.", "TIME"),
    Option("--all-messages", "all_messages", "flag", "Every request's messages, seen or not."),
    Option("--full", "full", "flag", "Long texts in full."),
    Option(
        "--subagents", "subagents", "text", "Events of sub-agents: inline behind a bar, none of them, or only them.",
        "inline|none|only", default="inline",
    ),
    Option("--json", "as_json", "flag", "Normalised events, one per line.", short="-j"),
    Option("--plain", "plain", "flag", "Stable text for diffs and pipes: no colour, UTC."),
    Option("--html", "html", "text", "Write a page; in a folder it is named for the session; - is stdout.", "FILE"),
    Option("--markdown", "markdown", "flag", "Print it as Markdown, for an issue or notes."),
    Option("--scrub", "scrub", "flag", "Page or Markdown without secrets; nothing where one may be left."),
    _FORCE,
    Option("--tz", "tz", "text", "Zone of times.", "ZONE", default_help="local; UTC when plain"),
    Option("--no-pager", "no_pager", "flag", "Print directly to the terminal."),
    PRICES, _DIRECTORY,
)  # fmt: skip

CONTEXT = (
    _TARGET,
    Option("--request", "request", "number", "Which request, from 1.", "N", default_help="the last"),
    Option("--cache", "cache", "flag", "Why requests missed the provider's cache, and what that cost."),
    Option("--full", "full", "flag", "Every part and item, not only the largest."),
    AS_JSON, AS_CSV, TZ, NOW, PRICES, _DIRECTORY,
)  # fmt: skip

DIFF = (
    Option("", "pair", "texts", "Two logs, or beginnings of sessions' ids.", "A B", default_help="the newest two"),
    Option("--full", "full", "flag", "Every message and text in full, and every tool."),
    Option("--max-cost", "max_cost", "text", "Fail if B costs more: 0.50, or +10% or +0.05 more than A.", "LIMIT"),
    Option("--max-requests", "max_requests", "text", "Fail if B has more requests: 12, +10%, +2.", "LIMIT"),
    Option("--max-tokens", "max_tokens", "text", "Fail if B uses more tokens: 50000, +10%, +2000.", "LIMIT"),
    Option("--max-duration", "max_duration", "text", "Fail if B takes longer: 90s, 5m, +10%, +30s.", "LIMIT"),
    Option("--same-tools", "same_tools", "flag", "Fail if B calls other tools than A."),
    AS_JSON, NOW, PRICES, _DIRECTORY,
)  # fmt: skip

YIELD = (
    PATHS, *_TIME,
    Option(
        "--by", "by", "texts", "Group by: repository, branch, source, session; may be repeated.", "KEYS",
        default_help="repository,branch,session", short="-b", may_be_empty=True,
    ),
    Option("--into", "into", "text", "The branch that work is merged into.", "BRANCH", default_help="the default one"),
    *_FILTERS, _COSTLIEST_FIRST, _LIMIT,
    *FORMATS, WIDE, TZ, NOW, PRICES, *_BOOK, STRICT,
)  # fmt: skip

ADVISE = (
    PATHS, *_TIME, *_FILTERS,
    Option(
        "--limit-sessions", "sessions", "number", "Read at most so many sessions, the costliest.", "N", default=200,
        least=1,
    ),
    _COSTLIEST_FIRST,
    Option(
        "--limit", "limit", "number", "At most so many findings.", "N", least=0, short="-n",
        default_help=f"{FINDINGS_SHOWN} in the table",
    ),
    *FORMATS, WIDE, TZ, NOW, PRICES, *_BOOK, STRICT,
)  # fmt: skip

REPORT = (
    PATHS, Option("--html", "html", "text", "The page to write; - is stdout.", "FILE"),
    Option("--pages", "pages", "text", "Write a page of each listed session, too, and link them.", "FOLDER"),
    SINCE, UNTIL, *_FILTERS, _WORKTREES,
    Option(
        "--limit", "limit", "number", "List at most so many sessions.", "N", least=0, short="-n",
        default_help=str(SESSIONS_LISTED),
    ),
    _FORCE,
    TZ, NOW, PRICES, *_BOOK,
)  # fmt: skip

AUDIT = (
    Option(
        "", "session", "text", "A log, or an id, or the beginning or end of one: the agent's or the wire's.",
        "SESSION|PATH", required=True,
    ),
    *FORMATS, WIDE, TZ, NOW, LEDGER, NO_LEDGER, JOBS,
)  # fmt: skip

_OTHER_LEDGER = Option("--ledger", "ledger", "text", "This ledger instead of the usual one.", "FILE")

ROUTING_QUALITY = (
    PATHS, *_TIME,
    SOURCE, Option("--axis", "axis", "text", "List only these pins: harness, provider or model.", "AXIS"),
    AS_JSON, Option("--csv", "as_csv", "flag", "The breakdown as CSV."),
    Option("--markdown", "as_markdown", "flag", "The breakdown as a Markdown table."), TZ, NOW,
    Option("--width", "width", "number", "Columns of the view.", "COLUMNS", least=40),
)  # fmt: skip

BUDGET = (_OTHER_LEDGER, JOBS, *FORMATS, TZ, NOW)
BUDGET_CHECK = (
    Option("", "names", "texts", "Only these budgets.", "NAME"),
    Option("--warn", "warn", "flag", "Exit with 1 at the warn level, too."), _OTHER_LEDGER, JOBS, AS_JSON, TZ, NOW,
)  # fmt: skip

CHECK = (
    PATHS,
    Option("--repair", "repair", "flag", "Move damaged bytes to NAME.quarantine."),
    Option("--strict", "strict", "flag", "Notes count as findings too."),
    Option("--notes", "notes", "flag", "Show each note, not only their number."),
    AS_JSON,
    Option("--max-line", "max_line", "number", "Longest line to decode; 32 MiB by default.", "BYTES", least=1024),
)

SCRUB = (
    PATHS, Option("--write", "write", "text", "Write copies without the secrets into a new folder.", "DIR"), AS_JSON,
)  # fmt: skip

SQL = (
    Option(
        "", "words", "texts", "One SELECT of SQLite's SQL; with --events one of DuckDB's, and then logs.",
        "SELECT [PATH]", default_help="every agent's logs found",
    ),
    Option("--events", "events", "flag", "Query the events of the logs: every prompt, answer and tool call."),
    Option("--schema", "schema", "flag", "Show the views and their columns."), *_TIME,
    Option("--project", "project", "texts", "With --events, only this project folder; may be repeated.", "GLOB"),
    SOURCE,
    Option("--session", "session", "texts", "With --events, only this session; may be repeated.", "SESSION"),
    *FORMATS, WIDE, TZ, JOBS,
    Option("--no-sync", "no_sync", "flag", "Query the ledger as it is: read no log."),
    Option("--ledger", "ledger", "text", "Query this ledger.", "FILE"),
    Option("--timeout", "seconds", "decimal", "Stop after this time.", "SECONDS", default=60.0, least=0.001), NOW,
)  # fmt: skip

FIND = (
    Option("", "words", "texts", "Words, phrases in quotes, wor* for the beginning of one.", "WORDS"),
    Option("--in", "part", "text", "Only in these texts: prompts, answers, tools or paths.", "TEXTS"),
    Option("--regex", "regex", "text", "Only hits whose text matches this regular expression, too.", "PATTERN"),
    Option("--file", "file", "text", "Calls that read or changed this file, with each change.", "PATH"),
    Option("--error", "error", "text", "Failed calls with these words, and what mended them.", "TEXT"),
    *_TIME, PROJECT, SOURCE,
    Option("--session", "session", "text", "Only this session: the beginning or end of its id.", "SESSION"),
    Option(
        "--limit", "limit", "number", "At most so many hits, the newest; 0 for all.", "N", least=0, short="-n",
        default_help=f"{HITS_SHOWN}, with --error {ERRORS_SHOWN}",
    ),
    AS_JSON, TZ, NOW, _OTHER_LEDGER,
)  # fmt: skip

EXPORT = (
    Option("", "destination", "text", "With --parquet, the folder or URL to write to.", "DEST"),
    Option("--otlp", "otlp", "text", "A collector of OTLP over HTTP: http://localhost:4318.", "ENDPOINT"),
    Option("--parquet", "parquet", "flag", "Write the ledger as parquet files to DEST, for one total of machines."),
    Option(
        "--path", "paths", "texts", "Only these logs, or folders of logs, without the ledger; may be repeated.", "PATH",
        default_help="every agent's logs found",
    ),
    *_TIME, *_FILTERS,
    Option("--header", "header", "texts", "A header for the collector; may be repeated.", "NAME=VALUE"),
    Option(
        "--signals", "signals", "texts", "What is sent to it: traces, metrics; may be repeated.", "NAMES",
        default_help="both",
    ),
    Option("--content", "content", "flag", "Send prompts and answers, too, without well-known secrets."),
    Option("--again", "again", "flag", "Send everything, also what the collector has already."),
    Option("--redact-projects", "redact_projects", "flag", "Hash projects and branches, with $SESSIONLOG_REDACT_KEY."),
    Option(
        "--machine", "machine", "text", "The machine's name for people in the export.", "NAME",
        default_help="the host's; none with --redact-projects",
    ),
    Option("--compact", "compact", "flag", "Merge this machine's parquet files now; else from 25 a month on."),
    Option("--events", "events", "flag", "With --parquet, prompts, answers and calls, too; without known secrets."),
    Option("--no-text", "no_text", "flag", "With --events, no texts, payloads and errors."),
    Option("--dry-run", "dry_run", "flag", "Count what would be sent or written, and do nothing."), AS_JSON, TZ, NOW,
    *_BOOK,
)  # fmt: skip

LEDGER_SHOW = (_OTHER_LEDGER, *FORMATS, TZ, NOW)
LEDGER_READ = (_OTHER_LEDGER, JOBS, AS_JSON)
LEDGER_BACKUP = (
    Option("", "file", "text", "The copy; it must not exist yet.", "FILE", required=True), _OTHER_LEDGER, AS_JSON,
)  # fmt: skip
LEDGER_FORGET = (
    SOURCE, Option("--before", "before", "text", "Only logs of earlier days: 2026-01-01, 90d, 6mo.", "WHEN"),
    Option("--yes", "yes", "flag", "Do not ask."), _OTHER_LEDGER, AS_JSON, TZ, NOW,
)  # fmt: skip

ARCHIVE = (
    SOURCE,
    Option(
        "--older-than", "older_than", "text", "Only logs not written to for so long: 12h, 20d, 4w, 3mo.", "AGE",
        default="1d",
    ),
    Option("--dry-run", "dry_run", "flag", "Show what would be archived, and write nothing."), AS_JSON, NOW,
)  # fmt: skip

PRICING = (
    Option("", "model", "text", "A model, or provider/model.", "MODEL"),
    Option("--list", "listing", "flag", "All listed models, or those that match MODEL."),
    Option("--provider", "provider", "text", "Who bills.", "NAME"),
    Option("--at", "at", "text", "The prices of this RFC 3339 time.", "TIME"), PRICES, *FORMATS,
)  # fmt: skip

WATCH = (
    Option(
        "--interval", "interval", "decimal", "Time between two updates, from 0.2; longer if an update takes long.",
        "SECONDS", default=2.0,
    ),
    Option("--once", "once", "flag", "Print one snapshot and exit, for scripts."), SOURCE, PROJECT,
    Option("--json", "as_json", "flag", "With --once: one JSON document.", short="-j"), TZ, NOW, LEDGER, NO_LEDGER,
)  # fmt: skip

UI = (TZ, LEDGER, NO_LEDGER)

CHAT = (
    Option("", "agent", "text", "The agent: module:agent, or path/to/file.py:agent.", "MODULE:AGENT"),
    Option("--resume", "resume", "text", "Continue a session, also after a crash.", "FILE|SESSION"),
    Option("--system", "system", "text", "The agent's system prompt.", "TEXT", may_be_empty=True),
    Option("--model", "model", "text", "The model for a client to use.", "NAME"),
    Option("--json", "as_json", "flag", "Events of the chat, one JSON object per line.", short="-j"), _DIRECTORY,
)  # fmt: skip

RUN = (
    Option("", "command", "rest", "The command, with its own options.", "COMMAND"),
    Option(
        "--upstream", "upstreams", "texts", "Where a route of the command leads instead; may be repeated.", "NAME=URL"
    ),
    Option("--quiet", "quiet", "flag", "Print nothing beside the command's own output.", short="-q"), _DIRECTORY,
)  # fmt: skip

GUARD = (
    Option("", "agent", "text", "Whose hook it is: claude-code, codex or gemini.", "AGENT"),
    Option("--install", "install", "text", "Print the settings that make this agent run the hook.", "AGENT"),
    Option("--write", "write", "flag", "With --install, write them into the agent's settings."),
    Option("--uninstall", "uninstall", "text", "Remove them from this agent's settings.", "AGENT"),
    Option("--strict", "strict", "flag", "Deny what cannot be decided, instead of allowing it."), LEDGER,
)  # fmt: skip

DEMO = (Option("--dir", "directory", "text", "Record here instead of a temporary folder.", "FOLDER"),)

GROUPS: Mapping[str, tuple[str, ...]] = {
    "What": (
        "--in", "--regex", "--file", "--error", "--session",
        "--by", "--provider", "--model", "--tool", "--server", "--project", "--status", "--source", "--merge-worktrees",
        "--live", "--active", "--hours",
    ),
    "When": ("--since", "--until", "--recent", "--tz", "--now"),
    "How it is shown": (
        "--sort", "--limit", "--heatmap", "--tree", "--gaps", "--json", "--csv", "--markdown", "--line", "--wide",
        "--full", "--plain",
    ),
}  # fmt: skip
"""Headings under which help lists options; others come last."""

COMMANDS: Mapping[str, tuple[Option, ...]] = {
    "usage": USAGE, "models": MODELS, "sessions": SESSIONS, "tools": TOOLS, "blocks": BLOCKS, "yield": YIELD,
    "advise": ADVISE, "report": REPORT,
    "status": STATUS_OF, "replay": REPLAY, "context": CONTEXT, "diff": DIFF, "audit": AUDIT,
    "watch": WATCH, "ui": UI,
    "routing-quality": ROUTING_QUALITY, "budget": BUDGET, "budget check": BUDGET_CHECK,
    "budget reset": (_OTHER_LEDGER, AS_JSON),
    "find": FIND, "sources": SOURCES, "check": CHECK, "scrub": SCRUB, "sql": SQL, "export": EXPORT,
    "ledger": LEDGER_SHOW, "ledger sync": LEDGER_READ, "ledger verify": LEDGER_READ, "ledger rebuild": LEDGER_READ,
    "ledger backup": LEDGER_BACKUP, "ledger forget": LEDGER_FORGET, "archive": ARCHIVE, "pricing": PRICING,
    "run": RUN, "guard": GUARD, "chat": CHAT, "mcp": (LEDGER, ALLOW_PATHS), "demo": DEMO,
}  # fmt: skip
"""Every command and subcommand with its options, in the order of the help text."""


def subcommand_first(words: Sequence[str]) -> list[str]:
    """Return a command line with its subcommand in second place: `ledger --json sync` becomes `ledger sync --json`."""
    subcommands = [name.partition(" ")[2] for name in COMMANDS if words and name.startswith(f"{words[0]} ")]
    known = [options for name, options in COMMANDS.items() if subcommands and name.split()[0] == words[0]]
    named = {name: option for options in known for option in options for name in (option.name, option.short) if name}
    index = 1
    while subcommands and index < len(words):
        name, equals, _ = words[index].partition("=")
        if words[index] in subcommands:
            return [words[0], words[index], *words[1:index], *words[index + 1 :]]
        if name not in named:
            break
        index += 1 if equals or named[name].kind == "flag" else 2
    return list(words)


def settings_of(command: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return every setting of a command: the given value, else the default."""
    return {option.setting: given.get(option.setting, option.default) for option in COMMANDS[command]}


def split_list(values: Sequence[str] | None) -> list[str]:
    """Return the values of a repeated option, each split at commas."""
    return [word.strip() for value in values or () for word in value.split(",") if word.strip()]
