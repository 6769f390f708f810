"""Rewards of thoughts that name boxes before an answer: tags, boxes, words and repetitions.

GRIT, Fan et al., 2025, arXiv:2505.15879, sums them with a reward of the answer, such as a judge's.
Texts look like "<think>… [left, top, right, bottom] …</think><rethink>…</rethink><answer>…". No box
is compared with a true one.
"""

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from math import exp

from grupo.core.component import component
from grupo.core.ranges import NonEmptyString, PositiveInt
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward, reference_text

THOUGHT_TAGS = ("<think>", "</think>", "<rethink>", "</rethink>")
FOUR_INTEGERS = re.compile(r"\b\d+,\s*\d+,\s*\d+,\s*\d+\b")
NOT_ALPHANUMERIC = re.compile(r"[^a-zA-Z0-9\s]")


@component
class ThoughtTags(PerRolloutReward):
    """(tags found in order + 1 if all are and the thoughts have two words) / (2 (tags + 1)).

    Args:
        tags: The tags; thoughts stand between the first two.

    >>> from grupo.core.types import Response
    >>> texts = ("<think>a b</think><rethink>c</rethink>", "<think>a</think>")
    >>> ThoughtTags()(Task("k", "?"), [Rollout((("?", Response((), (), text=t)),)) for t in texts])
    [0.5, 0.2]
    """

    tags: tuple[str, ...] = THOUGHT_TAGS

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 0.5)

    def score(self, task: Task, rollout: Rollout) -> float:
        rest = rollout.text
        found = 0
        for tag in self.tags:
            if tag in rest:
                found += 1
                rest = rest.rpartition(tag)[2]
        begin, end = self.tags[:2]
        thoughts = rollout.text.rpartition(begin)[2].partition(end)[0]
        words = NOT_ALPHANUMERIC.sub(" ", thoughts).split()
        complete = found == len(self.tags) and len(words) > 1
        return (found + complete) / (2 * (len(self.tags) + 1))


@component
class BoxBeforeTag(PerRolloutReward):
    """1/2 if four integers with commas between them, a box, stand before the tag, else 0.

    1 more if the number of boxes is the reference answer, for tasks that ask for a count. A text
    without the tag scores 0.

    Args:
        tag: The tag.
        counts: A column of the tasks that is true for tasks that ask for a count; "": none does.

    >>> from grupo.core.types import Response
    >>> texts = ("at [1, 2, 3, 4]<rethink>", "<rethink>at [1, 2, 3, 4]", "at [1, 2, 3, 4]")
    >>> BoxBeforeTag()(Task("k", "?"), [Rollout((("?", Response((), (), text=t)),)) for t in texts])
    [0.5, 0.0, 0.0]
    """

    tag: NonEmptyString = "<rethink>"
    counts: str = ""

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.5)

    def score(self, task: Task, rollout: Rollout) -> float:
        before, tag, _ = rollout.text.partition(self.tag)
        boxes = FOUR_INTEGERS.findall(before) if tag else []
        asks_count = bool(self.counts and task.columns.get(self.counts))
        counted = asks_count and bool(tag) and str(len(boxes)) == reference_text(task)
        return 0.5 * bool(boxes) + counted


@component
class SingleTag(PerRolloutReward):
    """1/2 if the tag occurs once, 1/4 if it occurs several times, 0 if it does not.

    Args:
        tag: The tag.

    >>> from grupo.core.types import Response
    >>> texts = ("<answer>4", "<answer>4<answer>", "4")
    >>> SingleTag()(Task("k", "?"), [Rollout((("?", Response((), (), text=t)),)) for t in texts])
    [0.5, 0.25, 0.0]
    """

    tag: NonEmptyString = "<answer>"

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 0.5)

    def score(self, task: Task, rollout: Rollout) -> float:
        return (0.0, 0.5, 0.25)[min(2, rollout.text.count(self.tag))]


@component
class UnigramBleu(PerRolloutReward):
    """BLEU-1 of the words of the answer, which follow the first tag, to the reference answer.

    min(1, exp(1 - r / c)) times the share of the c words that are among the r reference words, each
    as often as there. GRIT weights it with 0.1.

    Args:
        tag: The tag before the answer; the answer ends at the closing tag, if there is one.

    >>> from grupo.core.types import Response
    >>> texts = ("<answer>a red cat", "<answer>red red</answer>", "cat")
    >>> task = Task("k", "?", "a red cat")
    >>> scores = UnigramBleu()(task, [Rollout((("?", Response((), (), text=t)),)) for t in texts])
    >>> [round(score, 3) for score in scores]  # the second: 1/2 exp(1 - 3/2)
    [1.0, 0.303, 0.0]
    """

    tag: NonEmptyString = "<answer>"

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        # The released code also counts the words of a closing tag as words of the answer.
        closing_tag = self.tag.replace("<", "</")
        answer = rollout.text.partition(self.tag)[2].partition(closing_tag)[0]
        words, reference = (
            NOT_ALPHANUMERIC.sub(" ", text).lower().split()
            for text in (answer, reference_text(task))
        )
        if not words:
            return 0.0
        shared = (Counter(words) & Counter(reference)).total()
        brevity = min(1.0, exp(1 - len(reference) / len(words)))
        return brevity * shared / len(words)


@component
class FewRepetitions(PerRolloutReward):
    """(1 - share of repeated runs of words - share of repeated runs of tokens) / 2.

    A run of n words or tokens is repeated if the next n are the same. Texts of fewer than n words
    or 2n tokens get 1/2.

    Args:
        n: Length of a run.
    """

    n: PositiveInt = 8

    @property
    def reward_range(self) -> tuple[float, float]:
        return (-0.5, 0.5)

    def score(self, task: Task, rollout: Rollout) -> float:
        words = rollout.text.split()
        tokens = [item for _, response in rollout.turns for item in response.items]
        if len(words) < self.n or len(tokens) < 2 * self.n:
            return 0.5
        # The released code divides by all starts of a run of words, also those without n words
        # behind them, but only by the starts of two complete runs of tokens.
        word_share = _repeated(words, self.n) / max(1, len(words) - self.n)
        token_share = _repeated(tokens, self.n) / (len(tokens) - 2 * self.n + 1)
        return 0.5 * (1 - word_share - token_share)


def _repeated(items: Sequence[Hashable], n: int) -> int:
    """Number of runs of n items that the next n items repeat."""
    return sum(
        tuple(items[i : i + n]) == tuple(items[i + n : i + 2 * n])
        for i in range(len(items) - 2 * n + 1)
    )
