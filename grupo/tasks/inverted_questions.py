"""Question-answer inversion: questions with one right option become questions with several.

Dang et al., 2025, arXiv:2505.24718 (TW-GRPO); the method is `grupo/methods/tw_grpo.py`, and the
graded reward of several right options is `grupo.rewards.OptionSubset`.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from string import ascii_uppercase
from typing import Any

from grupo.core.component import component
from grupo.core.prompt_text import append_text
from grupo.core.ranges import NonEmptyString, Probability
from grupo.core.types import Observation, Task
from grupo.tasks.base import LazyTasks, TaskSource, task_key
from grupo.tasks.in_memory import as_task_source
from grupo.util.errors import ConfigError
from grupo.util.rng import make_rng

AUXILIARIES = ("did", "does", "do", "is", "are", "was", "were")


def negated_question(question: str) -> str | None:
    """The question with its auxiliary verb negated; None if its second word is none.

    >>> negated_question("What did the man open?")
    "What didn't the man open?"
    >>> negated_question("Name the colour.") is None
    True
    """
    words = question.split(" ")
    if len(words) < 2 or words[1].lower() not in AUXILIARIES:
        return None
    return " ".join([words[0], f"{words[1]}n't", *words[2:]])


def inverted_options(
    options: Sequence[str], right: int, rng: Random
) -> tuple[Sequence[str], Sequence[int]]:
    """Options of the negated question in random order, and the indices of its right ones.

    The option that was right stays and is wrong; of the others, which are right now, a random
    number of at least one stays.

    Args:
        options: Options of the question, two or more.
        right: Index of the right one.
        rng: Random numbers.

    >>> inverted_options(("red", "blue"), 0, Random(0))
    (['blue', 'red'], [0])
    """
    others = [index for index in range(len(options)) if index != right]
    kept = [right, *rng.sample(others, rng.randint(1, len(others)))]
    rng.shuffle(kept)
    return [options[i] for i in kept], [place for place, i in enumerate(kept) if i != right]


@component
class InvertedQuestions:
    """Questions with one right option, some of them negated, with their options behind the prompt.

    A task of the source has the question as the last text of its prompt, its options in a column,
    and the letter of the right one as reference answer. A prompt then ends with a line for each
    option, such as "A red"; the reference answer of a negated question is a text such as "A, C". A
    question that cannot be negated stays as it is.

    Args:
        source: The source, or a table in memory.
        inverted_frac: Fraction of the questions that are negated (authors' code: 0.5).
        seed: Seed of the choice of questions and options.
        options_column: Column with the options, texts without letters.

    >>> row = {"prompt": "What is red?", "answer": "B", "options": ["dog", "car", "sky"]}
    >>> (task,) = InvertedQuestions([row], inverted_frac=1.0).load()
    >>> print(task.prompt)
    What isn't red?
    A sky
    B car
    C dog
    >>> task.reference_answer
    'A, C'
    >>> (kept,) = InvertedQuestions([row], inverted_frac=0.0).load()
    >>> kept.reference_answer
    'B'
    """

    source: TaskSource
    inverted_frac: Probability = 0.5
    seed: int = 0
    options_column: NonEmptyString = "options"

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", as_task_source(self.source, "source"))

    def load(self) -> Sequence[Task]:
        tasks = self.source.load()
        return LazyTasks(len(tasks), lambda i: self._task(tasks[i]))

    def _task(self, task: Task) -> Task:
        options, right = self._options(task)
        rng = make_rng(self.seed, "inverted questions", task.key, *options)
        negated = negated_prompt(task.prompt) if rng.random() < self.inverted_frac else None
        if negated is None:
            return self._with_options(task, task.prompt, options, [right])
        return self._with_options(task, negated, *inverted_options(options, right, rng))

    def _options(self, task: Task) -> tuple[Sequence[str], int]:
        """The options of a task and the index of the right one."""
        options = task.columns.get(self.options_column)
        if not isinstance(options, list | tuple) or not 2 <= len(options) <= len(ascii_uppercase):
            raise ConfigError(
                f"tasks: {task.location or task.key}: column {self.options_column!r} is"
                f" {options!r}. Allowed: a list of 2 to 26 options."
            )
        letters = ascii_uppercase[: len(options)]
        if not isinstance(task.reference_answer, str) or task.reference_answer not in [*letters]:
            raise ConfigError(
                f"tasks: {task.location or task.key}: reference answer {task.reference_answer!r}."
                f" Allowed: a letter from A to {letters[-1]}."
            )
        return [*map(str, options)], letters.index(task.reference_answer)

    def _with_options(
        self, task: Task, question: Observation, options: Sequence[str], right: Sequence[int]
    ) -> Task:
        lines = [f"\n{ascii_uppercase[index]} {option}" for index, option in enumerate(options)]
        prompt = append_text(question, "".join(lines))
        answer = ", ".join(ascii_uppercase[index] for index in right)
        columns = {**task.columns, self.options_column: options}
        return replace(
            task, key=task_key(prompt), prompt=prompt, reference_answer=answer, columns=columns
        )


def negated_prompt(prompt: Observation) -> Observation | None:
    """The prompt with its last text negated; None if that cannot be negated.

    >>> parts = [{"type": "video"}, {"type": "text", "text": "Where was it?"}]
    >>> negated_prompt(({"role": "user", "content": parts},))[0]["content"][1]["text"]
    "Where wasn't it?"
    """
    if isinstance(prompt, str):
        return negated_question(prompt)
    *before, last = prompt
    content = _negated_content(last.get("content"))
    return None if content is None else (*before, {**last, "content": content})


def _negated_content(content: Any) -> Any:
    if isinstance(content, str):
        return negated_question(content)
    if not isinstance(content, list | tuple):
        return None
    texts = [index for index, part in enumerate(content) if part.get("type") == "text"]
    negated = negated_question(content[texts[-1]]["text"]) if texts else None
    if negated is None:
        return None
    part = {**content[texts[-1]], "text": negated}
    return [*content[: texts[-1]], part, *content[texts[-1] + 1 :]]
