"""Rewards that read the text of a rollout: 1 or 0, and a penalty of its length.

Python's regular expressions cannot be interrupted while they search, by a time limit either: keep
patterns free of repeated repetitions such as (a+)+.
"""

import re
from functools import lru_cache

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward, reference_text
from grupo.rewards.extract_answer import Extractor, whole_text


@component
class ExactMatch(PerRolloutReward):
    """1 when the extracted answer is the task's, letter for letter."""

    extract: Extractor = whole_text

    def score(self, task: Task, rollout: Rollout) -> float:
        return float(self.extract(rollout.text) == reference_text(task))


@component
class RegexMatch(PerRolloutReward):
    """1 when the pattern is found in the text."""

    pattern: str

    def __post_init__(self) -> None:
        _compile_pattern(self.pattern)

    def score(self, task: Task, rollout: Rollout) -> float:
        return float(_compile_pattern(self.pattern).search(rollout.text) is not None)


@component
class RegexAnswer(PerRolloutReward):
    """1 when what the pattern's first group captures, where it is found last, is the answer."""

    pattern: str

    def __post_init__(self) -> None:
        if _compile_pattern(self.pattern).groups < 1:
            raise ConfigError(
                f"pattern: {self.pattern!r} captures nothing. Allowed: one with a group."
            )

    def score(self, task: Task, rollout: Rollout) -> float:
        found = [match[1] for match in _compile_pattern(self.pattern).finditer(rollout.text)]
        return float(bool(found) and (found[-1] or "").strip() == reference_text(task))


@component
class TagFormat(PerRolloutReward):
    """1 when the text is these tags one after another, each once, and nothing outside them."""

    tags: tuple[str, ...] = ("think", "answer")

    def score(self, task: Task, rollout: Rollout) -> float:
        names = "|".join(map(re.escape, self.tags))
        inside = rf"(?:(?!</?(?:{names})>).)*"
        blocks = (rf"<{re.escape(tag)}>{inside}</{re.escape(tag)}>" for tag in self.tags)
        wanted = _compile_pattern(r"\s*" + r"\s*".join(blocks) + r"\s*")
        return float(wanted.fullmatch(rollout.text) is not None)


@component
class LengthPenalty(PerRolloutReward):
    """-rate for every action beyond the budget."""

    max_length: int
    penalty_coef: float = 0.001

    def score(self, task: Task, rollout: Rollout) -> float:
        return -self.penalty_coef * max(0, rollout.length - self.max_length)


@lru_cache(maxsize=256)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.DOTALL)
    except re.error as error:
        raise ConfigError(f"pattern: {pattern!r} is not a regular expression: {error}.") from error
