"""Rewards that match the text of a rollout, and a length penalty.

A search of Python's regular expressions cannot be interrupted, not even by a time limit: avoid
patterns with nested repetitions such as (a+)+.
"""

import re
from functools import lru_cache

from grupo.core.component import component
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward, reference_text
from grupo.rewards.extract_answer import Extractor, InsideTagOrWhole, whole_text
from grupo.util.errors import ConfigError


@component
class ExactMatch(PerRolloutReward):
    """1 if the extracted answer equals the reference answer as text, else 0.

    Args:
        extract: Finds the answer in the rollout's text.
    """

    extract: Extractor = whole_text

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        return float(self.extract(rollout.text) == reference_text(task))


@component
class LabelMatch(PerRolloutReward):
    """1 if the extracted answer equals the reference answer but for upper and lower case, else 0.

    CLS-RL, Li et al. (arXiv:2503.16188).

    Args:
        extract: Finds the answer in the rollout's text; no answer is wrong.

    >>> from grupo.core.types import Response
    >>> texts = ("<think>a</think><answer>Cat</answer>", "cat", "a cat")
    >>> rollouts = [Rollout((("?", Response((), (), text=text)),)) for text in texts]
    >>> LabelMatch()(Task("k", "?", "cat"), rollouts)
    [1.0, 1.0, 0.0]
    """

    extract: Extractor = InsideTagOrWhole("answer")

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        text = self.extract(rollout.text)
        return float(text is not None and text.lower() == reference_text(task).lower())


@component
class RegexMatch(PerRolloutReward):
    """1 if the pattern matches anywhere in the text, else 0.

    Args:
        pattern: A regular expression; a dot matches newlines too.
    """

    pattern: str

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def __post_init__(self) -> None:
        _compile_pattern(self.pattern)

    def score(self, task: Task, rollout: Rollout) -> float:
        return float(_compile_pattern(self.pattern).search(rollout.text) is not None)


@component
class RegexAnswer(PerRolloutReward):
    """1 if the first group of the pattern's last match equals the reference answer, else 0.

    Args:
        pattern: A regular expression with a group; a dot matches newlines too.
    """

    pattern: str

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def __post_init__(self) -> None:
        if _compile_pattern(self.pattern).groups < 1:
            raise ConfigError(
                f"pattern: {self.pattern!r} has no group. Allowed: a pattern with a group."
            )

    def score(self, task: Task, rollout: Rollout) -> float:
        answers = [match[1] for match in _compile_pattern(self.pattern).finditer(rollout.text)]
        return float(bool(answers) and (answers[-1] or "").strip() == reference_text(task))


@component
class TagFormat(PerRolloutReward):
    """1 if the text consists of these tags in order, each once and not empty, else 0.

    Nothing but white space stands before, between and after the tags.

    Args:
        tags: Names of the tags, without brackets.
        may_be_empty: Those that may be empty, such as ("think",) for thoughts that are skipped.
    """

    tags: tuple[str, ...] = ("think", "answer")
    may_be_empty: tuple[str, ...] = ()

    def score(self, task: Task, rollout: Rollout) -> float:
        names = "|".join(map(re.escape, self.tags))
        rest = rf"(?:(?!</?(?:{names})>).)*"
        filled = rf"\s*(?!</?(?:{names})>)\S{rest}"
        blocks = (
            rf"<{re.escape(tag)}>{rest if tag in self.may_be_empty else filled}</{re.escape(tag)}>"
            for tag in self.tags
        )
        pattern = _compile_pattern(r"\s*" + r"\s*".join(blocks) + r"\s*")
        return float(pattern.fullmatch(rollout.text) is not None)


@component
class LengthPenalty(PerRolloutReward):
    """-penalty_coef for every token of the rollout beyond max_length, all its responses together.

    Args:
        max_length: Tokens without a penalty.
        penalty_coef: Penalty of each further token.
    """

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
