"""Sections of the page on runs of a real model: measurements, and the table of their results."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

Result = Mapping[str, Any]  # JSON data
TABLE = "table"  # key of a result that is a table of its own, in Markdown


class Measurement(Protocol):
    """Commands of grupo, and numbers of what they did."""

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands as a user would type them; RUN is the folder of the run."""
        ...

    def measure(self, folder: Path) -> Result:
        """Execute the commands.

        Args:
            folder: An empty folder for the runs.
        """
        ...


@dataclass(frozen=True)
class Section:
    """A table of measurements.

    Args:
        title: Heading.
        text: What is measured, and what the results say.
        measurements: By the name of a row.
        columns: A cell of a row, from the result of its measurement, by heading; none if the
            results are tables of their own.
    """

    title: str
    text: str
    measurements: Mapping[str, Measurement]
    columns: Mapping[str, Callable[[Result], str]]
