"""Where sessionlog is deliberately better than the original: the one table, by rule.

A case that a rule lists must differ there, exactly as the table says; whatever the table does not name is the same in
both. The rules are a closed list; `test_differences` compares it with the words they were agreed in.

A case is called by its kind and name, `usage edge/origin_mixed 7d`; a usage case is asked for its exit code as
`command …`. Of a replay, a place is a group of facts, and what ours says is a pattern.
"""

from collections.abc import Iterator
from functools import cache

from tests.conformance.expectation import Changes, Rule, accepted, ended, nulls, row, says, speeds, unused, usage

_REPO = "logs/repo-sessions"
_REPO_MAY = f"usage {_REPO} 2026-05-01..2026-05-03"
_PLAIN = "tokens=unknown,tools=no,reasoning=none"
_OFF = "tokens=unknown,tools=no,reasoning=off"
_PINS = (f"{_PLAIN} harness agrees", f"{_PLAIN} model disagrees", f"{_PLAIN} provider disagrees")
_NO_SPEED = nulls("input_tokens_per_second", "output_tokens_per_second")
_NO_HIT = nulls("cache_hit_rate")
_DAMAGED = ("array", "badts", "bom", "garbage", "nul", "seqstr")
_ALL_TIME = says(start=None, end=None)
_BENCH = (
    "claude.log-summary-date-ranges",
    "codex.git-leak-recovery",
    "fiz.fix-git",
    "opencode.log-summary-date-ranges",
    "pi.fix-git",
)
_FAILED_AT_ONCE = ("1777601846836033430", "1777601856503761018", "1777601864961901183")
_NO_OVERRIDES = (
    _REPO_MAY,
    *usage("logs/demos", "2026-01-01"),
    *usage("logs/legacy", "all", "30d", "..2026-05-10"),
    *usage("logs/bench"),
    *usage("logs/archive", "all", "2026-04-06..2026-04-08"),
    *usage("edge/origin_mixed", "all", "7d", "30d", "2026-04-08"),
    *usage("edge/window_bounds", "all", "today", "7d", "2026-04-09", "2026-04-02..2026-04-09"),
    *usage("edge/window_bounds", "2026-04-09T12:00:00Z..", "..2026-04-02T12:00:00Z", "2026-04-02T12:00:00Z"),
    *(f"usage edge/{name} all" for name in ("badutf8", "empty_dir", "file_selection", "json_shapes", "no_such_dir")),
    *(
        f"usage edge/{name} all"
        for name in ("origin_success", "session_shape", "silent_loss", "token_totals", "unknown_cost")
    ),
)
_UNKNOWN_ENDS = (
    "tokens=large,tools=yes,reasoning=none harness disagrees",
    "tokens=small,tools=no,reasoning=none harness disagrees",
    "tokens=tiny,tools=yes,reasoning=none harness disagrees",
    "tokens=xlarge,tools=no,reasoning=none harness disagrees",
    *(f"{_PLAIN} {cell}" for cell in ("harness agrees", "model disagrees", "model agrees", "provider agrees")),
)

