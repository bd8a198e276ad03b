"""Budgets that agents ask: what is known decides, what is reserved counts, and what is too much is no."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.analytics.budgets.budget import Budget
from sessionlog.errors import InvalidQuery, InvalidSettings
from tests.analytics.budgets.budget_world import CONFIG, World
from tests.ledger.entries import SECOND
from tests.profiles import examples

# --- what is left


def test_what_is_left(world):
    """Neither used nor reserved."""
    world.answer(tokens=2)
    budget = world.budget(usd=5)
    assert (budget.remaining().amount, budget.remaining().unit) == (3.0, "usd")
    assert budget.allows(1.5)
    assert budget.remaining().amount == 1.5
    world.answer(tokens=9)
    assert (budget.remaining().amount, budget.remaining().reason) == (0, "")


@pytest.mark.parametrize(("unit", "left"), [("tokens", 93), ("requests", 99)])
def test_other_units(world, unit, left):
    """Tokens of all classes, and requests."""
    world.answer(tokens=3, cache_read=4)
    assert world.budget(**{unit: 100}).remaining().amount == left


def test_what_fits_is_allowed_and_reserved(world):
    """To the last nanodollar, and not one more; the reason says what there is."""
    budget = world.budget(usd=5)
    assert budget.allows(4.999999999)
    no = budget.allows(0.000000002)
    assert (bool(no), no.reservation) == (False, None)
    assert no.reason == ("$0.00 used and $4.999999999 reserved of $5.00 per 5h; $0.000000002 more would be too much")
    assert budget.allows(0.000000001)
    assert not budget.allows(0)
    assert budget.allows(0).reason == "$0.00 used and $5.00 reserved of $5.00 per 5h"


def test_nothing_asks_whether_there_is_anything(world):
    """And reserves nothing."""
    budget = world.budget(requests=1)
    assert [budget.allows(0).reservation for _ in range(3)] == [None] * 3
    assert budget.allows(0)
    assert budget.remaining().amount == 1


def test_a_stop_level_is_the_end(world):
    """90 percent of ten are nine."""
    budget = world.budget(requests=10, stop=90)
    assert budget.remaining().amount == 9
    assert budget.allows(9)
    assert not budget.allows(1)


@pytest.mark.parametrize("cost", [-1, float("nan"), float("inf"), True, "1", None])
def test_what_is_no_cost(world, cost):
    """Is a mistake of who asks."""
    with pytest.raises(InvalidQuery, match="a cost is a number of usd, 0 or more"):
        world.budget(usd=1).allows(cost)


def test_a_cost_beyond_all_numbers(world):
    """Is too much, not a mistake."""
    assert not world.budget(usd=1).allows(1e300)


def test_a_budget_has_a_scope(world):
    """What is not of it is nobody's business."""
    world.answer("s", model="m", tokens=3)
    world.answer("t", model="other", tokens=5)
    assert world.budget(tokens=100, model="o*").remaining().amount == 95
    assert world.budget(tokens=100, provider=("nobody",)).remaining().amount == 100


def test_a_session_has_its_own(world):
    """Its use, and what it has reserved."""
    world.answer("s", tokens=3)
    world.answer("t", tokens=5)
    s, t = (world.budget(tokens=10, per="session", session_id=name) for name in "st")
    assert (s.remaining().amount, t.remaining().amount) == (7, 5)
    assert s.allows(6)
    assert (s.remaining().amount, t.remaining().amount) == (1, 5)


def test_use_in_the_future_counts(world):
    """A clock that was set back makes no room."""
    world.answer(at_ns=world.wall_ns + 10**6 * SECOND)
    assert world.budget(requests=1).remaining().amount == 0


# --- how it is described


def test_a_budget_of_the_settings(world):
    """By its name, with the limits that are written there."""
    world.configure(f'{CONFIG}[budgets.daily]\nusd = 5\nperiod = "day"\n')
    budget = Budget.named("daily", env=world.env, clock=world.clock)
    assert budget.allows(5)
    assert budget.allows(1).reason.startswith("budget 'daily': $0.00 used and $5.00 reserved of $5.00 per day")
    with pytest.raises(InvalidSettings, match=r"there is no budget 'weekly' in .*config\.toml; there are daily"):
        Budget.named("weekly", env=world.env)


def test_no_budget_in_the_settings(world):
    """Then the first one is shown."""
    with pytest.raises(InvalidSettings, match=r"write one:\n\[budgets.daily\]"):
        Budget.named("daily", env=world.env)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"usd": 1, "tokens": 1}, "exactly one of usd, tokens, requests"),
        ({"usd": 1, "per": "session"}, r'Budget\(per="session"\) needs session_id=…'),
        ({"usd": 1, "on_unknown": "maybe"}, "on_unknown must be 'deny' or 'allow'"),
        ({"usd": 1, "window": "5 hours"}, "window must be"),
    ],
)
def test_what_is_refused(world, options, words):
    """By the words of the settings."""
    with pytest.raises(InvalidSettings, match=words):
        world.budget(**options)


