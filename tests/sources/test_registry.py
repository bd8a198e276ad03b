"""Which sources there are: ours, and those of other packages, of which none can break a report."""

import importlib.metadata
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from sessionlog.errors import InvalidQuery
from sessionlog.sources import registry
from sessionlog.sources.names import OURS
from sessionlog.sources.registry import all_sources, choose_sources, load_source
from tests.sources.plugin.scribe import SOURCE
from tests.sources.plugin.scrolls import POINT, installed


def point(name, value, group=registry.GROUP):
    return EntryPoint(name, value, group)


def ids(sources):
    return [source.id for source in sources]


@pytest.mark.parametrize("source_id", OURS)
def test_our_sources_have_the_id_that_they_are_loaded_by(source_id):
    """And a name for people."""
    source = load_source(source_id)
    assert source.id == source_id
    assert source.title


def test_a_source_that_does_not_exist():
    """The message names those that do."""
    with pytest.raises(InvalidQuery, match=r"no source 'quill'; there are native, fizeau, claude-code"):
        load_source("quill")


def test_another_package_adds_its_source():
    """Behind ours; without it there are ours alone."""
    with installed(POINT):
        assert all_sources()[-1] is SOURCE
        assert ids(all_sources())[:-1] == list(OURS)
    with installed():
        assert ids(all_sources()) == list(OURS)
        assert registry.registry().problems == ()


@pytest.mark.parametrize("is_zip", [False, True])
def test_a_package_that_is_installed_adds_its_source(tmp_path, monkeypatch, is_zip):
    """Its entry point is found where packages lie, in a folder or a zip."""
    info = tmp_path / "site" / "quill-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: quill\nVersion: 1.0\n")
    assert list(registry.entry_points(group=registry.GROUP)) == []
    (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\nquill = {POINT.value}\n")
    place = shutil.make_archive(str(tmp_path / "packed"), "zip", info.parent) if is_zip else str(info.parent)
    monkeypatch.setattr(sys, "path", [*sys.path, place])
    [found] = registry.entry_points(group=registry.GROUP)
    assert (found.name, found.value) == ("quill", POINT.value)


def test_every_group_that_is_installed_is_found():
    """The look into the folders misses none."""
    for group in importlib.metadata.entry_points().groups:
        assert set(registry.entry_points(group=group)) == set(importlib.metadata.entry_points(group=group))


def test_other_groups_are_none_of_ours():
    """Only what says that it is a source is one."""
    with installed(point("scribe", POINT.value, "console_scripts")):
        assert ids(all_sources()) == list(OURS)


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        ("no_such_package_at_all:SOURCE", "ModuleNotFoundError: No module named 'no_such_package_at_all'"),
        ("tests.sources.plugin.scribe:NOTHING", "AttributeError: "),
        ("tests.sources.plugin.broken:SOURCE", "RuntimeError: the inkwell is empty"),
        ("tests.sources.plugin.scribe:steps", "a function is no Source"),
        ("sessionlog.sources.native:SOURCE", "there is a source 'native' already"),
    ],
)
def test_a_plug_in_that_cannot_be_used_is_left_out_and_named(value, detail):
    """Those of other packages stay; the finding says which it is, and why."""
    with installed(POINT, point("bad", value)):
        assert ids(all_sources()) == [*OURS, "scribe"]
        [problem] = registry.registry().problems
        assert problem.path == f"plug-in bad ({value})"
        assert problem.detail.startswith(detail)


def test_two_packages_cannot_have_one_id():
    """The first by name stays, on every machine the same."""
    for points in ((POINT, point("zzz", POINT.value)), (point("zzz", POINT.value), POINT)):
        with installed(*points):
            assert ids(all_sources()).count("scribe") == 1
            assert [problem.path for problem in registry.registry().problems] == [f"plug-in zzz ({POINT.value})"]


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (["claude-code"], ["claude-code"]),
        (["CLAUDE*"], ["claude-code"]),
        (["scr?be"], ["scribe"]),
        (["claude*", "scribe"], ["claude-code", "scribe"]),
        (["native"], ["native", "fizeau"]),
        (["fizeau"], ["native", "fizeau"]),
        (["*"], [*OURS, "scribe"]),
        ([], [*OURS, "scribe"]),
    ],
)
def test_sources_are_chosen_by_patterns(patterns, found):
    """In the order of the registry; the two dialects of one format come together."""
    with installed(POINT):
        assert ids(choose_sources(patterns)) == found


def test_a_pattern_that_fits_nothing_is_an_error():
    """Also beside one that fits; those that exist are named."""
    with installed(POINT), pytest.raises(InvalidQuery, match=r"no source 'quil\*'; there are native.*, scribe"):
        choose_sources(["claude-code", "quil*"])


def test_all_sources_are_loaded_without_what_only_some_logs_need():
    """In a fresh interpreter; each of these takes 2 to 15 ms."""
    code = "import sys; from sessionlog.sources.registry import all_sources; all_sources(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    slow = {"importlib.metadata", "hashlib", "tomllib", "urllib.parse", "difflib", "sessionlog.pricing.book"}
    assert slow.isdisjoint(loaded)
