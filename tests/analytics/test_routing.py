"""Routing quality: three figures whose denominators are sessions and overrides, never events of another kind."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sessionlog.analytics import routing
from sessionlog.analytics.routing import OverrideClassBucket, RoutingQualityScan, scan_routing_quality
from sessionlog.analytics.window import UsageWindow
from sessionlog.errors import InvalidQuery, InvalidWindow, LogNotReadable, MissingExtra

DATA = Path(__file__).parents[2] / "testdata" / "routing"
BASIC, PINNED, LESSONS = (str(DATA / name) for name in ("basic", "three-of-four-pinned", "lessons"))
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
UNSIZED = "tokens=unknown,tools=no,reasoning=none"


def lesson(name):
    return scan_routing_quality(f"{LESSONS}/{name}.jsonl")


def cell(bucket=UNSIZED, axis="model", *, match=False, **outcomes):
    counts = {
        f"{word}_outcomes": outcomes.get(word, 0) for word in ("success", "stalled", "failed", "cancelled", "unknown")
    }
    return OverrideClassBucket(
        prompt_feature_bucket=bucket, axis=axis, match=match, count=sum(counts.values()), **counts
    )


# --- events


def test_the_raw_overrides_of_the_counted_sessions_are_kept():
    """`override_events` are the logged override and rejected_override lines of the sessions in the window, in order."""
    scan = scan_routing_quality(BASIC, window="2026-11-20T08:00:00Z..2026-11-20T12:01:00Z")
    events = scan.override_events
    assert [event.type for event in events] == ["override"] * 3
    assert scan.total_overrides == 3
    assert {"user_pin", "axes_overridden"} <= events[0].data.keys()
    assert "override_events" not in scan.to_dict()


def test_rejected_and_unreadable_overrides_are_among_the_raw_ones(tmp_path):
    """Nothing is decoded for `override_events`; a file without a session.start has none."""
    lines = [
        {"session_id": "s", "seq": n, "type": kind, "ts": "2026-11-20T10:00:00Z", "data": data}
        for n, (kind, data) in enumerate(
            [("session.start", {}), ("override", {"axes_overridden": 7}), ("rejected_override", {}), ("progress", {})]
        )
    ]
    (tmp_path / "s.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (tmp_path / "t.jsonl").write_text(f"{json.dumps(lines[2])}\n")
    scan = scan_routing_quality(tmp_path)
    assert [(event.type, event.seq) for event in scan.override_events] == [("override", 1), ("rejected_override", 2)]
    assert scan.undecodable_overrides == 1
    assert scan_routing_quality(tmp_path, keep_events=False).override_events == ()


# --- anchors


def test_progress_counts_logs_whose_number_is_not_known():
    """So that a long run shows that it goes on."""
    calls = []
    scan_routing_quality(BASIC, progress=lambda *call: calls.append(call))
    assert len(calls) > 1
    assert calls == [(number, None) for number in range(len(calls))]


def test_the_basic_anchor_holds():
    """Five sessions of a day, three overridden, two of these against the router: 0.4 and 2/3."""
    scan = scan_routing_quality(BASIC, window="2026-11-20T08:00:00Z..2026-11-20T12:01:00Z")
    assert (scan.total_requests, scan.total_overrides, scan.accepted_requests) == (5, 3, 2)
    assert scan.auto_acceptance_rate == pytest.approx(0.4)
    assert scan.override_disagreement_rate == pytest.approx(2 / 3)
    tiny = "tokens=tiny,tools=no,reasoning=none"
    assert scan.override_class_breakdown == (
        cell(tiny, success=1, failed=1),
        cell(tiny, match=True, success=1),
    )


def test_without_a_window_every_session_counts():
    """The session of last month is the sixth: 2 of 6 accepted, 3 of 4 overrides disagree."""
    scan = scan_routing_quality(BASIC)
    assert (scan.total_requests, scan.total_overrides) == (6, 4)
    assert scan.auto_acceptance_rate == pytest.approx(1 / 3)
    assert scan.override_disagreement_rate == 0.75


def test_the_pinned_anchor_holds():
    """Three of four sessions were pinned, all against the router: 0.25 and 1."""
    scan = scan_routing_quality(PINNED)
    assert (scan.auto_acceptance_rate, scan.override_disagreement_rate) == (0.25, 1.0)
    assert (scan.total_requests, scan.total_overrides) == (4, 3)


# --- weaknesses of the origin, each as a test


def test_weakness_19_outcomes_are_joined_from_the_sessions_end():
    """An override that was written before its outcome was known has the outcome of its session."""
    buckets = scan_routing_quality(PINNED).override_class_breakdown
    assert buckets == (
        cell(axis="harness", match=True, success=2, stalled=1),
        cell(axis="model", success=2, stalled=1),
        cell(axis="provider", success=2, stalled=1),
    )


def test_weakness_20_acceptance_counts_sessions():
    """Two overrides in one of two sessions leave one accepted: 1/2, where counting events would give 0."""
    scan = scan_routing_quality([f"{LESSONS}/two-overrides-one-session.jsonl", f"{BASIC}/kept-one.jsonl"])
    assert (scan.auto_acceptance_rate, scan.total_overrides) == (0.5, 2)


def test_weakness_20_rejected_pins_are_counted_apart():
    """A pin that could not be honoured is no override and no acceptance, and says why."""
    scan = lesson("rejected-pin")
    assert (scan.total_requests, scan.total_overrides, scan.rejected_overrides) == (1, 0, 1)
    assert (scan.auto_acceptance_rate, scan.override_disagreement_rate) == (0.0, None)
    assert scan.rejected_breakdown == ({"reason": "unknown model", "count": 1},)
    assert scan.override_class_breakdown == ()


def test_weakness_20_an_unreadable_override_is_not_an_acceptance():
    """Its session is not accepted, it is in no other count, and the report names it."""
    scan = lesson("unreadable-override")
    assert (scan.total_requests, scan.accepted_requests) == (1, 0)
    assert (scan.undecodable_overrides, scan.total_overrides) == (1, 0)
    assert scan.problems["count"] == 1
    assert "unreadable-override.jsonl bad_payload override (seq 1)" in scan.problems["first"][0]


def test_a_session_without_end_has_an_unknown_outcome():
    """Nothing is guessed for a session that is running or was killed."""
    assert lesson("outcome-without-end").override_class_breakdown[0].unknown_outcomes == 1


# --- what counts


def test_a_log_without_a_start_is_no_session():
    """An override alone says nothing about how many sessions were routed."""
    assert lesson("override-without-start").to_dict() == RoutingQualityScan().to_dict()


@pytest.mark.parametrize(("spec", "sessions"), [(None, 1), ("..2026-11-21", 1), ("2026-11-21..", 0), ("2026-11-21", 0)])
def test_a_start_without_time_counts_where_the_windows_start_is_open(spec, sessions):
    """Without a time a session can be as old as one likes."""
    assert scan_routing_quality(f"{LESSONS}/start-without-time.jsonl", window=spec).total_requests == sessions


def test_failovers_name_the_providers_in_order():
    """The end of a session knows the providers that were tried better than its start."""
    assert lesson("failover").failovers == {
        "sessions": 1,
        "total": 1,
        "by_path": [{"providers": ["bedrock", "anthropic"], "count": 1}],
    }


def test_model_changes_are_the_routers_and_served_names_the_providers():
    """Requested → resolved is the router's doing, sent → answered the provider's; they are kept apart."""
    scan = lesson("resolved-model")
    assert scan.model_changes == ({"requested": "medium", "resolved": "vendor/medium-1", "count": 1},)
    assert scan.served_changes == ({"requested": "vendor/medium-1", "served": "vendor/medium-1-20261101", "count": 1},)


# --- the scan


@pytest.mark.parametrize("nothing", ["", "no-such-folder", [], ["", "no-such-folder"]])
def test_a_missing_folder_has_no_sessions(nothing):
    """No logs give an empty report whose rates are unknown, not 0."""
    scan = scan_routing_quality(nothing)
    assert scan == RoutingQualityScan()
    assert (scan.auto_acceptance_rate, scan.override_disagreement_rate) == (None, None)


def test_several_paths_are_one_report():
    """Files and folders add; a file named twice counts once."""
    scan = scan_routing_quality([BASIC, f"{BASIC}/agreed.jsonl", PINNED])
    assert (scan.total_requests, scan.total_overrides) == (10, 7)


def test_an_axis_narrows_the_breakdown_only():
    """The rates stay those of all overrides, so that three axes are three views of one report."""
    scan, whole = scan_routing_quality(PINNED, axis="provider"), scan_routing_quality(PINNED)
    assert [bucket.axis for bucket in scan.override_class_breakdown] == ["provider"]
    assert scan.override_disagreement_rate == whole.override_disagreement_rate
    assert scan.to_dict()["axis"] == "provider"


@pytest.mark.parametrize("axis", ["Model", "region", " "])
def test_an_unknown_axis_is_a_wrong_call(axis):
    """The message names the axes there are."""
    with pytest.raises(InvalidQuery, match="harness, provider, model"):
        scan_routing_quality(BASIC, axis=axis)


def test_a_windows_text_is_read_with_now_and_zone():
    """`today` is a day of the zone; a wrong text raises before anything is read."""
    assert scan_routing_quality(PINNED, window="today", now=NOW).total_requests == 4
    assert scan_routing_quality(PINNED, window="today", now=NOW, tz="Pacific/Kiritimati").total_requests == 0
    assert scan_routing_quality(PINNED, window=UsageWindow()).total_requests == 4
    with pytest.raises(InvalidWindow):
        scan_routing_quality("no-such-folder", window="lately")


def test_damage_is_counted_and_the_report_stands(tmp_path):
    """Damaged lines are named with their file; an old session's are not this report's business."""
    whole = (Path(BASIC) / "agreed.jsonl").read_bytes()
    (tmp_path / "broken.jsonl").write_bytes(b"{garbage}\n" * 9 + whole)
    scan = scan_routing_quality(str(tmp_path), window="2026-11-20")
    assert (scan.total_overrides, scan.problems["count"], len(scan.problems["first"])) == (1, 9, 5)
    assert scan.problems["first"][0].startswith(f"{tmp_path / 'broken.jsonl'}:1 not_json")
    assert scan_routing_quality(str(tmp_path), window="2020-01-01").problems == {"count": 0, "first": []}


def test_a_file_that_cannot_be_read_is_a_finding(tmp_path):
    """One unreadable log is named, the others are reported."""
    (tmp_path / "a.jsonl.gz").write_bytes(b"\x1f\x8bno gzip")
    (tmp_path / "b.jsonl").write_bytes((Path(BASIC) / "agreed.jsonl").read_bytes())
    scan = scan_routing_quality(str(tmp_path))
    assert (scan.total_requests, scan.problems["count"] > 0) == (1, True)
    assert "a.jsonl.gz" in scan.problems["first"][0]


def test_what_cannot_be_opened_is_named_once(tmp_path, monkeypatch):
    """A device, and a .zst where no decoder is installed: a finding each, and no path twice."""

    def without_decoder(path):
        if path.endswith(".zst"):
            raise MissingExtra("reading .zst logs needs a decoder")
        raise LogNotReadable(f"{path}: not a regular file")

    monkeypatch.setattr(routing, "read_events", without_decoder)
    for name in ("a.jsonl", "b.jsonl.zst"):
        (tmp_path / name).write_bytes(b"")
    assert scan_routing_quality(tmp_path).problems["first"] == [
        f"{tmp_path}/a.jsonl unreadable not a regular file",
        f"{tmp_path}/b.jsonl.zst unreadable reading .zst logs needs a decoder",
    ]


def test_paths_may_be_path_objects():
    """One or several."""
    assert scan_routing_quality(Path(BASIC)).total_requests == 6
    assert scan_routing_quality([Path(BASIC), PINNED]).total_requests == 10


def test_the_json_shape_is_stable():
    """Every key, in order, of `sessionlog.routing/1`; the value is JSON through and through."""
    scan = scan_routing_quality(str(DATA), window="2026-11-01..2026-11-30", axis="model")
    value = json.loads(json.dumps(scan.to_dict(), allow_nan=False))
    assert value.pop("problems")["count"] == 1
    assert value == {
        "schema": "sessionlog.routing/1",
        "window": scan.window.to_dict(),
        "axis": "model",
        "total_requests": 15,
        "routed_requests": 11,
        "accepted_requests": 5,
        "auto_acceptance_rate": pytest.approx(1 / 3),
        "total_overrides": 9,
        "disagreeing_overrides": 8,
        "override_disagreement_rate": pytest.approx(8 / 9),
        "undecodable_overrides": 1,
        "rejected_overrides": 1,
        "rejected_breakdown": [{"reason": "unknown model", "count": 1}],
        "override_class_breakdown": [
            {
                "prompt_feature_bucket": bucket, "axis": "model", "match": match, "count": sum(counts),
                "success_outcomes": counts[0], "stalled_outcomes": counts[1], "failed_outcomes": counts[2],
                "cancelled_outcomes": counts[3], "unknown_outcomes": counts[4],
            }
            for bucket, match, counts in [
                ("tokens=tiny,tools=no,reasoning=none", False, (1, 0, 2, 0, 1)),
                ("tokens=tiny,tools=no,reasoning=none", True, (1, 0, 0, 0, 0)),
                (UNSIZED, False, (2, 1, 0, 0, 0)),
            ]
        ],
        "failovers": {"sessions": 1, "total": 1, "by_path": [{"providers": ["bedrock", "anthropic"], "count": 1}]},
        "model_changes": [{"requested": "medium", "resolved": "vendor/medium-1", "count": 1}],
        "served_changes": [{"requested": "vendor/medium-1", "served": "vendor/medium-1-20261101", "count": 1}],
    }  # fmt: skip


def test_the_window_is_in_the_json():
    """A report says which time it is about; all time is null."""
    assert scan_routing_quality("", window="2026-11-20").to_dict()["window"]["start"].startswith("2026-11-20T00:00:00")
    assert scan_routing_quality("").to_dict()["window"] is None
