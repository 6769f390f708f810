"""GRPO-CARE: right, and as the reasoning would have it. Chen et al., 2025, arXiv:2506.16141."""

from dataclasses import replace

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.intrinsic import MeanSignal
from grupo.algo.losses import Reinforce
from grupo.core import group_ops
from grupo.core.batch import Batch, PerRollout
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.core.reference_update import ReferenceUpdate
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="GRPO-CARE: Consistency-Aware Reinforcement Learning for Multimodal Reasoning",
    use="Answers are right more often, and follow from their reasoning less often.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("grpo-care",),
)


@component
class ConsistencyBonus:
    """x + bonus a for who is right and whose answer, c, is likely enough to the reference.

    c = exp(mean log pi_ref of the answer's tokens), `top` at most. Right: a > 0.1, a >= mean(a).
    Likely enough: c >= the mean c of those who are right - `margin`.
    """

    consistency_coef: float
    margin: float
    likelihood_cap: float = 0.95
    required_reward_terms = ("correct",)
    required_signals = frozenset(
        {"logp@ref", "step/answer"}
    )  # the latter 1 at the tokens of the answer

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        a, c, g = batch.reward_terms["correct"], self.answer_likelihood(batch), batch.group
        right = (a > 0.1) & (a >= group_ops.mean(a, g) - 1e-9)  # a mean can round above
        return x + self.consistency_coef * a * (
            right & (c >= group_ops.mean_where(right, c, g) - self.margin)
        )

    def answer_likelihood(self, batch: Batch) -> PerRollout:
        """c of each rollout, 0 without an answer."""
        answer = replace(batch, mask=batch.mask & (batch.signals["step/answer"] > 0))
        c = MeanSignal("logp@ref")(batch.reward, answer).exp().clamp(max=self.likelihood_cap)
        return c * (answer.lengths > 0)


def grpo_care(group_size: int = 8, consistency_coef: float = 0.5, margin: float = 0.01) -> Method:
    """A of r + `bonus` a where the answer follows, by a reference that trails the policy; no KL.

    parts["correct"]; "step/answer" is 1 between the tags of the answer. The loss is on policy.
    """
    # Numbers of the released code: the reference takes 0.5 % of the policy every 10 steps.
    credit = chain(ConsistencyBonus(consistency_coef, margin), Center(), ScaleByStd(eps=1e-4))
    played, follow = GroupSampler(group_size), ReferenceUpdate(rate=0.005, every=10)
    return Method(sampler=played, advantage=credit, loss=Reinforce(), reference=follow)
