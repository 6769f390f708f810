"""The verifiers of reasoning-gym."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward
from grupo.rewards.extract_answer import Extractor, whole_text
from grupo.tasks.reasoning_gym import GymSettings, create_gym_dataset

# Some verifiers pass the policy's text to Python's `eval`. They get texts only that are harmless in
# there: sums of numbers, and lists of capitals, digits and quotes. The reward of others is 0.
SAFE_SUM = re.compile(r"(?:[0-9+\-/() ]|(?<!\*)\*(?!\*)){1,500}")
SAFE_LIST = re.compile(r"[0-9A-Z_'\", \[\]\n-]{1,4000}")
SAFE_PATTERNS = {
    "binary_matrix": SAFE_LIST,
    "countdown": SAFE_SUM,
    "n_queens": SAFE_LIST,
    "puzzle24": SAFE_SUM,
    "spiral_matrix": SAFE_LIST,
    "string_insertion": SAFE_LIST,
}
# No such pattern exists for expressions in letters.
UNSAFE_FAMILIES = ("intermediate_integration", "polynomial_multiplication", "simple_integration")


@component
class ReasoningGymVerifier(PerRolloutReward):
    """The score of the task family's verifier for the extracted answer, from 0 to 1.

    A missing answer scores 0. Many verifiers give partial credit to a text that contains the right
    answer, so extract the answer from the text, or long texts are rewarded.

    Args:
        extract: Finds the answer in the rollout's text.
    """

    extract: Extractor = whole_text

    def score(self, task: Task, rollout: Rollout) -> float:
        verify = load_verifier(task.source, task.columns.get("settings", ()))
        answer = self.extract(rollout.text)
        safe_pattern = SAFE_PATTERNS.get(task.source)
        if answer is None or (safe_pattern and not safe_pattern.fullmatch(answer)):
            return 0.0
        return verify(answer, task.columns["entry"])


@lru_cache(maxsize=256)
def load_verifier(family: str, settings: GymSettings = ()) -> Callable[[str, Any], float]:
    """The verifier of a family; raises `ConfigError` if it would run the policy's text as code."""
    if family in UNSAFE_FAMILIES:
        raise ConfigError(
            f"The verifier of {family} runs the policy's text as Python code. "
            "Use MathEqual, which compares it with the task's reference answer."
        )
    return create_gym_dataset(family, settings).score_answer
