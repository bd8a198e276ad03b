"""From a name to an agent: what is found, and what is said where it is not."""

import os
import sys

import pytest

from sessionlog.cli.output import Exit
from sessionlog.cli.repl.loading import absolute, load_agent, on_path
from sessionlog.conversation.agent import Agent

CODE = """
from sessionlog.conversation import Agent

def helper(messages):
    return "hello"

class Desk:
    clerk = staticmethod(lambda messages: "hm")

agent = Agent(helper, system="Be brief.", model="m-1")
number = 7
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module into the current folder; it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    names = []

    def write(name, code=CODE):
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(code, "utf-8")
        names.append(name.rpartition("/")[2])
        return path

    yield write
    for name in names:
        sys.modules.pop(name, None)
        sys.modules.pop(f"sessionlog_chat_{name}", None)


def load(name, **options):
    """Load as a chat does."""
    with on_path(name):
        return load_agent(name, **options)


def refusal(name, capsys, **options):
    """What is said of a name that cannot be loaded."""
    with pytest.raises(Exit) as caught:
        load(name, **options)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize("spelling", ["desk_a:agent", "./desk_a.py:agent", "{}/desk_a.py:agent"])
def test_an_agent_is_loaded_as_it_is(module, tmp_path, spelling):
    """By its module or its file."""
    module("desk_a")
    agent = load(spelling.format(tmp_path))
    assert (agent.system, agent.model) == ("Be brief.", "m-1")


def test_a_function_becomes_an_agent(module):
    """With the model that was named, and also where it stands in something else."""
    module("desk_b")
    agent = load("desk_b:helper", model="m-2")
    assert isinstance(agent, Agent)
    assert (agent.name, agent.model) == ("helper", "m-2")
    assert load("desk_b:Desk.clerk").name == "Desk.clerk"


def test_the_folder_is_on_the_path_while_the_chat_lasts(module, tmp_path):
    """An agent may import its neighbours, also late; afterwards the path is what it was."""
    module("neighbour_c", "WORD = 'late'")
    path = module("room/desk_c", "def agent(messages):\n    import neighbour_d\n    return neighbour_d.WORD\n")
    (path.parent / "neighbour_d.py").write_text("WORD = 'late'", "utf-8")
    before = list(sys.path)
    with on_path("room/desk_c.py:agent"):
        load_agent("room/desk_c.py:agent")
        __import__("neighbour_d")
    assert sys.path == before
    sys.modules.pop("neighbour_d")


def test_a_file_does_not_take_the_place_of_a_module(module):
    """`json.py` in a folder is an agent, and json stays json."""
    module("json")
    known = sys.modules["json"]
    assert load("./json.py:agent").model == "m-1"
    assert sys.modules["json"] is known
    sys.modules["json"] = known


@pytest.fixture(autouse=True)
def same_json():
    """The module of this name outlives these tests."""
    known = sys.modules["json"]
    yield
    sys.modules["json"] = known


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("desk", ["'desk'", "module:agent", "path/to/file.py:agent"]),
        ("desk:", ["'desk:'", "module:agent"]),
        (":agent", ["':agent'", "module:agent"]),
        ("no_such_module:agent", ["no module 'no_such_module'", "module:agent"]),
        ("no_such.module:agent", ["no module 'no_such'"]),
        ("./no_such_file.py:agent", ["./no_such_file.py: no such file"]),
    ],
)
def test_what_is_not_there_is_named(module, tmp_path, capsys, name, says):
    """Once, with the next step."""
    err = refusal(name, capsys)
    assert err.count("sessionlog: ") == 1
    assert [word for word in says if word not in err] == []


def test_a_name_that_the_module_has_not(module, capsys):
    """The nearest one is named, else those that there are."""
    module("desk_d")
    assert "desk_d has no 'agnet'; did you mean 'agent'?" in refusal("desk_d:agnet", capsys)
    err = refusal("desk_d:zzz", capsys)
    assert "it has helper, agent, number" in err


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import no_such_thing", "needs 'no_such_thing', which is not installed here"),
        ("x = 1\nx.y\n", "AttributeError: 'int' object has no attribute 'y'"),
        ("def f(:\n", "SyntaxError"),
        ("raise SystemExit(3)", "ended the program while it was imported (exit 3)"),
        ("class Odd(BaseException): ...\nraise Odd('why')", "Odd: why"),
    ],
)
@pytest.mark.parametrize("spelling", ["desk_e:agent", "./desk_e.py:agent"])
def test_a_module_that_cannot_be_imported(module, capsys, code, says, spelling):
    """The user's own mistake is told with its place, and without a traceback."""
    module("desk_e", code)
    err = refusal(spelling, capsys)
    assert says in err
    assert "SystemExit" in code or "desk_e.py:" in err
    assert "import no" in code or "SystemExit" in code or "` shows the traceback" in err
    assert "desk_e" not in sys.modules


def test_something_that_does_not_answer(module, capsys):
    """It is said what does."""
    module("desk_f")
    assert "int is no agent; an agent is a function" in refusal("desk_f:number", capsys)


def test_a_model_for_an_agent_that_has_one(module, capsys):
    """It is refused: nothing would come of it."""
    module("desk_g")
    assert "which has its own" in refusal("desk_g:agent", capsys, model="m-2")


def test_a_client_needs_a_model(module, capsys):
    """And the option is named."""
    module("openai_like", "class Client: ...\nClient.__module__ = 'openai.client'\nclient = Client()\n")
    assert "--model NAME" in refusal("openai_like:client", capsys)


def test_control_characters_of_a_mistake_are_escaped(module, capsys):
    """An error's text is somebody's."""
    module("desk_h", "raise ValueError('\\x1b[2J')")
    assert r"\x1b[2J" in refusal("desk_h:agent", capsys)


def test_a_file_is_remembered_wherever_one_is(module, tmp_path):
    """A module is found by its name."""
    assert absolute("./desk.py:agent") == f"{os.path.realpath(tmp_path)}/desk.py:agent"
    assert absolute("desk:agent") == "desk:agent"
