"""What an installation requires, read from the metadata of an installed package."""

import sys
import tomllib
from importlib import metadata

import pytest

from grupo.util.requirements import EXTRAS, required_packages
from tests.helpers.paths import ROOT

METADATA = """Metadata-Version: 2.4
Name: grupo
Version: 9.0
Requires-Dist: numpy>=1.26
Requires-Dist: typer>=999
Requires-Dist: pickle5>=1; python_version < "3.8"
Provides-Extra: games
Requires-Dist: no-package-of-that-name>=2; extra == "games"
"""


@pytest.fixture
def other_metadata(tmp_path, monkeypatch):
    """The metadata of another version of grupo, found first."""
    folder = tmp_path / "grupo-9.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(METADATA)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


@pytest.mark.usefixtures("other_metadata")
def test_versions_are_compared_with_the_requirements():
    numpy, typer = required_packages()
    assert (numpy.requirement, numpy.is_allowed) == ("numpy>=1.26", True)
    assert numpy.version == metadata.version("numpy")
    assert (typer.requirement, typer.is_allowed) == ("typer>=999", False)


@pytest.mark.usefixtures("other_metadata")
def test_an_extra_has_its_own_requirements_alone():
    (package,) = required_packages("games")
    assert package.requirement == "no-package-of-that-name>=2"
    assert (package.version, package.is_allowed) == ("", False)


def test_every_extra_for_users_has_a_purpose():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"]) - {"dev", "docs"}
