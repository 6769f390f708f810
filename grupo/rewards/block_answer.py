"""Rewards for answers in blocks of thoughts, tool calls and an answer."""

import re
from collections.abc import Mapping, Sequence

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, InsideTag
from grupo.core.ranges import Probability
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward, reference_text

MAX_CHARS = 2_000  # of a fact; the edit distance takes time in proportion to its square


def edit_distance(a: str, b: str) -> int:
    """Fewest insertions, deletions and replacements of characters between two texts.

    >>> edit_distance("paris", "pariz"), edit_distance("", "ab"), edit_distance("kitten", "sitting")
    (1, 2, 3)
    """
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


@component
class FactMatch(PerRolloutReward):
    """1 if a true answer is in the predicted one, else 1 - d for an edit distance d below 1/2.

    d is divided by the length of the longer text; texts are compared in lower case. Of several true
    answers, a list, the best counts. TAPO, Goer17/TAPO.

    Args:
        extract: Finds the answer in the rollout's text; no answer scores 0.

    >>> from grupo.core.types import Response
    >>> rollout = Rollout((("?", Response((), (), text="<answer>pariz</answer>")),))
    >>> FactMatch().score(Task("k", "?", "Paris"), rollout)
    0.8
    """

    extract: Extractor = InsideTag("answer")

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        answer = self.extract(rollout.text)
        if not answer or len(answer) > MAX_CHARS:
            return 0.0
        golds = task.reference_answer
        several = isinstance(golds, Sequence) and not isinstance(golds, str)
        texts = [str(gold).strip() for gold in golds] if several else [reference_text(task)]
        return max(_similarity(answer.lower(), text.lower()) for text in texts)


def _similarity(answer: str, gold: str) -> float:
    if gold in answer:
        return 1.0
    distance = edit_distance(answer, gold) / max(len(answer), len(gold))
    return 1 - distance if distance < 0.5 else 0.0


@component
class BlockAnswer(PerRolloutReward):
    """The score of the answer, or -1 if the text is no pure sequence of blocks ending in `answer`.

    The text is the policy's own: a block that only the environment writes, such as `response`,
    makes it impure. The further number `acc` is 1 for a score above 0.9; `KeepMixed("NAME/acc")`
    filters groups by it. TAPO, Goer17/TAPO.

    Args:
        answer: Scores the answer, such as `FactMatch()` or `NumberWithin(absolute=1e-3)`.
        blocks: Names of the blocks besides `answer`.
        accurate_above: Score above which an answer is accurate.
    """

    answer: PerRolloutReward
    blocks: tuple[str, ...] = ("think", "search", "code")
    accurate_above: Probability = 0.9

    def score(self, task: Task, rollout: Rollout) -> Mapping[str, float]:
        if not is_pure(rollout.text, self.blocks):
            return {"score": -1.0, "acc": 0.0}
        score = self.answer.score(task, rollout)
        assert isinstance(score, int | float), "the answer's reward is a plain number"
        return {"score": float(score), "acc": float(score > self.accurate_above)}


def is_pure(text: str, blocks: Sequence[str]) -> bool:
    """True if a text consists of blocks, with white space between them, and ends in one answer.

    >>> is_pure("<think>a</think> <answer>4</answer>", ["think"])
    True
    >>> is_pure("<think>a</think> so <answer>4</answer>", ["think"])
    False
    """
    names = "|".join(map(re.escape, (*blocks, "answer")))
    opening = re.compile(rf"\s*<({names})>")
    inside = re.compile(rf"</?(?:{names}|response)>")
    tags, position = list[str](), 0
    while block := opening.match(text, position):
        end = text.find(f"</{block[1]}>", block.end())
        if end < 0 or inside.search(text, block.end(), end):
            return False
        tags.append(block[1])
        position = end + len(f"</{block[1]}>")
    is_last = tags[-1:] == ["answer"] and tags.count("answer") == 1
    return is_last and not text[position:].strip()
