"""Which failures pass by themselves, and how long to wait for that."""

from email.message import Message as Headers
from http import HTTPStatus
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.turns.retry import is_transient, pause_before_retry, retry_after
from tests.profiles import examples

NOW = 1_800_000_000.0


class Failure(Exception):
    """What a client raises."""

    def __init__(self, status=None, headers=None, name="status_code"):
        super().__init__("it failed")
        if status is not None:
            setattr(self, name, status)
        if headers is not None:
            self.response = SimpleNamespace(headers=headers, status_code=status)


class APIConnectionError(Exception):
    """A client's own, of no known base."""


class MyTimeout(APIConnectionError):
    """One that derives from it."""


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529, 599])
def test_a_passing_status_is_tried_again(status):
    """Whatever the client calls it, and also where only its response has it."""
    assert is_transient(Failure(status))
    assert is_transient(Failure(status, name="status"))
    error = Failure()
    error.response = SimpleNamespace(status_code=status)
    assert is_transient(error)


def test_a_status_may_be_a_member_of_an_enumeration():
    """As the standard library's, which is an int."""
    assert is_transient(Failure(HTTPStatus.TOO_MANY_REQUESTS))
    assert not is_transient(Failure(HTTPStatus.NOT_FOUND))
    error = Failure()
    error.response = SimpleNamespace(status_code=HTTPStatus.SERVICE_UNAVAILABLE)
    assert is_transient(error)


def test_a_type_that_is_no_text_is_ignored():
    """Any exception may have any attribute."""
    error = ValueError("no")
    error.type = ["overloaded_error"]
    assert not is_transient(error)


@pytest.mark.parametrize("error", [
    *map(Failure, (400, 401, 403, 404, 413, 422, 600, 100)),
    Failure(True), Failure("503"), ValueError("no"), FileNotFoundError("no"), KeyError("no"), MemoryError(),
])  # fmt: skip
def test_what_does_not_pass_is_not_tried_again(error):
    """A wrong request stays wrong: only what is known to pass is tried again."""
    assert not is_transient(error)


@pytest.mark.parametrize("kind", ["overloaded_error", "rate_limit_error", "api_error", "timeout_error"])
def test_an_error_in_the_middle_of_an_answer(kind):
    """Its status was 200, so its type decides."""
    error = Failure(200)
    error.type = kind
    assert is_transient(error)
    error.type = "invalid_request_error"
    assert not is_transient(error)


def test_an_error_whose_body_has_the_status():
    """As gateways tell it in the middle of an answer."""
    error = Failure()
    error.body = {"code": 502, "message": "bad gateway"}
    assert is_transient(error)
    error.body = {"code": 400}
    assert not is_transient(error)


@pytest.mark.parametrize(
    "error",
    [ConnectionError(), ConnectionResetError(), BrokenPipeError(), TimeoutError(), APIConnectionError(), MyTimeout()],
)
def test_a_lost_connection_is_tried_again(error):
    """Also one of a class that has no known base."""
    assert is_transient(error)


def test_the_cause_counts():
    """A wrapper's own words say nothing."""
    outer = RuntimeError("it went wrong")
    outer.__cause__ = ConnectionResetError()
    assert is_transient(outer)
    inner = ValueError()
    inner.__cause__ = inner
    assert not is_transient(inner)


def test_a_status_counts_more_than_its_cause():
    """A 404 after a connection error is a 404."""
    error = Failure(404)
    error.__cause__ = ConnectionResetError()
    assert not is_transient(error)


def pauses(*errors, jitter=0.0, **changes):
    """The pauses after each failure, without chance, at a known time."""
    settings = ConversationSettings(**changes)
    return [
        pause_before_retry(error, attempt, settings, jitter=lambda: jitter, now=lambda: NOW)
        for attempt, error in enumerate(errors, 1)
    ]


def test_pauses_double_up_to_the_longest():
    """Exponential backoff."""
    found = pauses(*[ConnectionError()] * 7, retry_attempts=7, retry_initial_s=1.0, retry_max_s=10.0)
    assert found == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0, None]


def test_a_pause_is_longer_at_random():
    """So that many clients do not come back at once."""
    assert pauses(ConnectionError(), jitter=0.5, retry_initial_s=1.0, retry_jitter_s=2.0) == [2.0]


def test_one_attempt_is_never_repeated():
    """That is how retrying is switched off."""
    assert pauses(ConnectionError(), retry_attempts=1) == [None]


def test_what_does_not_pass_ends_the_attempts():
    """However many are left."""
    assert pauses(Failure(400)) == [None]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": 7}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:10 GMT"}, 10.0),
        ({"retry-after": "Fri, 15 Jan 2027 07:59:00 GMT"}, 0.0),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:10"}, 10.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_a_provider_names_a_time(headers, seconds):
    """In seconds, in milliseconds, or as a date."""
    assert retry_after(Failure(429, headers), NOW) == seconds


def test_headers_that_are_no_mapping_say_nothing():
    """Anybody may call anything `headers`."""
    assert retry_after(Failure(429, [("retry-after", "7")]), NOW) is None
    assert retry_after(Failure(429), NOW) is None
    headers = Headers()
    headers["Retry-After"] = "7"
    error = Failure(429)
    error.headers = dict(headers)
    assert retry_after(error, NOW) == 7.0


def test_the_time_that_is_asked_for_is_kept_up_to_the_longest_pause():
    """Without jitter: the provider knows."""
    errors = [Failure(429, {"retry-after": "7"}), Failure(429, {"retry-after": "700"})]
    assert pauses(*errors, jitter=0.9, retry_max_s=30.0) == [7.0, 30.0]


@examples(60)
@given(
    initial=st.floats(0, 100),
    most=st.floats(0, 100),
    jitter=st.floats(0, 100),
    chance=st.floats(0, 0.999),
    n=st.integers(1, 40),
)
def test_no_pause_is_longer_than_the_longest_or_less_than_nothing(initial, most, jitter, chance, n):
    """Whatever the settings."""
    chosen = {"retry_attempts": n + 1, "retry_initial_s": initial, "retry_max_s": most, "retry_jitter_s": jitter}
    found = pauses(*[ConnectionError()] * n, jitter=chance, **chosen)
    assert all(pause is not None and 0 <= pause <= most for pause in found)
