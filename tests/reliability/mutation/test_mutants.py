"""The mutation run's own tools: what is changed, what is left alone, and that a change takes effect while it runs."""

import ast
import gc
import importlib.util
import sys

import pytest

from tests.reliability.mutation.covering import Covered, LineTracer, choose_tests, load, save
from tests.reliability.mutation.mutants import find_mutants
from tests.reliability.mutation.run import choose_mutants, modules
from tests.reliability.mutation.worker import _codes, replace_functions

SOURCE = b'''"""A module."""

from __future__ import annotations

LIMIT = 8 << 20
__all__ = ["f"]


class Box:
    """A class."""

    __slots__ = ("items",)

    def __init__(self, items: list[int | None] = None, *, whole: bool = False) -> None:
        self.items = items or []
        assert len(self.items) >= 0
        self.items.append(
            1,
        )

    @property
    def size(self) -> int:
        return len(self.items) if not self.items[0] > 3 else -1


def f(value):
    if value is None and LIMIT:
        raise ValueError(f"{value + 1}")
    for n in range(3):
        if n == value:
            continue
    return f"{value}" + "x"
'''


def test_each_change_is_one_piece_of_valid_code():
    """It compiles, is another program, and every line keeps its number."""
    mutants = find_mutants("m.py", SOURCE)
    whole = ast.dump(ast.parse(SOURCE))
    for mutant in mutants:
        changed = mutant.apply(SOURCE)
        assert ast.dump(ast.parse(changed)) != whole, str(mutant)
        assert changed.count(b"\n") == SOURCE.count(b"\n"), str(mutant)
        assert mutant.lines[0] <= mutant.line <= mutant.lines[1] or not mutant.in_body
    assert len({mutant.key for mutant in mutants}) == len(mutants)


def test_every_kind_of_change_is_found():
    """And texts, hints, decorators, assertions and `__slots__` are left alone."""
    found = {(mutant.operator, mutant.old.split()[0] if mutant.old else b"") for mutant in find_mutants("m.py", SOURCE)}
    assert found == {
        ("constant", b"8"), ("constant", b"20"), ("arithmetic", b"<<"), ("constant", b"False"), ("and/or", b"or"),
        ("assignment removed", b"self.items"), ("statement removed", b"self.items.append("), ("constant", b"1"),
        ("returns None", b"return"), ("condition negated", b"not"), ("not removed", b"not"), ("comparison", b">"),
        ("constant", b"3"), ("constant", b"0"), ("condition negated", b"value"), ("comparison", b"is"),
        ("and/or", b"and"), ("raise removed", b"raise"), ("comparison", b"=="), ("statement removed", b"continue"),
    }  # fmt: skip


def test_the_choice_is_stable():
    """A change of one function leaves what was chosen elsewhere as it was."""
    before = {(mutant.function, mutant.key) for mutant in find_mutants("m.py", SOURCE)}
    after = {(mutant.function, mutant.key) for mutant in find_mutants("m.py", SOURCE.replace(b"range(3)", b"range(4)"))}
    assert {one for one in before ^ after if one[0] != "f"} == set()
    assert len(before & after) == len(before) - 2


@pytest.fixture
def module(tmp_path):
    """The module, loaded from a file; and the file."""
    path = tmp_path / "mutated_module.py"
    path.write_bytes(SOURCE)
    spec = importlib.util.spec_from_file_location("mutated_module", path)
    made = importlib.util.module_from_spec(spec)
    sys.modules["mutated_module"] = made
    spec.loader.exec_module(made)
    yield made, path
    del sys.modules["mutated_module"]


def test_a_loaded_function_is_replaced(module):
    """Methods and properties, too; objects that exist already behave as the mutant does."""
    gc.freeze()  # as our conftest does once tests are collected
    made, path = module
    box = made.Box([1])
    assert (box.size, made.f(5)) == (2, "5x")
    mutant = next(one for one in find_mutants("m.py", SOURCE) if one.operator == "not removed")
    replace_functions(str(path), _codes(mutant.apply(SOURCE), str(path)))
    assert box.size == -1
    assert made.f(5) == "5x"


def test_tests_are_chosen_by_the_lines_they_run(module, tmp_path):
    """The quickest first, none that fails anyway, and not more than there is time for."""
    made, path = module
    tracer = LineTracer(tmp_path, [path.name])
    with tracer.tracing() as lines:
        made.f(5)
    reached = SOURCE[: SOURCE.index(b"    for n")].count(b"\n") + 1
    assert reached in lines[path.name]
    assert SOURCE[: SOURCE.index(b"        raise")].count(b"\n") + 1 not in lines[path.name]
    found = {path.name: frozenset(lines[path.name])}
    tests = [
        Covered("slow", 5.0, True, found), Covered("quick", 0.1, True, found), Covered("broken", 0.1, False, found),
        Covered("elsewhere", 0.1, True, {}), Covered("too slow", 50.0, True, found),
    ]  # fmt: skip
    save(tmp_path / "tests.json", tests)
    chosen = choose_tests(load(tmp_path / "tests.json"), path.name, range(reached, reached + 1), limit_seconds=10.0)
    assert [test.test for test in chosen] == ["quick", "slow"]


def test_all_modules_can_be_mutated(pytestconfig):
    """400 mutants of a seed are the same mutants each time."""
    root = pytestconfig.rootpath
    assert len(modules(root)) > 20
    assert choose_mutants(root, count=400, seed=13) == choose_mutants(root, count=400, seed=13)
