"""Rewards that read the text of a rollout: 1 or 0, and a penalty of its length.

Python's regular expressions cannot be interrupted while they search, by a time limit either: keep
patterns free of repeated repetitions such as (a+)+.
"""

import re
from functools import lru_cache

from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.types import Rollout, Task
from grupo.rewards.base import EachRollout, answer_of
from grupo.rewards.extract_answer import Extract, whole_text


@piece
class Exact(EachRollout):
    """1 when the extracted answer is the task's, letter for letter."""

    extract: Extract = whole_text

    def judge(self, task: Task, rollout: Rollout) -> float:
        return float(self.extract(rollout.text) == answer_of(task))


@piece
class Matches(EachRollout):
    """1 when the pattern is found in the text."""

    pattern: str

    def __post_init__(self) -> None:
        _compiled(self.pattern)

    def judge(self, task: Task, rollout: Rollout) -> float:
        return float(_compiled(self.pattern).search(rollout.text) is not None)


@piece
class Captures(EachRollout):
    """1 when what the pattern's first group captures, where it is found last, is the answer."""

    pattern: str

    def __post_init__(self) -> None:
        if _compiled(self.pattern).groups < 1:
            raise Refused(f"pattern: {self.pattern!r} captures nothing. Allowed: one with a group.")

    def judge(self, task: Task, rollout: Rollout) -> float:
        found = [match[1] for match in _compiled(self.pattern).finditer(rollout.text)]
        return float(bool(found) and (found[-1] or "").strip() == answer_of(task))


@piece
class Formatted(EachRollout):
    """1 when the text is these tags one after another, each once, and nothing outside them."""

    tags: tuple[str, ...] = ("think", "answer")

    def judge(self, task: Task, rollout: Rollout) -> float:
        names = "|".join(map(re.escape, self.tags))
        inside = rf"(?:(?!</?(?:{names})>).)*"
        blocks = (rf"<{re.escape(tag)}>{inside}</{re.escape(tag)}>" for tag in self.tags)
        wanted = _compiled(r"\s*" + r"\s*".join(blocks) + r"\s*")
        return float(wanted.fullmatch(rollout.text) is not None)


@piece
class LengthPenalty(EachRollout):
    """-rate for every action beyond the budget."""

    budget: int
    rate: float = 0.001

    def judge(self, task: Task, rollout: Rollout) -> float:
        return -self.rate * max(0, rollout.length - self.budget)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.DOTALL)
    except re.error as error:
        raise Refused(f"pattern: {pattern!r} is not a regular expression: {error}.") from error
