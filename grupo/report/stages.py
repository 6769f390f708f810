"""The stages of a pipeline as a table: what each trains, from where, and what came of it."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from grupo.report.escape import literal_line
from grupo.report.html.recipe_source import as_code
from grupo.report.read_run import read_metrics, read_summary
from grupo.report.step_line import format_duration
from grupo.rollouts.eval_scores import metric_value
from grupo.storage.pipeline_dirs import StageFolder, stage_folders

WRITTEN = {"ExportStage": "exported model", "ProgramStage": "program"}  # by stages of other kinds
COLUMNS = ("stage", "work", "start", "steps", "before", "after", "tokens", "time", "state")
ARGUMENTS = re.compile(r"\([^()]*\)")


@dataclass(frozen=True)
class StageLine:
    """A line of the table.

    Args:
        stage: Name of the stage, with its round if there are several.
        work: The loss of the method, or the rows of the data set that the stage writes.
        start: The stages whose weights it starts from.
        steps: Steps done, and those of the recipe while it trains.
        before: Fraction of held-out tasks solved by sampling before the stage.
        after: The same after it.
        tokens: Tokens generated.
        seconds: Seconds, evaluations included once it has ended.
        state: "done", "running", "skipped" or "not begun".
    """

    stage: str
    work: str
    start: str
    steps: str
    before: str
    after: str
    tokens: str
    seconds: str
    state: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of the line, in the order of `COLUMNS`."""
        fields = (self.stage, self.work, self.start, self.steps, self.before, self.after)
        return (*fields, self.tokens, self.seconds, self.state)


def stage_lines(root: Path) -> list[StageLine]:
    """A line for each stage of a pipeline, in order; none for another folder.

    Args:
        root: The folder of the pipeline.
    """
    stages = stage_folders(root)
    begun = [index for index, stage in enumerate(stages) if stage.is_run or stage.is_finished]
    last = begun[-1] if begun else -1
    lines = []
    for index, stage in enumerate(stages):
        before = stages[index - 1].name if index else ""
        state = "done" if stage.is_finished else "running" if stage.is_run else ""
        state = state or ("skipped" if index < last else "not begun")
        lines.append(_line(stage, before, state, several=stages[-1].round_number > 1))
    return lines


def stage_table(root: Path) -> Table:
    """The stages of a pipeline as a table for the terminal."""
    title = literal_line(f"{root}: held-out tasks solved before and after")
    table = Table(title=title, title_style="")
    for number, name in enumerate(COLUMNS):
        is_text = number < 3 or name == "state"
        table.add_column(name, justify="left" if is_text else "right")
    for line in stage_lines(root):
        table.add_row(*map(literal_line, line.cells))
    return table


def _line(stage: StageFolder, before: str, state: str, *, several: bool) -> StageLine:
    summary = read_summary(stage.folder)
    metrics = read_metrics(stage.folder)
    recipe = stage.data["recipe"]
    scores = list(summary.get("held_out", {}).values())
    tokens = summary.get("tokens", sum(m.get("tokens/generated", 0.0) for m in metrics))
    seconds = summary.get("seconds", sum(m.get("time/step", 0.0) for m in metrics))
    steps = f"{len(metrics)} of {recipe['max_steps']}" if state == "running" else ""
    return StageLine(
        stage=f"{stage.round_number}/{stage.name}" if several else stage.name,
        work=_work(stage.data, summary),
        start=_start(stage.data["start"], before),
        steps=steps or str(summary.get("steps", "")),
        before=_percent(scores[0]) if scores else "",
        after=_percent(scores[-1]) if scores else "",
        tokens=f"{tokens:,.0f}" if tokens else "",
        seconds=format_duration(seconds) if seconds else "",
        state=state,
    )


def _work(data: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """The loss of a method without its arguments, or what a stage writes."""
    written = WRITTEN.get(str(data["component"]).rpartition(":")[2])
    if written:
        return written
    if "attempts" in data:
        return f"{summary['rows']:,} rows" if "rows" in summary else "rows"
    loss = as_code(data["recipe"]["method"]["loss"])
    while ARGUMENTS.search(loss):
        loss = ARGUMENTS.sub("", loss)
    return loss


def _start(start: Any, before: str) -> str:
    """The start of a stage in words; "" for the policy of its recipe."""
    if isinstance(start, Mapping):
        shares = [pair["tuple"] for pair in start["shares"]["tuple"]]
        return " + ".join(f"{share:g} {name}" for name, share in shares)
    return before if start is None else str(start)


def _percent(scores: Mapping[str, Any]) -> str:
    value = metric_value(scores, "eval/sampled")
    return "not scored" if math.isnan(value) else f"{100 * value:.1f} %"
