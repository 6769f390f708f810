"""reasoning-gym's own verifiers."""

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

# Some verifiers hand the text of the policy to Python's `eval`. Only texts that cannot do anything
# there reach them: sums of numbers, and lists of capitals, digits and quotes. Others earn 0.
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
# No such line can be drawn through expressions in letters.
UNSAFE_FAMILIES = ("intermediate_integration", "polynomial_multiplication", "simple_integration")


@component
class ReasoningGymVerifier(PerRolloutReward):
    """What reasoning-gym's verifier of the task's family says of the extracted answer, in 0..1.

    An answer that is missing earns 0. Many verifiers pay a little for an answer that contains the
    right one: extract the answer, or talking at length is paid.
    """

    extract: Extractor = whole_text

    def score(self, task: Task, rollout: Rollout) -> float:
        score = load_verifier(task.source, task.columns.get("settings", ()))
        answer = self.extract(rollout.text)
        harmless = SAFE_PATTERNS.get(task.source)
        if answer is None or (harmless and not harmless.fullmatch(answer)):
            return 0.0
        return score(answer, task.columns["entry"])


@lru_cache(maxsize=256)
def load_verifier(family: str, settings: GymSettings = ()) -> Callable[[str, Any], float]:
    """The verifier of a family under the settings its tasks were made with."""
    if family in UNSAFE_FAMILIES:
        raise ConfigError(
            f"The verifier of {family} runs what the policy writes as Python code. "
            "Use SameMath, which compares with the task's answer and runs nothing."
        )
    return create_gym_dataset(family, settings).score_answer
