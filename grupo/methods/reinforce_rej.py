"""Reinforce-Rej: drop all-right and all-wrong groups. Xiong et al., 2025, arXiv:2504.11343."""

from grupo.algo.filters import informative
from grupo.algo.losses import Clip
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.methods.w_reinforce import BySign
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="A Minimalist Approach to LLM Reasoning: from Rejection Sampling to Reinforce",
    use="You suspect that choosing groups, not scaling rewards, is what makes GRPO work.",
    checked=("golden", "laws", "run"),
)


def reinforce_rej(group: int = 4, clip: float = 0.2) -> Method:
    """A = 1 for a right answer, -1 for a wrong one, of groups that have both (eq. 5).

    loss = mean over answers of mean over tokens of -min(R A, clip(R, 1 - `clip`, 1 + `clip`) A).
    """
    return Method(
        sample=Independent(group), curate=informative, credit=BySign(1.0), loss=Clip(clip, clip)
    )
