"""`sessionlog run`: its errors, and the line that it ends with."""

import pytest

from sessionlog.cli.run import _sums
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.proxy.run import Run


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ([], 2, "there is no command to run. Example: sessionlog run -- claude"),
        (["--"], 2, "there is no command to run"),
        (["--upstream", "anthropic", "true"], 2, "--upstream 'anthropic': give NAME=URL"),
        (["--upstream", "nowhere=https://x", "true"], 2, "true has no route 'nowhere'; it has: "),
        (["--upstream", "anthropic=x", "true"], 2, "'x' is no URL of a server"),
        (["--nope", "true"], 2, "No such option"),
        (["no-such-command", "--nope"], 127, "no-such-command: command not found"),
    ],
    ids=str,
)
def test_what_cannot_be_run(cli, words, code, text):
    """A sentence with the next step, and no log."""
    ran = cli("run", *words)
    assert (ran.code, ran.out) == (code, "")
    assert text in ran.err


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "no requests to models"), (1, "1 request, 1,100 tokens, ~$0.0045"), (2, "2 requests, 2,200 tokens, ~$0.009")],
)
def test_the_sums_of_a_run(tmp_path, count, text):
    """Requests, tokens, and the cost by list price."""
    with SessionLogger(tmp_path / "logs", "s") as log:
        for _ in range(count):
            log.llm_response("x", model="claude-sonnet-4-5", provider="anthropic", usage={"input": 1000, "output": 100})
    ended = Run(exit_code=0, session_id="s", path=log.path, requests=count, refused=0, health=log.health(), notices=())
    assert _sums(ended) == text
