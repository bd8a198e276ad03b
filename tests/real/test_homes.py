"""Every home against its truth: request by request, session by session, and replay against usage.

One test is one home and one question, so that a deviation is named as narrowly as it is (see `deviations`).
"""

from collections import Counter

import pytest

from tests.real.clients import client_of, provider_of
from tests.real.data import CLASSES, HOMES, OK, Request, Tokens, home_names, is_here
from tests.real.deviations import every_home
from tests.real.matching import Match, Pair, expected, match
from tests.real.reading import Reading, Record

CLOCK = 0.05
"""Seconds by which the stub's clock reading and a log's may differ: both round, and both are taken a little late."""
SLOWEST = 3.0
"""Seconds within which a client logs an answer; some write the time at which the turn's last tool ended."""
LONGEST = 10.0
"""Seconds that a client may spend before its request reaches the stub, retries included."""
SUBAGENT = "Look at the notes."
REFUSAL = "stub says no"
ENDS = ("success", "cancelled", "unfinished", "error")


def numbers(requests: list[Request]) -> list[str]:
    """Requests as a person finds them in the truth."""
    return [f"{request.run} {request.number}" for request in requests]


def wrong(found: Match, check) -> dict[str, object]:
    """The pairs for which a check returns something, by request."""
    results = ((f"{pair.request.run} {pair.request.number}", check(pair)) for pair in found.pairs)
    return {name: result for name, result in results if result is not None}


def add(tokens) -> tuple[int, ...]:
    """The sum of the four classes."""
    return tuple(map(sum, zip(*(one.classes for one in tokens), strict=True))) or (0,) * len(CLASSES)


@pytest.mark.skipif(not is_here(), reason=f"no folder of homes: {HOMES} homes not compared")
def test_number_of_homes_in_skip_reasons():
    """The folder holds at least as many homes as the reasons of skipped tests say."""
    assert len(home_names()) >= HOMES


@every_home("counted")
def test_every_answer_is_counted(reading: Reading):
    """Each answer has its record, but for those that the client does not log."""
    found = match(reading)
    lost = [request for request in found.missing if reading.home.shows(request)]
    assert numbers(lost) == [], "the log holds their tokens"
    assert len(found.missing) <= reading.home.missing, numbers(list(found.missing))
    assert found.pairs or found.sums or reading.home.missing >= len(reading.home.counted()), "nothing is read here"


@every_home("extra")
def test_nothing_else_is_counted(reading: Reading):
    """No record is a second one of an answer, or of none."""
    assert [(record.session, record.tokens.classes) for record in match(reading).extra] == []


@every_home("tokens")
def test_tokens(reading: Reading):
    """Each record has the tokens that were answered; an interrupted one may have a part of the output."""

    def check(pair: Pair):
        want, have = expected(reading.home, pair.request).classes, pair.record.tokens.classes
        if not pair.request.whole:
            return None if have[:2] == want[:2] and have[3] <= want[3] else (want, have)
        return None if have == want else (want, have)

    assert wrong(match(reading), check) == {}


@every_home("reasoning")
def test_reasoning(reading: Reading):
    """Each record has the reasoning tokens that were answered."""

    def check(pair: Pair):
        want, have = expected(reading.home, pair.request).reasoning, pair.record.tokens.reasoning
        return (want, have) if pair.request.whole and want != have else None

    assert wrong(match(reading), check) == {}


@every_home("one_hour_writes")
def test_one_hour_writes(reading: Reading):
    """Cache writes that live for an hour are told apart where the log does so."""
    logged = reading.home.holds("ephemeral_1h", "cacheWrite1h")

    def check(pair: Pair):
        tokens = expected(reading.home, pair.request)
        want = tokens.cache_write_1h if logged else 0
        have = reading.one_hour_writes.get(tokens.classes[:2])
        return (want, have) if pair.request.whole and want != have else None

    assert wrong(match(reading), check) == {}


@every_home("models")
def test_models(reading: Reading):
    """Each record has the model that was asked for."""
    found = match(reading)
    assert wrong(found, lambda p: None if p.is_session else _unlike(p.request.model, p.record.model)) == {}
    sums = [record for record in reading.records if record.granularity == "session" or record in found.sums]
    assert [record.session for record in sums if record.model in ("", "unknown", None)] == []


@every_home("providers")
def test_providers(reading: Reading):
    """Each record has the provider of the client's configuration."""

    def check(pair: Pair):
        provider = provider_of(reading.home, pair.request)
        if provider is None:
            return "unknown" if pair.record.provider == "unknown" else None
        return _unlike(provider, pair.record.provider)

    found = match(reading)
    assert wrong(found, check) == {}
    assert [record.session for record in found.sums if record.provider == "unknown"] == []


