"""Thought dropout: demonstrations without thoughts, from which a policy learns to skip them.

TON, Wang et al., 2025, arXiv:2505.16854.
"""

from collections.abc import Callable, Sequence

from grupo.core.component import component
from grupo.core.ranges import NonEmptyString, Probability
from grupo.core.types import Task
from grupo.rollouts.samplers.demonstrations import SolutionColumn
from grupo.util.rng import make_rng

EMPTY = "\n\n"  # content of thoughts that are skipped


def without_thoughts(text: str, tag: str = "think") -> str:
    r"""The text with its first thoughts replaced by two line breaks.

    Args:
        text: A text with thoughts.
        tag: Name of the tag around the thoughts, without brackets.

    >>> without_thoughts("<think>1 + 2</think><answer>3</answer>")
    '<think>\n\n</think><answer>3</answer>'
    """
    before, _, after = text.partition(f"<{tag}>")
    _, close_tag, rest = after.partition(f"</{tag}>")
    return f"{before}<{tag}>{EMPTY}</{tag}>{rest}" if close_tag else text


@component
class ThoughtDropout:
    """Returns the worked solutions of a task, some of them without their thoughts.

    A task has the same solutions in every epoch. `TagFormat(may_be_empty=("think",))` is a reward
    function that accepts empty thoughts.

    Args:
        solve: Returns the solutions of a task: texts with thoughts.
        probability: Probability that the thoughts of a solution are removed.
        tag: Name of the tag around the thoughts, without brackets.
        seed: Seed of the random choice.

    >>> task = Task("sum", "1 + 2 =", columns={"solution": "<think>1 + 2</think>3"})
    >>> ThoughtDropout(probability=1.0)(task)
    ['<think>\\n\\n</think>3']
    """

    solve: Callable[[Task], Sequence[str]] = SolutionColumn()
    probability: Probability = 0.5
    tag: NonEmptyString = "think"
    seed: int = 0

    def __call__(self, task: Task) -> Sequence[str]:
        rng = make_rng(self.seed, "thought dropout", task.key)
        return [
            without_thoughts(text, self.tag) if rng.random() < self.probability else text
            for text in self.solve(task)
        ]
