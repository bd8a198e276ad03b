"""What logs say of money beside token counts: costs, tiers, regions, searches, and what a request was for."""

import json
import sqlite3

import pytest

from sessionlog.sources.registry import load_source
from tests.sources.homes import build_home, environment


def records_of(case, home):
    """The records of all logs of a home."""
    source = load_source(case.partition("/")[0])
    logs = [log for place in source.locate(environment(case, home)) for log in source.list_logs(place)]
    return [record for log in logs for session in source.scan(log, None).sessions for record in session.records]


def change(home, name, *statement):
    """Change a database of a home."""
    [path] = home.rglob(name)
    with sqlite3.connect(path) as connection:
        connection.execute(*statement)
    connection.close()


@pytest.mark.parametrize(
    ("details", "found"),
    [
        ({}, (None, "", "", 0)),
        ({"cost": 0.25}, (250_000_000, "", "", 0)),
        ({"cost": 0.01, "cost_details": {"upstream_inference_cost": 0.5}}, (10_000_000, "", "", 0)),
        ({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.5}}, (510_000_000, "", "", 0)),
        ({"service_tier": "flex"}, (None, "flex", "", 0)),
        ({"service_tier": "standard", "inference_geo": "us"}, (None, "", "us", 0)),
        ({"server_tool_use": {"web_search_requests": 3}}, (None, "", "", 3)),
    ],
)
def test_llm_keeps_what_providers_say_beside_the_counts(details, found, tmp_path):
    """In its column of details; OpenRouter's cost has no part of what another one's key is charged."""
    home = build_home("llm/token-details", tmp_path)
    change(home, "logs.db", "UPDATE responses SET token_details = ?", (json.dumps(details),))
    records = records_of("llm/token-details", home)
    assert {(one.cost_nano, one.service_tier, one.region, one.searches) for one in records} == {found}


@pytest.mark.parametrize(
    ("attributes", "tier"),
    [
        ({"openai.request.service_tier": "flex"}, "flex"),
        ({"gen_ai.openai.request.service_tier": "priority", "gen_ai.openai.response.service_tier": "default"}, ""),
        ({"openai.request.service_tier": "auto", "openai.response.service_tier": "priority"}, "priority"),
    ],
)
def test_a_span_names_the_tier_that_was_served(attributes, tier, tmp_path):
    """Else the one that was asked for."""
    home = build_home("otel/console-lines", tmp_path)
    more = json.dumps(attributes)[1:-1].encode()
    for path in home.rglob("*.jsonl"):
        path.write_bytes(path.read_bytes().replace(b'"gen_ai.request.model"', more + b',"gen_ai.request.model"'))
    records = [
        record
        for path in home.rglob("*.jsonl")
        for session in load_source("otel").scan(str(path), None).sessions
        for record in session.records
    ]
    assert {record.service_tier for record in records} == {tier}


def test_a_compaction_of_goose_is_named(tmp_path):
    """In the ledger of its calls."""
    home = build_home("goose/calls", tmp_path)
    change(home, "sessions.db", "UPDATE usage_ledger SET is_compaction = 1 WHERE input_tokens = 1200")
    assert [record.kind for record in records_of("goose/calls", home)] == ["", "", "compaction"]
