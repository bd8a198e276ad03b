"""One thing said: a message, cut to a length."""

from sessionlog.analytics.diff.message import cut_to
from tests.analytics.diff.talks import make_said


def test_a_long_text_is_cut_and_still_itself():
    """What is left out is counted, in arguments too; the digest is that of the whole."""
    long = make_said("assistant", "x" * 50, calls=[("f", {"a": "y" * 50}, "")])
    short = cut_to(long, 10)
    assert (short.text, short.left_out, short.digest) == ("x" * 10, 40, long.digest)
    assert short.calls[0].arguments == '{"a": "yy…'
    assert cut_to(long, None) is long
    assert cut_to(long, 0).text == ""
