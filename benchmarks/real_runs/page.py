"""The page of the runs of a real model, from their results."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.real_runs.section import TABLE, Result, Section
from benchmarks.real_runs.sections import SECTIONS

INTRODUCTION = """\
<!-- written by `python -m benchmarks.real_runs docs` from real_runs.jsonl -->
# Runs of a real model

Runs of SmolLM2-135M-Instruct, a Llama of 134.5 million parameters: **the published model rounded to
4 bits** ([quickstart](quickstart.md#the-model)), computed with in float32 on 2 cores. The task is
that of the quickstart: sums of two numbers of two digits, 8 prompts with 8 answers of at most 16
tokens a step, 24 steps at a learning rate of 1e-5 unless a command says otherwise. Held-out scores
are of 50 tasks with a greedy and 8 sampled answers each, with 95 % bootstrap intervals over tasks.
**Each row is one run with one seed**: a difference between two rows is no evidence that one way is
better.

`make real-model` fetches the model, and `python -m benchmarks.real_runs FOLDER` repeats this page;
`--only export` repeats a section. `real_runs.jsonl` beside it has the results in full.
"""


def read_results(file: Path) -> dict[tuple[str, str], Result]:
    """The newest result of each measurement, by section and row; none without the file."""
    if not file.exists():
        return {}
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {(line["section"], line["row"]): line for line in lines}


def page(results: Mapping[tuple[str, str], Result]) -> str:
    """The page in Markdown; sections without a result are left out."""
    measured = {name for name, _ in results}
    sections = "\n".join(
        _section(name, section, results) for name, section in SECTIONS.items() if name in measured
    )
    return f"{INTRODUCTION}\n{sections}"


def _section(name: str, section: Section, results: Mapping[tuple[str, str], Result]) -> str:
    return "\n".join(_lines(name, section, results)) + "\n"


def _lines(name: str, section: Section, results: Mapping[tuple[str, str], Result]) -> Iterator[str]:
    yield from (f"## {section.title}", "")
    if section.text:
        yield from (section.text.strip(), "")
    yield "```console"
    found = {row: results[name, row] for row in section.measurements if (name, row) in results}
    for result in found.values():
        yield from (f"$ {command}" for command in result["commands"])
    yield from ("```", "")
    yield from (result[TABLE].strip() for result in found.values() if TABLE in result)
    if section.columns:
        yield f"| | {' | '.join(section.columns)} |"
        yield f"|---|{'---|' * len(section.columns)}"
        for row, result in found.items():
            yield f"| {row} | {' | '.join(cell(result) for cell in section.columns.values())} |"
