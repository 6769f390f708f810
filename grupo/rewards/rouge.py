"""ROUGE-L, Lin, 2004: the longest common subsequence of two texts' words."""

import re
from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, whole_text
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward, reference_text

MAX_WORDS = 2_000  # of an answer; the time is in proportion to the product of both lengths


def common_subsequence(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest common subsequence.

    >>> common_subsequence("a b c d".split(), "b d e".split())
    2
    """
    previous = [0] * (len(b) + 1)
    for x in a:
        current = [0]
        for j, y in enumerate(b):
            current.append(previous[j] + 1 if x == y else max(previous[j + 1], current[j]))
        previous = current
    return previous[-1]


@component
class RougeL(PerRolloutReward):
    """F1 of the longest common subsequence of words of the answer and the reference answer.

    Words are runs of letters and digits, in any case.

    Args:
        extract: Finds the answer in the rollout's text; no answer scores 0.

    >>> from grupo.core.types import Response
    >>> rollout = Rollout((("?", Response((), (), text="A b, c d")),))
    >>> round(RougeL().score(Task("k", "?", "b d e"), rollout), 3)  # 2 x 2 / (4 + 3)
    0.571
    """

    extract: Extractor = whole_text

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        answer = self.extract(rollout.text)
        words, truth = (_words(text) for text in (answer or "", reference_text(task)))
        if not words or len(words) > MAX_WORDS:
            return 0.0
        return 2 * common_subsequence(words, truth) / (len(words) + len(truth))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
