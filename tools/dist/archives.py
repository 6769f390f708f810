"""The sdist and the wheel: how they are built, and what they contain."""

import csv
import re
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

from programs import ROOT, new_environment, run

DIST = ROOT / "dist"
RECORD = "from importlib.metadata import distribution as d; print(d('grupo').read_text('RECORD'))"


def build(python: str, folder: Path) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from it; both pass `twine check`."""
    programs = new_environment(python, folder / "build", "build", "twine")
    for old in DIST.glob("grupo-*"):
        old.unlink()
    run(programs / "python", "-m", "build", "--outdir", DIST)
    (sdist,), (wheel,) = DIST.glob("grupo-*.tar.gz"), DIST.glob("grupo-*.whl")
    run(programs / "twine", "check", "--strict", sdist, wheel)
    return sdist, wheel


def wrong_contents(wheel: Path) -> list[str]:
    """The files that the wheel lacks, and those that it should not have."""
    tracked = run("git", "ls-files", "grupo", "recipes").splitlines()
    expected = {re.sub("^recipes/", "grupo/recipes/", name) for name in tracked}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    return [
        *(f"missing: {x}" for x in sorted(expected - names)),
        *(f"extra: {x}" for x in sorted(names - expected)),
    ]


def wheel_files(wheel: Path) -> dict[str, str]:
    """The checksum of each file of the package in a wheel, by name."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (x for x in archive.namelist() if x.endswith(".dist-info/RECORD"))
        return _files(archive.read(name).decode().splitlines())


def installed_files(programs: Path) -> dict[str, str]:
    """The checksum of each file of the package that is installed, by name."""
    return _files(run(programs / "python", "-c", RECORD, folder=programs).splitlines())


def lowest_versions() -> tuple[str, ...]:
    """The lowest allowed version of every package that grupo requires."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return tuple(requirement.replace(">=", "==") for requirement in project["dependencies"])


def _files(record: Iterable[str]) -> dict[str, str]:
    """The checksums of a RECORD: without metadata, programs and compiled files."""
    rows = ((row[0], row[1]) for row in csv.reader(record) if row)
    return {name: checksum for name, checksum in rows if re.match(r"grupo/.*(?<!\.pyc)$", name)}
