"""A reward for the instructions that a task states as constraints."""

from collections.abc import Callable, Sequence

from grupo.core.component import component
from grupo.core.extract_answer import AfterThinking, Extractor, whole_text
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward
from grupo.rewards.instruction_formats import task_constraints

MAX_CHARS = 100_000  # of an answer; a longer text meets nothing


def share_met(passed: Sequence[bool]) -> float:
    """The share of checks that pass; 0 without any.

    >>> share_met([True, False])
    0.5
    """
    return sum(passed) / max(len(passed), 1)


def all_met(passed: Sequence[bool]) -> float:
    """1 if all checks pass, else 0; 0 without any.

    >>> all_met([True, False]), all_met([True])
    (0.0, 1.0)
    """
    return float(bool(passed) and all(passed))


@component
class InstructionFollowing(PerRolloutReward):
    """The constraints of the task that the answer meets, from 0 to 1.

    Tasks state them as IFEval does, in the columns `instruction_id_list` and `kwargs`, or as Tülu 3
    does, in a `ground_truth` with `func_name`. Quality is not measured: a list of the keywords
    contains them.

    Args:
        extract: Finds the answer in the rollout's text; no answer meets nothing.
        combine: From a bool for each constraint to the score: `share_met` or `all_met`.

    >>> from grupo.core.types import Response
    >>> columns = {"instruction_id_list": ["punctuation:no_comma", "startend:quotation"]}
    >>> rollouts = [Rollout((("?", Response((), (), text=text)),)) for text in ('"Yes"', "Yes")]
    >>> InstructionFollowing()(Task("k", "?", columns=columns), rollouts)
    [1.0, 0.5]
    """

    extract: Extractor = AfterThinking(whole_text)
    combine: Callable[[Sequence[bool]], float] = share_met

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        text = self.extract(rollout.text)
        if text is None or len(text) > MAX_CHARS:
            return 0.0
        return self.combine([constraint(text) for constraint in task_constraints(task)])

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without constraints, or with one that is unknown."""
        for task in tasks:
            task_constraints(task)
