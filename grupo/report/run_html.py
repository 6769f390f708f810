"""The folder of a run as HTML, for notebooks."""

import base64
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from grupo.core.pictures import open_picture
from grupo.report.doctor import examine
from grupo.report.html.recipe_source import as_code
from grupo.report.read_run import explain_read_errors, read_metrics, read_summary
from grupo.report.rollouts import RolloutFilter, chat_text, select_rollouts
from grupo.report.step_line import format_count, format_duration, step_summary
from grupo.report.tables import eval_rows
from grupo.storage import strict_json
from grupo.storage.media_files import data_url, references_in
from grupo.util import html
from grupo.util.boxes import find_boxes
from grupo.util.json_text import read_limited
from grupo.util.run_files import RECIPE_JSON

SHOWN_ROLLOUTS = 3  # with the highest reward, and as many with the lowest
MAX_BOXES = 50  # drawn on one picture
SHOWN_FIELDS = ("policy", "tasks", "env", "method")


def run_html(folder: Path) -> str:
    """Status, held-out scores, rewards, findings, and some rollouts of a run.

    Raises:
        ConfigError: A file of the run cannot be read.
    """
    with explain_read_errors(folder):
        return _run_html(folder)


def _run_html(folder: Path) -> str:
    metrics = read_metrics(folder)
    summary = read_summary(folder)
    recipe = strict_json.from_json(read_limited(folder / RECIPE_JSON))["recipe"]
    rewards = [step.get("reward/mean", math.nan) for step in metrics]
    return html.fragment(
        html.paragraph(f"<b>{html.escape(folder)}</b>: {html.escape(_status(summary, metrics))}"),
        _held_out(summary.get("held_out", {})),
        html.curve(rewards, "mean reward of each step"),
        html.paragraph(html.escape(" | ".join(step_summary(metrics[-1])))) if metrics else "",
        *_findings(folder),
        _rollouts(folder, len(metrics)) if metrics else "",
        html.details("recipe", html.table(("field", "value"), _fields(recipe))),
    )


def _status(summary: Mapping[str, Any], metrics: tuple[Mapping[str, float], ...]) -> str:
    if not summary:
        return f"not finished, {format_count(len(metrics), 'step')}"
    return (
        f"finished, {format_count(summary['steps'], 'step')} in"
        f" {format_duration(summary['seconds'])},"
        f" {format_count(summary['tokens'], 'token')} generated; model {summary['model']}"
    )


def _held_out(scores: Mapping[str, Any]) -> str:
    if not scores:
        return ""
    header, *rows = ([*map(html.escape, row)] for row in eval_rows(scores))
    return html.table(header, rows, "held-out tasks solved (95 % intervals)")


def _findings(folder: Path) -> Iterator[str]:
    """The errors and warnings of the doctor."""
    for finding in examine(folder):
        if finding.severity != "note":
            text = f"{finding.severity}: {finding.name}. {finding.details}"
            yield html.paragraph(html.escape(text))


def _rollouts(folder: Path, step: int) -> str:
    """The rollouts of the last step with the highest and the lowest rewards."""
    last = RolloutFilter(step)
    best = select_rollouts(folder, last, best=SHOWN_ROLLOUTS)
    worst = select_rollouts(folder, last, worst=SHOWN_ROLLOUTS)
    records = {json.dumps(record, default=str): record for record in (*best, *worst)}.values()
    rows = [
        (html.escape(_reward(record)), _prompt(record, folder), _answer(record, folder))
        for record in records
    ]
    table = html.table(("reward", "prompt", "answer"), rows)
    return html.details(f"rollouts of step {step}: highest and lowest rewards", table)


def _reward(record: Mapping[str, Any]) -> str:
    reward = record["reward"]
    return f"{reward:.3g}" if isinstance(reward, int | float) else "not scored"


def _prompt(record: Mapping[str, Any], folder: Path) -> str:
    """The prompt with its images, videos and audio."""
    shown = [
        html.media(reference["kind"], url)
        for reference in references_in(record["prompt"])
        if (url := data_url(folder, reference["digest"]))
    ]
    return "".join([html.code(chat_text(record["prompt"])), *shown])


def _answer(record: Mapping[str, Any], folder: Path) -> str:
    """The answer, and its boxes on the first picture of the prompt."""
    text = html.code(record["text"])
    boxes = find_boxes(record["text"])
    pictures = (x for x in references_in(record["prompt"]) if x["kind"] == "image")
    first = next(pictures, None)
    url = data_url(folder, first["digest"]) if first and boxes else ""
    if not url:
        return text
    truth = find_boxes(str(record.get("reference_answer", "")))
    return text + html.boxed_image(url, _size(url), boxes[:MAX_BOXES], truth[:MAX_BOXES])


def _size(data_url: str) -> tuple[int, int]:
    """Width and height of an image in pixels."""
    return open_picture(base64.b64decode(data_url.partition(",")[2])).size


def _fields(recipe: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in SHOWN_FIELDS:
        if name in recipe:
            yield name, html.code(as_code(recipe[name]), max_length=4000)
