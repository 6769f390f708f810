"""The page of the runs of a real model, from their results."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.real_runs.section import TABLE, Result, Section
from benchmarks.real_runs.sections import SECTIONS

INTRODUCTION = """\
<!-- written by `python -m benchmarks.real_runs docs` from real_runs.jsonl -->
# Everything once on a real model
"""


def read_results(file: Path) -> dict[tuple[str, str], Result]:
    """The newest result of each measurement, by section and row; none without the file."""
    if not file.exists():
        return {}
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {(line["section"], line["row"]): line for line in lines}


def page(results: Mapping[tuple[str, str], Result]) -> str:
    """The page in Markdown."""
    sections = "\n".join(_section(name, section, results) for name, section in SECTIONS.items())
    return f"{INTRODUCTION}\n{sections}"


def _section(name: str, section: Section, results: Mapping[tuple[str, str], Result]) -> str:
    return "\n".join(_lines(name, section, results)) + "\n"


def _lines(name: str, section: Section, results: Mapping[tuple[str, str], Result]) -> Iterator[str]:
    yield from (f"## {section.title}", "")
    if section.text:
        yield from (section.text.strip(), "")
    yield "```console"
    for measurement in section.measurements.values():
        yield from (f"$ {command}" for command in measurement.commands)
    yield from ("```", "")
    found = [(row, results.get((name, row))) for row in section.measurements]
    yield from (result[TABLE].strip() for _, result in found if result and TABLE in result)
    if section.columns:
        yield f"| | {' | '.join(section.columns)} |"
        yield f"|---|{'---|' * len(section.columns)}"
        for row, result in found:
            if result:
                yield f"| {row} | {' | '.join(cell(result) for cell in section.columns.values())} |"