def _unlike(want: str, have: str):
    return None if want == have else (want, have)


@every_home("latency")
def test_latency(reading: Reading):
    """Each whole answer has a latency, and the request that it implies was sent before the stub received it."""

    def check(pair: Pair):
        if not pair.request.whole or pair.is_session:
            return None
        if pair.record.latency_ms is None:
            return "no latency"
        sent = pair.record.seconds - pair.record.latency_ms / 1000 - pair.request.time
        return None if -LONGEST <= sent <= CLOCK / 2 else f"sent {sent:+.3f} s after the stub received it"

    assert wrong(match(reading), check) == {}


@every_home("times")
def test_times(reading: Reading):
    """Each answer's time is that of its end: after the request came, and before anything that took longer."""

    def check(pair: Pair):
        if not pair.request.delivered or pair.is_session:
            return None
        late = pair.record.seconds - pair.request.time
        return None if -CLOCK <= late <= SLOWEST else f"{late:+.3f} s"

    assert wrong(match(reading), check) == {}


@every_home("quality")
def test_quality(reading: Reading):
    """Whole answers are exact, interrupted ones partial."""
    found = match(reading)
    single = [record for record in reading.records if record.granularity == "request" and record.requests]
    partial = [record for record in single if not record.has_tokens and not record.failed]
    assert wrong(found, lambda p: _unlike("exact" if p.request.whole else "partial", p.record.quality)) == {}
    assert {record.quality for record in partial} <= {"partial"}
    interrupted = [request for request in reading.home.requests if request.status == OK and not request.whole]
    assert len(partial) <= len(interrupted)


@every_home("failures")
def test_failures(reading: Reading):
    """A refusal that the log holds is a failed request without tokens; no other request failed.

    Where the log has only sums of sessions, the session failed.
    """
    refused, failed = reading.home.refused(), [record for record in reading.records if record.failed]
    assert not [record.session for record in failed if record.has_tokens]
    assert [record.session for record in failed if not _near(record, refused)] == []
    assert len(failed) <= len(refused)
    ends = {record.status for record in reading.records if record.granularity == "session"}
    assert failed or "error" in ends or not reading.home.holds(REFUSAL)


def _near(record: Record, refused: list[Request]) -> list[Request]:
    """The refused requests that a failed record may be of."""
    return [request for request in refused if abs((record.seconds or 0) - request.time) < LONGEST]


@every_home("failed_models")
def test_models_of_failures(reading: Reading):
    """A failed request has the model that was asked for."""
    failed = [record for record in reading.records if record.failed]
    models = {request.model for request in reading.home.refused()}
    assert [(record.session, record.model) for record in failed if record.model not in models] == []


@every_home("statuses")
def test_statuses(reading: Reading):
    """A session that ends with an answer succeeded, one that ends with a refusal failed.

    One that ends within an answer did neither. After a call of a tool the client may end as it likes.
    """
    bad = {}
    for session, request in last_requests(reading).items():
        status = reading.sessions[session]["status"] if session in reading.sessions else "not listed"
        want = _ends_as(reading, request)
        if status not in want:
            bad[session] = (numbers([request]), want, status)
    assert bad == {}


def last_requests(reading: Reading) -> dict[str, Request]:
    """Session → the last request of its main agent, by what requests themselves name and by records."""
    last: dict[str, Request] = {}
    failed = [record for record in reading.records if record.failed]
    for request in sorted(reading.home.requests, key=lambda request: request.time):
        if request.side or request.sentence.startswith(SUBAGENT):
            continue
        session = _session_of(reading, request, failed)
        if session is not None:
            last[session] = request
    return last


def _session_of(reading: Reading, request: Request, failed: list[Record]) -> str | None:
    record = match(reading).record_of(request.number, request.run)
    if record is not None:
        return record.session if record.agent == "main" else None
    if request.session and reading.home.holds(request.session):
        return request.session
    near = [one.session for one in failed if request.status != OK and one.session and _near(one, [request])]
    return near[0] if near else None


def _ends_as(reading: Reading, request: Request) -> tuple[str, ...]:
    """The statuses that a session may have whose last request this is."""
    if request.status != OK:
        return ("error",) if reading.home.holds(REFUSAL) else ENDS
    if not request.whole:
        return "cancelled", "unfinished", "error"
    return ("success",) if request.action in ("text", "err", "slow") else ENDS


@every_home("sessions")
def test_sessions_of_requests(reading: Reading):
    """Each record is under the session that the request itself named."""

    def check(pair: Pair):
        named = pair.request.session
        known = named and not pair.request.side
        return (named, pair.record.session) if known and not pair.record.session.endswith(named) else None

    assert wrong(match(reading), check) == {}


