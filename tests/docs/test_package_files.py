"""CHANGELOG.md, the page of extras, and what pyproject.toml puts into the archives."""

import re
import sys
import tomllib
import zipfile
from typing import Any

from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
INSTALLATION: Any = load_module_file(ROOT / "tools" / "installation.py")
sys.path.append(str(ROOT / "tools" / "dist"))  # its modules import one another
DIST: Any = load_module_file(ROOT / "tools" / "dist" / "archives.py")


def test_the_first_entry_of_the_changes_is_this_version():
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == PYPROJECT["project"]["version"]


def test_the_table_of_extras_is_up_to_date():
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    assert INSTALLATION.updated(page) == page


def test_every_package_has_a_lowest_version_and_no_highest():
    for requirement in PYPROJECT["project"]["dependencies"]:
        assert re.fullmatch(r"[\w-]+>=[\d.]+", requirement), requirement
    assert all("==" in requirement for requirement in DIST.lowest_versions())


def test_a_wheel_with_wrong_contents_is_found(tmp_path):
    wheel = tmp_path / "grupo-1-py3-none-any.whl"
    names = (ROOT / "grupo").rglob("*.py")
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in names:
            archive.writestr(path.relative_to(ROOT).as_posix(), "")
        archive.writestr("tests/test_this.py", "")
        archive.writestr("grupo-1.dist-info/METADATA", "")
    wrong = DIST.wrong_contents(wheel)
    assert "extra: tests/test_this.py" in wrong
    assert "missing: grupo/recipes/sums/dapo.py" in wrong
    assert "missing: grupo/report/html/static/page.css" in wrong
    assert not any("METADATA" in line for line in wrong)
