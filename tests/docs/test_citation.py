"""CITATION.cff, the README's entry and the badges have the values of pyproject.toml."""

import re
import tomllib
from xml.etree import ElementTree

import pytest
import yaml

from tests.helpers.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
README = (ROOT / "README.md").read_text()
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
FIELD = re.compile(r"^  (\w+) = \{(.*?)\},?$", re.MULTILINE)


def test_the_citation_file_has_every_required_field():
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION["message"]
    assert CITATION["type"] == "software"
    assert CITATION["title"] == PROJECT["name"]
    assert CITATION["authors"] == [{"name": "The grupo developers"}]


def test_version_and_licence_are_those_of_the_package():
    assert CITATION["version"] == PROJECT["version"]
    assert CITATION["license"] == PROJECT["license"]
    name, version = PROJECT["license"].split("-")
    head = (ROOT / "LICENSE").read_text().split("http")[0]
    assert f"{name} License Version {version}" in " ".join(head.split())


def test_the_entry_of_the_readme_has_the_same_data():
    (entry,) = re.findall(r"^@software\{grupo,\n.*?^\}$", README, re.DOTALL | re.MULTILINE)
    fields = dict(FIELD.findall(entry))
    assert re.fullmatch(r"20\d\d", fields.pop("year"))
    assert fields == {
        "title": CITATION["title"],
        "author": "{The grupo developers}",
        "version": CITATION["version"],
        "license": CITATION["license"],
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("python", PROJECT["requires-python"].replace(">=", "≥ ")),
        ("licence", PROJECT["license"]),
    ],
)
def test_the_badges_are_files_of_the_repository_with_these_values(name, text):
    path = f"docs/badges/{name}.svg"
    assert f"]({path})" in README
    assert text in [*ElementTree.parse(ROOT / path).getroot().itertext()]
