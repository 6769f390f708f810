"""Rewards that match the text of a rollout, and a length penalty, in time linear in the text."""

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, InsideTagOrWhole, whole_text
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward, reference_text
from grupo.util.errors import ConfigError
from grupo.util.linear_patterns import LinearPattern


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
        pattern: A regular expression of RE2, which neither looks around nor refers back; a dot
            matches newlines too, and $ is the end of the text.
    """

    pattern: str

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def __post_init__(self) -> None:
        LinearPattern(self.pattern)

    def score(self, task: Task, rollout: Rollout) -> float:
        return float(LinearPattern(self.pattern).occurs_in(rollout.text))


@component
class RegexAnswer(PerRolloutReward):
    """1 if the first group of the pattern's last match equals the reference answer, else 0.

    A text with more than 10,000 matches scores 0.

    Args:
        pattern: A regular expression of RE2 with a group, as that of `RegexMatch`.
    """

    pattern: str

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def __post_init__(self) -> None:
        if LinearPattern(self.pattern).groups < 1:
            raise ConfigError(
                f"pattern: {self.pattern!r} has no group. Allowed: a pattern with a group."
            )

    def score(self, task: Task, rollout: Rollout) -> float:
        answers = LinearPattern(self.pattern).matches(rollout.text)
        return float(bool(answers) and answers[-1].strip() == reference_text(task))


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
        marks = [mark for tag in self.tags for mark in (f"<{tag}>", f"</{tag}>")]
        rest = rollout.text.strip()
        for tag in self.tags:
            before, _, after = rest.partition(f"<{tag}>")
            content, close_tag, rest = after.partition(f"</{tag}>")
            is_filled = bool(content.strip()) or tag in self.may_be_empty
            if before or not close_tag or not is_filled or any(mark in content for mark in marks):
                return 0.0
            rest = rest.lstrip()
        return float(not rest)


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
