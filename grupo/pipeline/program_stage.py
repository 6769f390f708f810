"""The stage that searches a program for all tasks of a recipe."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Literal

from grupo.config.tool_formats import with_tool_formats
from grupo.core.component import component
from grupo.core.forms import check_form
from grupo.core.ranges import PositiveInt
from grupo.core.types import Task
from grupo.distributed.base import Ranks
from grupo.pipeline.conditions import StageCondition
from grupo.pipeline.data_stage import data_file_with_summary, sampling_inputs
from grupo.pipeline.merge import WeightMerge
from grupo.pipeline.program_search import ProgramSearch, search_programs, uses_answers
from grupo.recipe import Recipe
from grupo.rollouts.turns.with_program import FORM, PLACEHOLDERS
from grupo.training.callbacks import Callback
from grupo.util.errors import ConfigError

PROGRAM_FILE = "program.txt"
WRITE = (
    "A task with its answer:\n{task}\n{answer}\n\nWrite steps that solve every task of this kind,"
    " one on each line. Do not write about this task alone."
)


@component
class ProgramStage:
    """A stage that lets the policy write programs, scores them, and keeps the best one.

    A program is a text that says how all tasks of a kind are solved. Each is written for another of
    the first `programs` training tasks, and scored by the mean reward of greedy answers with it to
    the `items` tasks after them; ties are those of `best_program`. `program.txt` has the best one,
    for the strategy `WithProgram`; `summary.json` has all programs, scores and tokens.

    Args:
        name: Name of the stage and of its folder.
        recipe: The recipe with the policy, environment and tasks. A program has at most
            `max_new_tokens` tokens of its policy.
        programs: Number of programs that are written.
        items: Number of tasks on which each is tried.
        write: Prompt that asks for a program, with {task}; and {answer}, the reference answer, if
            it is to be shown.
        form: Prompt of an answer, with {program} and {task}.
        start: As for `Stage`.
        when: As for `Stage`.
        otherwise: As for `Stage`.

    Raises:
        ConfigError: A form lacks a placeholder or has one without a value.
    """

    name: str
    recipe: Recipe
    programs: PositiveInt = 10
    items: PositiveInt = 50
    write: str = WRITE
    form: str = FORM
    start: str | WeightMerge | None = None
    when: StageCondition | None = None
    otherwise: Literal["stop", "skip"] = "stop"

    def __post_init__(self) -> None:
        shown = ("task", "answer") if uses_answers(self.write) else ("task",)
        check_form("ProgramStage.write", self.write, shown)
        check_form("ProgramStage.form", self.form, PLACEHOLDERS)

    @property
    def output_name(self) -> str:
        return PROGRAM_FILE

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for too few training tasks, or for one without an answer to show."""
        allowed = len(tasks) - self.programs
        if allowed < self.items:
            raise ConfigError(
                f"ProgramStage.items: {self.items}. Programs are written for {self.programs} of"
                f" {len(tasks)} training tasks. Allowed: at most {max(allowed, 0)}; or fewer"
                " programs."
            )
        if uses_answers(self.write):
            for task in (tasks[i] for i in range(self.programs)):
                if task.reference_answer is None:
                    raise ConfigError(
                        f"ProgramStage.write: {{answer}}, and task {task.location or task.key} has"
                        " no reference answer. Allowed: a form with {task} alone."
                    )

    def run(self, folder: Path, recipe: Recipe, callback: Callback, ranks: Ranks) -> None:
        started_at = perf_counter()
        recipe = with_tool_formats(recipe)
        with sampling_inputs(recipe, self.programs + self.items, callback, ranks) as inputs:
            self.check_tasks(inputs.tasks)  # prompts that are too long may have been dropped
            search = search_programs(
                recipe,
                inputs,
                num_programs=self.programs,
                write=self.write,
                form=self.form,
                ranks=ranks,
            )
        if ranks.rank:  # the pipeline lets the other ranks wait for rank 0 after `run`
            return
        summary = {"seed": recipe.seed, "items": self.items, **_summary_data(search)}
        summary["seconds"] = round(perf_counter() - started_at, 2)
        with data_file_with_summary(folder / PROGRAM_FILE, summary) as path:
            path.write_text(f"{search.programs[search.chosen].text}\n", encoding="utf-8")
        callback.on_message(f"{_description(search)}: {folder / PROGRAM_FILE}")


def _summary_data(search: ProgramSearch) -> dict[str, object]:
    """The programs, their scores and the tokens of a search, by name."""
    return {
        "programs": [asdict(program) for program in search.programs],
        "chosen": search.chosen,
        "empty": search.num_empty,
        "repeated": search.num_repeated,
        "tokens": sum(search.generated.values()),
        "read_tokens": sum(search.read.values()),
        "generated_by_role": search.generated,
        "read_by_role": search.read,
        "usage": search.usage,
    }


def _description(search: ProgramSearch) -> str:
    """The chosen program's score, and that of the next best one, in words."""
    best = search.programs[search.chosen]
    others = [p.score for i, p in enumerate(search.programs) if i != search.chosen]
    scores = [score for score in others if score is not None]
    next_best = f", the next best one {max(scores):.3g}" if scores else ""
    not_scored = sum(score is None for score in others)
    lost = f", {not_scored} have no score" if not_scored else ""
    return (
        f"Program {search.chosen + 1} of {len(search.programs)} has a mean reward of"
        f" {best.score:.3g} on {best.num_scored} tasks{next_best}{lost}"
    )
