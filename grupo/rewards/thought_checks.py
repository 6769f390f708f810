"""Checks of the thoughts before an answer: do they lead to it, repeat themselves, say enough.

Each is 1 or 0, to be measured by a reward term of weight 0, or to choose pairs by. A judge may take
the place of any of them.
"""

from collections.abc import Mapping

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, InsideTag, final_answer
from grupo.core.ranges import PositiveInt, Probability
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward

THOUGHTS = InsideTag("think")


@component
class ConclusionMatch(PerRolloutReward):
    """1 if the conclusion of the thoughts is the answer, else 0; the reference answer is not read.

    `<term>/contradicts` is 1 if both are found and differ: texts without a conclusion have neither.

    Args:
        conclusion: Finds the conclusion in the rollout's text.
        answer: Finds the answer in it.

    >>> from grupo.core.types import Response
    >>> from grupo.rewards import AfterMarker
    >>> check = ConclusionMatch(lambda text: AfterMarker("so")(THOUGHTS(text) or ""))
    >>> texts = ("<think>2 and 2, so 4</think>4", "<think>so 5</think>4", "<think></think>4")
    >>> rollouts = [Rollout((("?", Response((), (), text=text)),)) for text in texts]
    >>> [tuple(check.score(Task("k", "?"), rollout).values()) for rollout in rollouts]
    [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0)]
    """

    conclusion: Extractor
    answer: Extractor = final_answer

    def score(self, task: Task, rollout: Rollout) -> Mapping[str, float]:
        conclusion, answer = self.conclusion(rollout.text), self.answer(rollout.text)
        both = bool(conclusion) and bool(answer)
        return {
            "score": float(both and conclusion == answer),
            "contradicts": float(both and conclusion != answer),
        }


@component
class VariedThoughts(PerRolloutReward):
    """1 if at most a share of the n-grams of words occurred before in the thoughts, else 0.

    Args:
        n: Words of an n-gram.
        largest_share: The largest share.
        extract: Finds the thoughts in the rollout's text; none have no repeats.

    >>> from grupo.core.types import Response
    >>> texts = ("<think>a b c d</think>", "<think>a b a b a b</think>")
    >>> rollouts = [Rollout((("?", Response((), (), text=text)),)) for text in texts]
    >>> VariedThoughts(n=2, largest_share=0.5)(Task("k", "?"), rollouts)  # shares 0 and 3 / 5
    [1.0, 0.0]
    """

    n: PositiveInt = 4
    largest_share: Probability = 0.2
    extract: Extractor = THOUGHTS

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        words = (self.extract(rollout.text) or "").split()
        count = len(words) - self.n + 1
        different = {tuple(words[i : i + self.n]) for i in range(count)}
        return float(count - len(different) <= self.largest_share * max(count, 0))


@component
class EnoughWords(PerRolloutReward):
    """1 if the thoughts have at least `minimum` words, else 0.

    Args:
        minimum: Fewest words.
        extract: Finds the thoughts in the rollout's text.

    >>> from grupo.core.types import Response
    >>> texts = ("<think>2 and 2</think>4", "4")
    >>> rollouts = [Rollout((("?", Response((), (), text=text)),)) for text in texts]
    >>> EnoughWords(3)(Task("k", "?"), rollouts)
    [1.0, 0.0]
    """

    minimum: PositiveInt
    extract: Extractor = THOUGHTS

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        return float(len((self.extract(rollout.text) or "").split()) >= self.minimum)
