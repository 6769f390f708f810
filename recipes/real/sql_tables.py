"""Tables of real data for questions in SQL: Debian's installed packages and its `iso-codes`."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grupo.util.errors import ConfigError

DPKG_STATUS = Path("/var/lib/dpkg/status")
ISO_CODES = Path("/usr/share/iso-codes/json")
PACKAGE_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
Row = tuple[Any, ...]


@dataclass(frozen=True)
class SourceColumn:
    """A column of a table.

    Args:
        name: Its name in SQL.
        phrase: Its name in a question.
        type: Its type in SQL.
    """

    name: str
    phrase: str
    type: str = "TEXT"


@dataclass(frozen=True)
class SourceTable:
    """A table and the words in which questions are about it.

    Args:
        name: Its name in SQL.
        singular: A row in words.
        plural: Rows in words.
        columns: The columns, of which the first names a row.
        rows: Reads the rows.
    """

    name: str
    singular: str
    plural: str
    columns: tuple[SourceColumn, ...]
    rows: Callable[[], Sequence[Row]]

    @property
    def statement(self) -> str:
        """The statement that creates the table."""
        columns = ", ".join(f"{column.name} {column.type}" for column in self.columns)
        return f"CREATE TABLE {self.name} ({columns})"


def installed_packages() -> Iterator[Mapping[str, str]]:
    """The fields of each paragraph of dpkg's status file, without their further lines."""
    if not DPKG_STATUS.is_file():
        raise ConfigError(f"{DPKG_STATUS} is missing. Run this on Debian or a system based on it.")
    for paragraph in DPKG_STATUS.read_text(encoding="utf-8").split("\n\n"):
        lines = [line.split(": ", 1) for line in paragraph.split("\n") if ": " in line[:40]]
        fields = {name: value for name, value in lines if not name.startswith(" ")}
        if "Installed-Size" in fields:
            yield fields


def iso_entries(standard: str) -> Sequence[Mapping[str, str]]:
    """The entries of a standard, such as "639-3", in the order of the file."""
    path = ISO_CODES / f"iso_{standard}.json"
    if not path.is_file():
        raise ConfigError(f"{path} is missing. Install it: apt-get install iso-codes.")
    return json.loads(path.read_text(encoding="utf-8"))[standard]


def package_rows() -> Sequence[Row]:
    """Name, section, priority and installed size in KiB of each package."""
    return [
        (x["Package"], x.get("Section"), x.get("Priority"), int(x["Installed-Size"]))
        for x in installed_packages()
    ]


def dependency_rows() -> Sequence[Row]:
    """Each pair of a package and a package that it depends on; of alternatives, the first."""
    return sorted(
        {
            (x["Package"], name[0])
            for x in installed_packages()
            for part in x.get("Depends", "").split(",")
            if (name := PACKAGE_NAME.match(part.strip()))
        }
    )


def maintainer_rows() -> Sequence[Row]:
    """Each package and the name of its maintainer."""
    return [
        (x["Package"], x["Maintainer"].partition(" <")[0])
        for x in installed_packages()
        if "Maintainer" in x
    ]


def country_rows() -> Sequence[Row]:
    """Name, codes of two and three letters and number of each country."""
    return [
        (x["name"], x["alpha_2"], x["alpha_3"], int(x["numeric"])) for x in iso_entries("3166-1")
    ]


def region_rows() -> Sequence[Row]:
    """Name, code, type and country of each region."""
    return [
        (x["name"], x["code"], x["type"], x["code"].partition("-")[0])
        for x in iso_entries("3166-2")
    ]


def currency_rows() -> Sequence[Row]:
    """Name, code and number of each currency."""
    return [(x["name"], x["alpha_3"], int(x["numeric"])) for x in iso_entries("4217")]


def script_rows() -> Sequence[Row]:
    """Name, code and number of each script."""
    return [(x["name"], x["alpha_4"], int(x["numeric"])) for x in iso_entries("15924")]


def language_rows() -> Sequence[Row]:
    """Name, code, type and scope of each language that has a code of two letters."""
    return [
        (x["name"], x["alpha_3"], x["alpha_2"], x["type"])
        for x in iso_entries("639-3")
        if "alpha_2" in x
    ]


NUMBER = SourceColumn("number", "number", "INTEGER")
PACKAGE = SourceTable(
    "package",
    "package",
    "packages",
    (
        SourceColumn("name", "name"),
        SourceColumn("section", "section"),
        SourceColumn("priority", "priority"),
        SourceColumn("size", "size", "INTEGER"),
    ),
    package_rows,
)
COUNTRY = SourceTable(
    "country",
    "country",
    "countries",
    (
        SourceColumn("name", "name"),
        SourceColumn("code", "code"),
        SourceColumn("long_code", "long code"),
        NUMBER,
    ),
    country_rows,
)
REGION = SourceTable(
    "region",
    "region",
    "regions",
    (
        SourceColumn("name", "name"),
        SourceColumn("code", "code"),
        SourceColumn("type", "type"),
        SourceColumn("country", "country"),
    ),
    region_rows,
)
CURRENCY = SourceTable(
    "currency",
    "currency",
    "currencies",
    (SourceColumn("name", "name"), SourceColumn("code", "code"), NUMBER),
    currency_rows,
)
SCRIPT = SourceTable(
    "script",
    "script",
    "scripts",
    (SourceColumn("name", "name"), SourceColumn("code", "code"), NUMBER),
    script_rows,
)
LANGUAGE = SourceTable(
    "language",
    "language",
    "languages",
    (
        SourceColumn("name", "name"),
        SourceColumn("code", "code"),
        SourceColumn("short_code", "short code"),
        SourceColumn("type", "type"),
    ),
    language_rows,
)
DEPENDENCY = SourceTable(
    "dependency",
    "dependency",
    "dependencies",
    (SourceColumn("package", "package"), SourceColumn("needs", "needed package")),
    dependency_rows,
)
MAINTAINER = SourceTable(
    "maintainer",
    "maintainer",
    "maintainers",
    (SourceColumn("package", "package"), SourceColumn("name", "name")),
    maintainer_rows,
)
TRAINED = (PACKAGE, COUNTRY, REGION, CURRENCY)
HELD_OUT = (SCRIPT, LANGUAGE)