def test_budgets_that_limit_the_same_share_reservations(world):
    """Whoever has described them, and however large they are."""
    world.configure(f'{CONFIG}[budgets.mine]\nusd = 7\nwindow = "300min"\n')
    assert world.budget(usd=5).allows(4)
    assert Budget.named("mine", env=world.env, clock=world.clock).remaining().amount == 3
    assert world.budget(usd=5, model="*").remaining().amount == 5


# --- how a reservation ends


def test_a_small_answer_frees_no_large_call(world):
    """Of two calls that run at once nobody says which was answered: the smaller reservation ends."""
    budget = world.budget(usd=6, session_id="s")
    assert budget.allows(4)
    assert budget.allows(1)
    world.wait(1)
    world.answer("s", tokens=1)
    assert budget.remaining().amount == 1
    assert not budget.allows(4)
    world.wait(1)
    world.answer("s", tokens=4)
    assert budget.remaining().amount == 1


def test_a_response_ends_one_reservation(world):
    """Of its session, the smallest; what it used counts instead."""
    budget, other = (world.budget(tokens=100, session_id=name) for name in "st")
    assert budget.allows(10)
    assert other.allows(20)
    world.wait(1)
    assert budget.allows(40)
    assert budget.remaining().amount == 30
    world.wait(1)
    world.answer("s", tokens=3)
    assert budget.remaining().amount == 100 - 3 - 20 - 40
    budget.allows(1).release()  # what has ended is written out, and ends nothing else
    assert budget.remaining().amount == 100 - 3 - 20 - 40
    world.wait(1)
    world.answer("s", tokens=4)
    assert budget.remaining().amount == 100 - 7 - 20


def test_a_response_of_before_ends_nothing(world):
    """Neither one that was known, nor one that is read late, nor one that claims to be of the future."""
    world.answer("s", tokens=1, at_ns=world.wall_ns + 60 * SECOND)
    budget = world.budget(tokens=100, session_id="s")
    assert budget.allows(10)
    world.answer("s", tokens=1, at_ns=world.wall_ns - 60 * SECOND)
    world.answer("s", tokens=1, at_ns=world.wall_ns + 30 * SECOND)
    assert budget.remaining().amount == 100 - 10 - 3


def test_a_response_outside_the_scope_ends_nothing(world):
    """It is not what was asked for."""
    budget = world.budget(tokens=100, session_id="s", model="m")
    assert budget.allows(10)
    world.wait(1)
    world.answer("s", model="other")
    assert budget.remaining().amount == 90


def test_a_reservation_is_released(world):
    """Once, and by the answer that holds it; a no holds nothing."""
    budget = world.budget(tokens=10)
    first, second = budget.allows(4), budget.allows(5)
    first.release()
    first.release()
    assert budget.remaining().amount == 5
    second.release()
    budget.allows(11).release()
    assert budget.remaining().amount == 10


def test_a_reservation_lasts_ten_minutes(world):
    """By the boot's clock; the one on the wall, which people set, does not matter."""
    budget = world.budget(tokens=10)
    assert budget.allows(10)
    world.wait(599)
    world.wall_ns -= 40 * SECOND
    assert not budget.allows(1)
    world.wait(1)
    assert budget.allows(10)


def test_a_reboot_ends_reservations_by_the_wall(world):
    """The boot's clock knows nothing of other boots."""
    budget = world.budget(tokens=10)
    assert budget.allows(10)
    world.wait(30)
    world.boot, world.boot_ns = "second-boot", 5 * SECOND
    assert not budget.allows(1)
    world.wait(570)
    assert budget.allows(10)


_STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "answer", "give back"]), st.sampled_from("st"), st.integers(1, 4)), max_size=14
)


@given(steps=_STEPS)
@examples(25)
def test_agents_that_keep_to_what_they_asked_for_never_spend_more(tmp_path_factory, steps):
    """Whoever asks, answers and gives back, in whatever order: what is used never exceeds the budget."""
    world = World(tmp_path_factory.mktemp("world"))
    budgets = {name: world.budget(tokens=8, session_id=name) for name in "st"}
    held = {"s": [], "t": []}
    used = 0
    for step, name, tokens in steps:
        world.wait(1)
        reserved = sum(cost for those in held.values() for _, cost in those)
        if step == "ask":
            answer = budgets[name].allows(tokens)
            assert not answer or used + reserved + tokens <= 8
            held[name] += [(answer, tokens)] if answer else []
        elif held[name] and step == "answer":
            _, cost = held[name].pop(0)
            world.answer(name, tokens=min(tokens, cost))
            used += min(tokens, cost)
        elif held[name]:
            held[name].pop()[0].release()
        assert used <= 8
    left = budgets["s"].remaining().amount
    assert left <= 8 - used - sum(cost for those in held.values() for _, cost in those)
    for budget in budgets.values():
        budget.close()
