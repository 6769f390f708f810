"""Tasks whose prompt states how many tokens the answer should have."""

from collections.abc import Sequence
from dataclasses import replace

from grupo.core.component import component
from grupo.core.prompt_text import append_text
from grupo.core.ranges import PositiveInt
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, TaskSource
from grupo.util.errors import ConfigError

BUDGET = "budget"  # column of the budget, in tokens
SENTENCE = "\n\nUse exactly {budget} tokens."


def with_budget(task: Task, budget: int, sentence: str = SENTENCE) -> Task:
    """The task with a budget in its prompt and in its column `budget`.

    Args:
        task: The task.
        budget: Length that the answer should have, in tokens.
        sentence: Text at the end of the prompt; `{budget}` stands for the number.

    >>> task = with_budget(Task("k", "2 + 2 ="), 64, " ({budget} tokens)")
    >>> task.prompt, task.columns["budget"]
    ('2 + 2 = (64 tokens)', 64)
    """
    prompt = append_text(task.prompt, sentence.replace("{budget}", str(budget)))
    return replace(task, prompt=prompt, columns={**task.columns, BUDGET: budget})


def check_sentence(sentence: str) -> None:
    """Raise `ConfigError` if a sentence does not name the budget."""
    if "{budget}" not in sentence:
        raise ConfigError(f"sentence: {sentence!r}. Allowed: a text with {{budget}} in it.")


@component
class BudgetedTasks:
    """The tasks of a source with one budget in all prompts: for evaluation, or a fixed budget.

    Args:
        source: The source.
        budget: Length that an answer should have, in tokens.
        sentence: Text at the end of the prompt; `{budget}` stands for the number.

    Raises:
        ConfigError: The sentence does not name the budget.
    """

    source: TaskSource
    budget: PositiveInt
    sentence: str = SENTENCE

    def __post_init__(self) -> None:
        check_sentence(self.sentence)

    def load(self) -> Sequence[Task]:
        tasks = self.source.load()
        return LazyTasks(len(tasks), lambda i: with_budget(tasks[i], self.budget, self.sentence))
