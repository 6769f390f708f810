"""The verifiers of reasoning-gym."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, whole_text
from grupo.core.types import Rollout, Task
from grupo.rewards.base import AnswerError, PerRolloutReward
from grupo.rewards.reasoning_gym_guards import (
    GUARDS,
    NEARLY_RIGHT,
    NO_GUARD,
    REFUSED_FAMILIES,
    Entry,
    Guard,
    Verifier,
    char_limit,
    partial_credit_char_limit,
)
from grupo.tasks.reasoning_gym import GymSettings, create_gym_dataset
from grupo.util.errors import ConfigError

ROUNDING_ERROR = 1e-6  # of a verifier that adds up fractions


@component
class ReasoningGymVerifier(PerRolloutReward):
    """The score of the task family's verifier for the extracted answer, from 0 to 1.

    A missing answer scores 0. Families whose verifiers pay for answers made without the task have
    guards or are refused; see docs/graders.md. An answer on which the verifier raises an error
    scores 0 and counts as an answer error; if the verifier raises on the reference answer, too, the
    rollout fails.

    Many verifiers give partial credit to a text that contains the right answer, so extract the
    answer from the text, or long texts are rewarded.

    Args:
        extract: Finds the answer in the rollout's text.
    """

    extract: Extractor = whole_text

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        verifier = load_verifier(task.source, task.columns.get("settings", ()))
        answer = self.extract(rollout.text)
        return 0.0 if answer is None else verifier(answer, task.columns["entry"])

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for tasks of refused families, and of other sources."""
        for task in tasks:
            if "entry" not in task.columns:
                raise ConfigError(
                    f"tasks: {task.key} of {task.source!r} has no column 'entry', which"
                    " ReasoningGymVerifier reads. Allowed: tasks of reasoning-gym."
                )
            load_verifier(task.source, task.columns.get("settings", ()))


@dataclass(frozen=True)
class GuardedVerifier:
    """A family's verifier behind its guard.

    Args:
        verify: The function of reasoning-gym.
        guard: Limits of what it may pay.
    """

    verify: Verifier
    guard: Guard = NO_GUARD

    def __call__(self, answer: str, entry: Entry) -> float:
        """The score from 0 to 1; raises `AnswerError` if the verifier fails on this answer only."""
        if len(answer) > char_limit(entry) or not self.guard.accepts(answer, entry):
            return 0.0
        try:
            score = self._score(answer, entry)
        except Exception as error:  # verifiers parse the policy's text, and many do not check it
            self._score(entry["answer"], entry)
            raise AnswerError(f"the verifier raised {type(error).__name__}: {error}") from error
        if score >= NEARLY_RIGHT:
            return score
        is_too_long = len(answer) > partial_credit_char_limit(entry)
        return 0.0 if is_too_long else score * self.guard.partial_credit

    def _score(self, answer: str, entry: Entry) -> float:
        score = float(self.verify(answer, entry))
        if not 0 <= score <= 1 + ROUNDING_ERROR:
            raise ValueError(f"the verifier returned {score}. Allowed: 0 to 1.")
        return min(score, 1.0)


@lru_cache(maxsize=256)
def load_verifier(family: str, settings: GymSettings = ()) -> GuardedVerifier:
    """The guarded verifier of a family; raises `ConfigError` for families that are refused."""
    if family in REFUSED_FAMILIES:
        raise ConfigError(f"ReasoningGymVerifier refuses {family}: {REFUSED_FAMILIES[family]}")
    dataset = create_gym_dataset(family, settings)
    return GuardedVerifier(dataset.score_answer, GUARDS.get(family, NO_GUARD))