# fmt: off
RULES = (
    Rule(
        name="damaged files (edge/fail_*, origin exit 1)",
        reason="one unreadable line must not take a report away: it is skipped, counted and named",
        cases=(
            (tuple(f"usage edge/fail_{kind} all" for kind in _DAMAGED), {
                "bad|m": row(),
                "good|m": row(),
                "total": row(sessions=2, success=2, tokens=(20, 10), ms=2000, usd=0.5),
                "window": _ALL_TIME,
                "routing": accepted(2),
            }),
            (usage("edge/fail_truncated"), {  # the torn line was the session's end
                "bad|m": unused(ms=0),
                "good|m": row(),
                "total": row(sessions=2),
                "window": _ALL_TIME,
                "routing": accepted(2),
            }),
            (tuple(f"command edge/fail_{kind} all" for kind in (*_DAMAGED, "truncated")), {"command": says(exit=0)}),
            (tuple(f"read edge/fail_{kind}/bad.jsonl" for kind in (*_DAMAGED, "truncated")), {"read": says(to_the_end=True)}),
            (("read edge/replay/malformed.jsonl",), {"read": says(to_the_end=True)}),
            (tuple(f"read edge/fail_{kind}/bad.jsonl" for kind in ("array", "badts", "bom", "seqstr")),
                {"events": {"session.start": 1, "session.end": 1}}),
            (("read edge/fail_garbage/bad.jsonl",), {"events": {"session.end": 1}}),
            (("replay edge/replay/malformed.jsonl",), {"text": says(exit=0, shown=True)}),
        ),
    ),
    Rule(
        name="silent loss",
        reason="a value of the wrong type, or a start that is missing, must not make a session vanish",
        cases=(
            (usage("edge/silent_loss"), {
                "float-integral|m": row(),
                "float-tokens|m": row(tokens=(0, 5)),  # 10.5 tokens are none: counted 0 and named
                "cost-string|m": row(),
                "meta-int|m": row(),
                "reasoning-ultra|m": row(),
                "total": says(
                    sessions=8, success_sessions=8, input_tokens=70, output_tokens=40, total_tokens=110,
                    duration_ms=8000, known_cost_usd=2.0, input_tokens_per_second=8.75,
                ),
            }),
            (usage("edge/session_shape"), {  # nostart.jsonl: an end without a start is a session of nobody known
                "unknown|unknown": says(
                    sessions=2, success_sessions=2, input_tokens=20, output_tokens=10, total_tokens=30,
                    duration_ms=2000, known_cost_usd=0.5,
                ),
                "total": says(
                    success_sessions=15, input_tokens=220, output_tokens=110, total_tokens=330, success_rate=15 / 22,
                ),
            }),
            *(  # the number of messages, which is all that the oldest requests say of them
                ((f"replay logs/archive/demo-{name}.jsonl",),
                    {f"request {n}": says(messages=rf"^▹ request .*\b{2 * n} messages") for n in range(1, requests + 1)})
                for name, requests in (("bash", 6), ("edit", 4), ("read", 2))
            ),
        ),
    ),
    Rule(
        name="legacy `timestamp`",
        reason="the oldest logs call the time `timestamp`; reading it puts them on their day instead of the year 1",
        cases=(
            (usage("logs/legacy", "30d"), {
                "lmstudio|qwen/qwen3.5-27b": row(tokens=(10, 4), ms=500, usd=0.0),
                "total": says(
                    sessions=1, success_sessions=1, input_tokens=10, output_tokens=4, total_tokens=14, duration_ms=500,
                    known_cost_usd=0.0, success_rate=1.0, cost_per_success=0.0, **speeds((10, 4), ms=500),
                ),
                "routing": says(total_requests=1, auto_acceptance_rate=1.0),
            }),
            (usage("edge/json_shapes"), {"legacy-timestamp|m": says(duration_ms=2500, **speeds((1, 2), ms=2500))}),
            (("replay logs/legacy/pre_v011_session.jsonl",), {"session 1": says(time="2026-05-01 00:00:00")}),
            (("log logs/legacy/pre_v011_session.jsonl",), {f"event {n}": says(ts=f"2026-05-01T00:00:0{n}Z") for n in range(3)}),
        ),
    ),
    Rule(
        name="sessions without end, start-only and bench files",
        reason="a killed or running session is a session; a file without a payload is shown, but uses nothing",
        cases=(
            (usage(_REPO, "all", "30d"), {
                "lmstudio|qwen/qwen3.6-27b": unused(ms=8),
                "total": says(sessions=8, duration_ms=57_744, **speeds((82_877, 2_656), ms=57_744)),
            }),
            ((_REPO_MAY,), {
                "lmstudio|qwen/qwen3.6-27b": unused(ms=8),
                "total": says(sessions=6, duration_ms=38_886, **speeds((73_048, 2_501), ms=38_886)),
            }),
            # 21 of the original, noend.jsonl, and nostart.jsonl (silent loss)
            (usage("edge/session_shape"), {"noend|m": unused(ms=0), "total": says(sessions=23)}),
            (usage("edge/routing_all_overridden"), {"p|m": unused(ms=2000), "total": says(sessions=1, duration_ms=2000)}),
            (usage("edge/routing_buckets"), {  # 17 sessions without an end beside the one that has
                place: says(sessions=18, duration_ms=19_000, **speeds((10, 5), ms=19_000)) for place in ("p|m", "total")
            }),
            (usage("edge/json_shapes"), {  # nulldata.jsonl: its start and its end have `data: null`
                "unknown|unknown": None,
                "total": says(sessions=8, failed_sessions=0, unknown_cost_sessions=0, success_rate=1.0),
            }),
            (tuple(f"replay logs/bench/{name}.session.log.jsonl" for name in _BENCH), {"text": says(shown=True)}),
        ),
    ),
    Rule(
        name="negative durations",
        reason="a clock that was set back must not take time away from other sessions",
        cases=(
            (usage("edge/session_shape"), {  # 2500 ms that durback took away, and 1000 of nostart (silent loss)
                "durback|m": says(duration_ms=0, **_NO_SPEED),
                "total": says(duration_ms=25_999, **speeds((220, 110), ms=25_999)),
            }),
        ),
    ),
    Rule(
        name="known or estimated cost beside unknown",
        reason="known money must not be hidden because another session's is unknown",
        cases=(
            (usage(_REPO, "all", "30d"), {  # 0.240213 + 0.016446 + 0.0019216
                "total": says(known_cost_usd=0.2585806, cost_per_success=0.2585806 / 3),
            }),
            (usage(_REPO, "7d"), {"total": says(known_cost_usd=0.0019216, cost_per_success=0.0019216)}),
            ((_REPO_MAY,), {"total": says(known_cost_usd=0.256659, cost_per_success=0.256659 / 2)}),
            (usage("edge/origin_mixed", "all", "7d", "30d", "2026-04-08"), {
                "lmstudio|qwen3.5-7b": says(known_cost_usd=0.25, cost_per_success=0.25),
            }),
            (usage("edge/origin_mixed", "all", "30d"), {"total": says(known_cost_usd=1.75, cost_per_success=1.75 / 3)}),
            (usage("edge/origin_mixed", "7d", "2026-04-08"), {"total": says(known_cost_usd=0.75, cost_per_success=0.375)}),
            (usage("edge/json_shapes"), {"total": says(known_cost_usd=1.75, cost_per_success=1.75 / 8)}),
            (usage("edge/session_shape"), {"total": says(known_cost_usd=6.25, cost_per_success=6.25 / 12)}),
            (usage("edge/token_totals"), {"total": says(known_cost_usd=1.5, cost_per_success=1.5 / 6)}),
            (usage("edge/unknown_cost"), {
                "first|m": says(known_cost_usd=0.3, cost_per_success=0.15),
                "second|m": says(known_cost_usd=0.1, cost_per_success=0.1),
                "total": says(known_cost_usd=0.7, cost_per_success=0.14),
            }),
        ),
    ),
    Rule(
        name="relative windows and words the origin refuses",
        reason="a person thinks in `14d` and `yesterday`",
        cases=(
            (usage("edge/origin_mixed", "14d"), {
                "anthropic|claude-sonnet-4-20250514": row(tokens=(100, 50), ms=3000, usd=0.5),
                "lmstudio|qwen3.5-7b": row(sessions=2, success=2, tokens=(30, 15), ms=3000, unknown=1) | says(
                    known_cost_usd=0.25, cost_per_success=0.25
                ),
                "total": row(sessions=3, success=3, tokens=(130, 65), ms=6000, usd=0.75, unknown=1) | says(
                    cost_per_success=0.375
                ),
                "window": says(start="2026-03-26T12:00:00Z", end="2026-04-09T12:00:00Z"),
                "routing": accepted(3),
            }),
            (("command edge/origin_mixed 14d",), {"command": says(exit=0)}),
            (("window 1d",), {"window": says(start="2026-04-08T15:30:00Z", end="2026-04-09T15:30:00Z")}),
            (("window 90d",), {"window": says(start="2026-01-09T15:30:00Z", end="2026-04-09T15:30:00Z")}),
            (("window yesterday",), {"window": says(start="2026-04-08T00:00:00Z", end="2026-04-09T00:00:00Z")}),
        ),
    ),
    Rule(
        name="windows that cut a session in two",
        reason="time belongs to the response; no case has a session that a window cuts (test_10_…)",
    ),
    Rule(
        name="cache-inclusive input",
        reason="cached tokens are not input twice; no case has them inclusive (test_harness, test_06_…)",
    ),
    Rule(
        name="the reported total",
        reason="`total` means different things to different writers; the sum of the four classes means one",
        cases=(
            (usage("edge/token_totals"), {"given|m": says(total_tokens=1080), "total": says(total_tokens=3380)}),
        ),
    ),
    Rule(
        name="success rate without unfinished sessions, null instead of 0",
        reason="nothing divided by nothing is not 0, and neither is what a log does not say",
        cases=(
            (_NO_OVERRIDES, {"routing": nulls("override_disagreement_rate")}),
            ((*usage("edge/empty_dir"), *usage("edge/no_such_dir")), {"routing": nulls("auto_acceptance_rate")}),
            ((*usage("logs/bench"), *usage("edge/empty_dir"), *usage("edge/no_such_dir")), {
                "total": {**nulls("success_rate"), **_NO_SPEED, **_NO_HIT},
            }),
            (usage("edge/routing_basic", "all", "2026-04-09T10:00:00Z..2026-04-09T12:01:00Z", "7d", "30d"), {
                place: {**_NO_SPEED, **_NO_HIT} for place in ("p|m", "total")
            }),
            (usage("edge/routing_all_overridden"), {
                "total": {**nulls("success_rate"), **_NO_HIT},
                f"{_PLAIN} model disagrees": nulls("success_rate"),
            }),
            (usage("edge/routing_buckets"), {place: nulls("success_rate") for place in _UNKNOWN_ENDS}),
            ((*usage(_REPO, "all", "30d"), _REPO_MAY), {"openrouter|openai/gpt-5.3-mini": _NO_HIT}),
            (usage("edge/token_totals"), {"allzero|m": _NO_HIT, "notokens|m": _NO_HIT}),
            (("replay edge/replay/no_ts.jsonl",), {"session 1": nulls("time")}),
            (("replay edge/replay/full.jsonl",), {"answer 3": nulls("tokens")}),
            (tuple(f"replay {_REPO}/svc-{number}.jsonl" for number in _FAILED_AT_ONCE), {"answer 1": nulls("tokens")}),
            # the end names no duration: it is what the times say, as in the usage report
            (("replay logs/demos/quickstart.jsonl",), {"end 1": says(duration=r"\b64100 ms\b")}),
            # the end leaves out tokens and cost of answers: the totals are those of the usage report
            (("replay edge/replay/full.jsonl",), {
                "end 1": says(tokens=r"\b301 in\b.* 51 out\b", cost=r"\$0\.0234 \(the end has \$0\)"),
            }),
        ),
    ),
    Rule(
        name="subfolders and .gz/.zst read",
        reason="logs that were moved to a subfolder or compressed are still logs",
        cases=(
            (usage("edge/file_selection"), {
                "sub|m": row(),
                "total": says(
                    sessions=4, success_sessions=4, input_tokens=40, output_tokens=20, total_tokens=60,
                    duration_ms=4000, known_cost_usd=1.0,
                ),
                "routing": says(total_requests=4),
            }),
        ),
    ),
    Rule(name="harness as provider", reason="the log says who ran; no case has a harness (test_harness, test_08_…)"),
    Rule(
        name="missing folder",
        reason="a folder that was named and is not there is a mistake worth telling; the library finds nothing in it",
        cases=((("command edge/no_such_dir all",), {"command": says(exit=3)}),),
    ),
    Rule(
        name="acceptance by session and joined outcomes",
        reason="a session is accepted or not, however many pins it has; session.end says how its overrides ended",
        cases=(
            (usage(_REPO, "all", "today", "7d", "30d"), dict.fromkeys(_PINS, ended(success=1))),
            (usage(_REPO, "all", "7d", "30d", "2026-05-07"), {
                f"{_OFF} {axis} agrees": ended(success=1) for axis in ("harness", "model", "provider")
            }),
            (usage("logs/demos", "all", "7d", "today"), dict.fromkeys(_PINS, ended(3, success=2, stalled=1))),
            (usage("edge/routing_buckets"), {  # c4.jsonl: a rejected pin is no override that took effect
                "routing": says(total_overrides=17, override_disagreement_rate=15 / 17),
                f"{_PLAIN} provider disagrees": None,
            }),
        ),
    ),
    Rule(
        name="UTF-8 cut in the middle",
        reason="a text is cut between characters, and only where it is said",
        cases=((("replay edge/replay/utf8_cut.jsonl",), {"tool 1": says(output="a" + 150 * "é")}),),
    ),
)
# fmt: on


def differences_of(case: str) -> Iterator[tuple[str, Changes]]:
    """The changes of one case, each with the rule it follows."""
    return iter(_by_case().get(case, ()))


@cache
def _by_case() -> dict[str, list[tuple[str, Changes]]]:
    found: dict[str, list[tuple[str, Changes]]] = {}
    for rule in RULES:
        for names, changes in rule.cases:
            for name in names:
                found.setdefault(name, []).append((rule.name, changes))
    return found
