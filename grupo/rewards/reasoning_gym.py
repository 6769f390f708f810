"""reasoning-gym's own verifiers."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.types import Rollout, Task
from grupo.rewards.base import EachRollout
from grupo.rewards.extract_answer import Extract, whole_text
from grupo.tasks.reasoning_gym import Settings, dataset_of

# Some verifiers hand the text of the policy to Python's `eval`. Only texts that cannot do anything
# there reach them: sums of numbers, and lists of capitals, digits and quotes. Others earn 0.
SUM = re.compile(r"(?:[0-9+\-/() ]|(?<!\*)\*(?!\*)){1,500}")
LIST = re.compile(r"[0-9A-Z_'\", \[\]\n-]{1,4000}")
HARMLESS = {
    "binary_matrix": LIST,
    "countdown": SUM,
    "n_queens": LIST,
    "puzzle24": SUM,
    "spiral_matrix": LIST,
    "string_insertion": LIST,
}
# No such line can be drawn through expressions in letters.
REFUSED = ("intermediate_integration", "polynomial_multiplication", "simple_integration")


@piece
class GymVerifier(EachRollout):
    """What reasoning-gym's verifier of the task's family says of the extracted answer, in 0..1.

    An answer that is missing earns 0. Many verifiers pay a little for an answer that contains the
    right one: extract the answer, or talking at length is paid.
    """

    extract: Extract = whole_text

    def judge(self, task: Task, rollout: Rollout) -> float:
        score = verifier(task.source, task.columns.get("settings", ()))
        answer = self.extract(rollout.text)
        harmless = HARMLESS.get(task.source)
        if answer is None or (harmless and not harmless.fullmatch(answer)):
            return 0.0
        return score(answer, task.columns["entry"])


@lru_cache(maxsize=256)
def verifier(family: str, settings: Settings = ()) -> Callable[[str, Any], float]:
    """The verifier of a family under the settings its tasks were made with."""
    if family in REFUSED:
        raise Refused(
            f"The verifier of {family} runs what the policy writes as Python code. "
            "Use SameMath, which compares with the task's answer and runs nothing."
        )
    return dataset_of(family, settings).score_answer
