"""ReMax: the greedy answer's reward is the baseline. Li et al., 2023, arXiv:2310.10505."""

from torch import Tensor

from grupo.algo.advantages import chain
from grupo.algo.advantages.kl_in_reward import KLInReward
from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithGreedyBaseline


def remax(group_size: PositiveInt = 1, kl_coef: NonNegative = 0.0) -> Method:
    """A = r - r(greedy answer to the same prompt), for every token of the answer.

    loss = mean over answers of sum over tokens of -A log pi (algorithm 1). kl_coef log(old / ref)
    of the whole answer is subtracted from its reward first.

    Args:
        group_size: rollouts per task.
        kl_coef: weight of the KL in the reward (algorithm 1 has none).
    """
    baseline = SubtractRewardTerm("greedy")
    return Method(
        sampler=WithGreedyBaseline(GroupSampler(group_size)),
        advantage=chain(KLInReward(kl_coef), baseline) if kl_coef else baseline,
        loss=Reinforce(),
        aggregation=token_sum,
    )


@component
class SubtractRewardTerm:
    """x - a component of the reward.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0], reward_terms={"greedy": [0.25, 0.25]})
    >>> SubtractRewardTerm("greedy")(torch.tensor([1.0, 0.0]), batch).tolist()
    [0.75, -0.25]
    """

    reward_term: str

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x - batch.reward_terms[self.reward_term].to(x)


PAPER = Paper(
    title="ReMax: A Simple, Effective, and Efficient Reinforcement Learning Method for Aligning "
    "Large Language Models",
    use="One rollout per prompt can be trained on, and one more can be sampled.",
    tags=("advantage",),
    verl="adv_estimator='remax' (a KL in the reward is paid from each token on, not by all)",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        (
            "liziniu/ReMax, step3_rlhf_finetuning/remax_trainer.py and "
            "training_scripts/llama2/run_llama2_7b.sh; algorithm 1"
        ),
    ),
    plan="run_llama2_7b.sh: ppo_epochs 1, one generation batch: one update per step",
    missing=(
        "The discount of 0.99 and the clamp of r - r(greedy) to [-5, 5] of the code.",
        "The answers are sampled with top_p 0.9 there.",
    ),
    deviations=(
        (
            "The mean over answers of sums over tokens is algorithm 1's; the code divides by the "
            "number of tokens."
        ),
        (
            "kl_coef is 0, as in algorithm 1 (run_llama2_7b.sh: 0.05), and the KL is that of the "
            "whole answer; the code charges each token its own."
        ),
    ),
    audit="advantage, loss and KL compared with remax_trainer.py",
)
