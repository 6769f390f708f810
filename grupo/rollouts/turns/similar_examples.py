"""Similar examples: the prompt begins with those rows of a file that are most like the task."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from grupo.core.component import component
from grupo.core.forms import fill, placeholders
from grupo.core.interfaces import Actor, TurnStrategy, single_response
from grupo.core.numbers import PositiveInt
from grupo.core.ranges import NonEmptyString
from grupo.core.types import Observation, Rollout, Task
from grupo.core.usage import add_external_usage
from grupo.rollouts.turns.private_context import answer_to_prompt, task_text, with_task_text
from grupo.tasks.dataset import DatasetTasks
from grupo.util.bm25 import Bm25
from grupo.util.errors import ConfigError, suggest
from grupo.util.user_paths import parse_path


@component
class SimilarExamples:
    """A turn whose prompt begins with the examples that are most similar to it.

    Examples are rows of a file, such as training tasks with their answers, notes of mistakes, or
    solved tasks. A `CollectStage` with `rows=solved` writes solved tasks, with each answer in the
    column `completion`. If several rows have the same prompt, the first one is used.

    The similarity is BM25 between the prompts of a row and of the task. The most similar example
    comes last. An example is left out if the task's prompt contains the example's prompt, because
    it would show the answer. The usage `examples/none` counts turns without a similar example.

    If this strategy is the outermost of nested strategies, the engine reads the examples once for
    all attempts.

    Args:
        file: A file of tasks as for `--tasks`, such as "solved.jsonl".
        count: Largest number of examples in the prompt.
        example_form: Text of an example, with {prompt}, {answer} or columns of the file.
        inner: Answers the prompt with the examples.

    Raises:
        ConfigError: When `check` is called: there is no such file, or a row lacks a column that
            `example_form` names.
    """

    file: NonEmptyString
    count: PositiveInt = 5
    example_form: NonEmptyString = "{prompt}\n{answer}\n\n"
    inner: TurnStrategy = single_response

    def check(self) -> None:
        """Raise `ConfigError` if the file or a column that the form names is missing."""
        _index(self.file).check(self.example_form)

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        text = task_text(observation)
        index = _index(self.file)
        row_numbers = index.most_similar(text, self.count)
        if not row_numbers:
            add_external_usage({"examples/none": 1.0})
            return await self.inner(actor, rollout, observation)
        examples = "".join(fill(self.example_form, index.rows[i]) for i in reversed(row_numbers))
        prompt = with_task_text(observation, examples + text)
        return await answer_to_prompt(actor, rollout, observation, prompt, self.inner)


class ExampleIndex(NamedTuple):
    """The rows of a file, with an index of the words of their prompts.

    Args:
        path: The file, for messages.
        rows: The values of each row by the name of the column.
        bm25: The index of the prompts.
    """

    path: str
    rows: Sequence[Mapping[str, str]]
    bm25: Bm25

    def most_similar(self, text: str, count: int) -> list[int]:
        """Numbers of the rows with the most similar prompts, best first.

        Rows whose prompt `text` contains are left out.
        """
        ranked = self.bm25.search(text, len(self.rows))
        return [i for i in ranked if self.rows[i]["prompt"].strip() not in text][:count]

    def check(self, form: str) -> None:
        """Raise `ConfigError` for a row without one of the columns of a form."""
        for name in placeholders(form):
            for number, row in enumerate(self.rows, 1):
                if name not in row:
                    raise ConfigError(
                        f"SimilarExamples.example_form: {{{name}}}: example {number} of"
                        f" {self.path!r} has no such column. {suggest(name, row)}"
                    )


def _index(path: str) -> ExampleIndex:
    file = parse_path(path)
    return _read_index(path, file.stat().st_mtime_ns if file.exists() else 0)


@lru_cache(maxsize=4)
def _read_index(path: str, changed_at: int) -> ExampleIndex:
    """The index of a file. `changed_at` is part of the key of the cache, in nanoseconds."""
    try:
        values = [_values(task) for task in DatasetTasks(path).load()]
    except ConfigError as error:
        raise ConfigError(f"SimilarExamples.file: {error}") from error
    rows = list({row["prompt"]: row for row in reversed(values)}.values())[::-1]
    if not rows:
        raise ConfigError(f"SimilarExamples.file: {path!r} has no rows. Allowed: at least one.")
    return ExampleIndex(path, rows, Bm25([row["prompt"] for row in rows]))


def _values(task: Task) -> Mapping[str, str]:
    """The prompt, the reference answer and the columns of a task, as texts."""
    answer = {} if task.reference_answer is None else {"answer": task.reference_answer}
    values = {**task.columns, **answer, "prompt": task_text(task.prompt)}
    return {name: str(value) for name, value in values.items()}
