"""Reward of questions with several right options: partial credit for a subset of them.

Dang et al., 2025, arXiv:2505.24718 (TW-GRPO); the method is `grupo/methods/tw_grpo.py`.
"""

from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, InsideTagOrWhole
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward
from grupo.util.errors import ConfigError


def option_set(value: object) -> frozenset[str]:
    """The options of a text with commas, or of a sequence of texts, without white space.

    >>> sorted(option_set("C, A")), sorted(option_set(["A"])), sorted(option_set(" "))
    (['A', 'C'], ['A'], [])
    """
    texts = value if isinstance(value, list | tuple) else str(value).split(",")
    return frozenset("".join(str(text).split()) for text in texts) - {""}


@component
class OptionSubset(PerRolloutReward):
    """Fraction of the right options that the answer names; 0 if it names a wrong one or none.

    The reference answer is a text such as "A, C" or a sequence of options.

    Args:
        extract: Finds the options, separated by commas, in the rollout's text.

    >>> from grupo.core.types import Response
    >>> texts = ("A", "C,A", "<answer>A, B</answer>")
    >>> rollouts = [Rollout((("?", Response((), (), text=text)),)) for text in texts]
    >>> OptionSubset()(Task("k", "?", "A, C"), rollouts)
    [0.5, 1.0, 0.0]
    """

    extract: Extractor = InsideTagOrWhole("answer")

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        named = option_set(self.extract(rollout.text) or "")
        right = right_options(task)
        return len(named) / len(right) if named <= right else 0.0

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without a right option."""
        for task in tasks:
            right_options(task)


def right_options(task: Task) -> frozenset[str]:
    """The options of the reference answer; raises `ConfigError` if there is none."""
    answer = task.reference_answer
    right = frozenset() if answer is None else option_set(answer)
    if not right:
        raise ConfigError(
            f"tasks: {task.location or task.key}: reference answer {answer!r}. Allowed: options"
            ' such as "A, C".'
        )
    return right
