"""What is shipped: the version, the typing marker, the data, the licences, and no dependency that was not decided on."""

import importlib.metadata
import importlib.resources
import re
import tomllib
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path

import pytest

import sessionlog
from sessionlog._version import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
CORE = {"typer", "msgspec", "orjson", "rich", "python-dateutil", "backports-zstd", "tzdata"}
SHIPPED = ("py.typed", "data/prices.json.gz", "data/seed_prices.json", "data/NOTICE")


def name_of(requirement):
    """The distribution that a requirement names; dots and dashes are the same to an installer."""
    return re.match(r"[A-Za-z0-9._-]+", requirement)[0].replace(".", "-").lower()


def test_the_version_is_the_one_of_the_distribution():
    """A constant, because reading metadata is slow; it must not drift."""
    assert sessionlog.__version__ == __version__ == importlib.metadata.version("sessionlog")
    assert re.fullmatch(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?", __version__)
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "sessionlog/_version.py"


def test_core_dependencies_are_decided():
    """Anything else is an extra; zstd is in the standard library of 3.14."""
    requirements = PROJECT["project"]["dependencies"]
    assert {name_of(requirement) for requirement in requirements} == CORE
    assert all(">=" in requirement and "==" not in requirement for requirement in requirements)
    [zstd] = [requirement for requirement in requirements if name_of(requirement) == "backports-zstd"]
    assert zstd.endswith("; python_version < '3.14'")


def test_the_installed_distribution_asks_for_the_same():
    """Extras apart."""
    required = [one for one in importlib.metadata.requires("sessionlog") if "extra ==" not in one]
    assert {name_of(one) for one in required} == CORE


@pytest.mark.parametrize("name", SHIPPED)
def test_data_is_in_the_package(name):
    """Inside the one folder that the wheel takes, and not ignored by what the build leaves out."""
    assert PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["sessionlog"]}
    assert importlib.resources.files("sessionlog").joinpath(name).is_file()
    ignored = [line.strip() for line in (ROOT / ".gitignore").read_text("utf-8").splitlines() if line.strip()]
    path = f"sessionlog/{name}"
    for pattern in ignored:
        folder = pattern.strip("/")
        assert not fnmatch(path, folder)
        assert not any(fnmatch(part, folder) for part in path.split("/"))


def test_licences_travel_along():
    """Ours, and the notice for the price list."""
    named = PROJECT["project"]["license-files"]
    assert {"LICENSE", "sessionlog/data/NOTICE"} == set(named)
    assert all((ROOT / name).read_text("utf-8").strip() for name in named)
    assert "MIT" in (ROOT / "LICENSE").read_text("utf-8")
    assert "genai-prices" in (ROOT / "sessionlog/data/NOTICE").read_text("utf-8")


def test_the_source_distribution_is_complete():
    """Everything that it names is there, and the README is what the index shows."""
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert [name for name in included if not (ROOT / name).exists()] == []
    assert PROJECT["project"]["readme"] == "README.md"


def test_the_script_is_the_command_line():
    """One script, and it is there."""
    [(name, target)] = PROJECT["project"]["scripts"].items()
    module, function = target.split(":")
    assert name == "sessionlog"
    assert callable(getattr(import_module(module), function))


def test_the_price_list_is_generated_from_what_the_tests_have():
    """The test extra brings the package that the snapshot is compared with."""
    extras = PROJECT["project"]["optional-dependencies"]
    assert "genai-prices" in {name_of(requirement) for requirement in extras["test"]}
    assert set(extras) == {
        "test",
        "tokens",
        "json",
        "lint",
        "mcp",
        "otel",
        "parquet",
        "remote",
        "spark",
        "tui",
        "bench",
        "fuzz",
    }


def test_the_oldest_python_is_the_one_of_the_tools():
    """Lint and types look at the oldest Python that is promised."""
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert PROJECT["tool"]["mypy"]["python_version"] == oldest
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    assert f"Programming Language :: Python :: {oldest}" in PROJECT["project"]["classifiers"]
