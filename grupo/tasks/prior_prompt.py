"""Prior prompts: the instruction before every task, as a variable of the training."""

from collections.abc import Sequence
from dataclasses import replace

from grupo.core.component import component
from grupo.core.paper import Paper, Source
from grupo.core.prompt_text import prepend_text
from grupo.core.ranges import NonEmptyString
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, TaskSource
from grupo.tasks.in_memory import as_task_source


@component
class PriorStyle:
    """A prior prompt: an instruction, and the tag of the block that it asks for.

    Args:
        tag: Name of the tag before `<answer>`, without brackets.
        instruction: The instruction, without the format.
    """

    tag: NonEmptyString
    instruction: NonEmptyString

    @property
    def text(self) -> str:
        """The instruction with the format."""
        return (
            f"{self.instruction} Write this inside <{self.tag}> </{self.tag}>, then the final"
            " answer inside <answer> </answer>.\n\n"
        )


THINK = PriorStyle("think", "Think about the problem step by step.")
PLAN = PriorStyle("plan", "Plan first: outline a strategy before you solve the problem.")
CODE = PriorStyle("code", "Solve the problem by writing code.")
KNOWLEDGE = PriorStyle("knowledge", "Recall the facts and definitions that the problem needs.")
EXAMPLES = PriorStyle("examples", "List examples that illustrate the problem.")
PRIOR_STYLES = (THINK, PLAN, CODE, KNOWLEDGE, EXAMPLES)
"""The five styles of the paper; the last one is its null-example prompt."""


@component
class Prior:
    """The tasks of a source behind a prior prompt; the same prompt belongs before evaluation tasks.

    The format of its answers is `TagFormat((style.tag, "answer"))`. Prior prompt engineering
    (arXiv:2505.14157).

    Args:
        style: The prior prompt.
        source: The source, or a table in memory.

    >>> (task,) = Prior(PLAN, [{"prompt": "2 + 2 ="}]).load()
    >>> task.prompt.startswith("Plan first"), task.prompt.endswith("2 + 2 =")
    (True, True)
    """

    style: PriorStyle
    source: TaskSource

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", as_task_source(self.source, "source"))

    def load(self) -> Sequence[Task]:
        tasks = self.source.load()
        return LazyTasks(len(tasks), lambda i: self._with_prior(tasks[i]))

    def _with_prior(self, task: Task) -> Task:
        return replace(task, prompt=prepend_text(self.style.text, task.prompt))


PAPER = Paper(
    title="Prior Prompt Engineering for Reinforcement Fine-Tuning",
    kind="environment",
    use="Training should make a behaviour a habit: planning, code, recall, examples.",
    tags=("reward",),
    catalogue=("prior-prompt",),
    source=Source(
        "third_party", "a review of the paper at themoonlight.io: five styles, 0.5 / 0.5"
    ),
    checked=("golden",),
    deviations=(
        "The wording of the five prompts is ours.",
        "Text outside of the two blocks is no good format, as `TagFormat` has it.",
    ),
    shown=("docs/small_claims.md#prior-prompts",),
)