@every_home("session_sums")
def test_sums_of_sessions(reading: Reading):
    """Each session in the list has the number of requests and the tokens of its records, and those are its answers'."""
    found = match(reading)
    counted: dict[str, Counter[str]] = {}
    for record in reading.records:
        sums = {f"{name}_tokens": getattr(record.tokens, name) for name in (*CLASSES, "reasoning")}
        counted.setdefault(record.session, Counter()).update({"requests": record.requests, **sums})
    names = ("requests", *(f"{name}_tokens" for name in (*CLASSES, "reasoning")))
    listed = {id_: {name: row[name] for name in names} for id_, row in reading.sessions.items()}
    assert {id_: row for id_, row in listed.items() if any(row.values())} == {
        id_: dict(sums) for id_, sums in counted.items() if any(sums.values())
    }
    assert listed, "nothing is read here"
    assert {record.session for record in (*found.extra, *(pair.record for pair in found.pairs))} <= set(listed)


@every_home("session_list")
def test_sessions_are_listed(reading: Reading):
    """Each session that a request named and the log holds is listed, with or without a response."""
    named = {request.session for request in reading.home.requests if request.session and not request.side}
    logged = {session for session in named if reading.home.holds(session)}
    assert {session for session in logged if not any(id_.endswith(session) for id_ in reading.sessions)} == set()
    assert reading.sessions, "no session is listed"


@every_home("agents")
def test_agents(reading: Reading):
    """A sub-agent's records are not the main agent's."""

    def check(pair: Pair):
        sentence, agent = pair.request.sentence, pair.record.agent
        if not sentence or pair.request.side:
            return None
        is_subagent = agent not in ("main", "unknown")
        return None if is_subagent == sentence.startswith(SUBAGENT) else (sentence, agent)

    assert wrong(match(reading), check) == {}


@every_home("source")
def test_source(reading: Reading):
    """The client's own source reads the home, and no other one finds anything."""
    assert {record.source for record in reading.records} <= {client_of(reading.home).source}
    assert {row["source"] for row in reading.sessions.values()} == {client_of(reading.home).source}


@every_home("harness")
def test_harness(reading: Reading):
    """The agent program is known, and the same in every session."""
    known = {row["harness"] for row in reading.sessions.values()}
    assert len(known) == 1
    assert not known & {"unknown", "", None}


@every_home("replay")
def test_replay_agrees(reading: Reading):
    """The replay of each session has the tokens that usage counts there, and besides only inherited answers."""
    assert reading.sessions, "nothing to replay"
    bad = {session: sums for session in reading.sessions if len(set(sums := _sums(reading, session))) > 1}
    assert bad == {}, "session: (usage, replay)"


def _sums(reading: Reading, session: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What usage and the replay say of one session."""
    here = [record.tokens for record in reading.records if record.session == session]
    elsewhere = {record.tokens.classes for record in reading.records if record.session != session}
    elsewhere -= {tokens.classes for tokens in here}
    replay = reading.replay(session)
    told = [tokens for tokens in replay.responses() if tokens.classes not in elsewhere]
    ends = [end["tokens"] for end in replay.data("session.end") if end.get("tokens")]
    told += [Tokens(**{name: end.get(name, 0) for name in CLASSES}) for end in ends]
    return add(here), add(told)


@every_home("answers")
def test_answers_are_replayed(reading: Reading):
    """The replay of a record's session holds the text or the tool call that was answered."""

    def check(pair: Pair):
        if pair.request.side or not pair.request.whole or not reading.home.holds(*pair.request.marks):
            return None
        text = reading.replay(pair.record.session).text
        return None if any(mark in text for mark in pair.request.marks) else pair.record.session

    assert wrong(match(reading), check) == {}


@every_home("prompts")
def test_prompts_are_replayed(reading: Reading):
    """Each prompt that the log holds is in the replay of a listed session: its record's, if it was answered."""
    texts = {session: reading.replay(session).text for session in reading.sessions}
    bad = []
    for request in reading.home.requests:
        asked = request.sentence.rpartition("] ")[2]
        if request.side or not asked or not reading.home.holds(asked):
            continue
        record = match(reading).record_of(request.number, request.run)
        held = [texts.get(record.session, "")] if record else list(texts.values())
        if not any(asked in text for text in held):
            bad.append(f"{request.run} {request.number}: {asked}")
    assert bad == []


@every_home("problems")
def test_no_problem_is_found(reading: Reading):
    """What a real client writes is not called damaged."""
    assert reading.document("usage")["problems"]["count"] == 0
