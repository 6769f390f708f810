"""SRFT: entropy-weighted SFT and RL in one stage. Fu et al., 2025, arXiv:2506.19767."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import EntropyWeightedMix, PerSourceMean, SeparateDemos
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution


def srft(
    group_size: PositiveInt = 8, sft_coef: NonNegative = 0.5, rl_coef: NonNegative = 0.1
) -> Method:
    """SFT and RL of demonstrations, and REINFORCE of sampled rollouts, in one loss.

      demonstrations: w log-likelihood, w = sft_coef e^-H, and -A pi, A = (r - mean(r)) / std(r)
                      over all rollouts, the demonstrator's probability taken as 1
      sampled:        rl_coef e^H log-likelihood if correct, minus log-likelihood if wrong

    A step makes 2 updates, one on each of 2 minibatches.

    Args:
        group_size: rollouts per task (script: 8).
        sft_coef: weight of the imitation.
        rl_coef: weight of correct sampled rollouts.
    """
    return Method(
        sampler=WithExpertSolution(GroupSampler(group_size)),
        advantage=SeparateDemos(SignedCorrectness(), demo_advantage=chain(Center(), ScaleByStd())),
        loss=EntropyWeightedMix(sft_coef, rl_coef),
        aggregation=PerSourceMean(token_mean),
        updates=Updates(minibatches=2),
    )


@component
class SignedCorrectness:
    """1 where reward_term is above success_threshold, -1 elsewhere.

    Args:
        reward_term: name of the reward term that is read.
        success_threshold: a rollout is correct where its reward term is above this.
    """

    reward_term: str = "correct"
    success_threshold: NumberOrSchedule = 0.5

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return torch.where(
            batch.reward_terms[self.reward_term] > self.success_threshold, 1.0, -1.0
        ).to(x)


PAPER = Paper(
    title="SRFT: A Single-Stage Method with Supervised and Reinforcement Fine-Tuning for Reasoning",
    use="One stage instead of SFT and then RL, without a schedule.",
    tags=("sft", "entropy", "off-policy"),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "third_party",
        "TsinghuaC3I/Unify-Post-Training, hpt/verl/verl/mix_src/mix_core_alg.py and mix_actor.py",
    ),
    plan=(
        "exp_scripts/train_srft.sh of the same repository: train batch 128, minibatch 64: 2 "
        "updates per step"
    ),
    missing=("The entropy bonus of 0.001 of the script.",),
    deviations=(
        (
            "H of each row and the sign of its second weight are those of that code; notes on the "
            "paper print e^-H twice, against the statement that high entropy raises the weight."
        ),
        (
            "The demonstration's ratio is not clipped: it is at most 1, so the clip has no effect "
            "where A > 0."
        ),
        (
            "Each source is a mean over its own tokens. In the script that holds for the "
            "likelihood of demonstrations alone: both policy losses are one sum over the tokens of "
            "a micro-batch, divided by the padded length (loss_remove_token_mean)."
        ),
        (
            "A group is group_size sampled rollouts and the demonstration; in the script the "
            "demonstration is one of its 8 rollouts (n_prefix=1)."
        ),
        "A of demonstrations is divided by the std; the script's is not (grpo_use_std=False).",
        (
            "The demonstration's ratio is p, as in the paper: the script reshapes it to "
            "p / (p + 0.1) (off_policy_reshape)."
        ),
    ),
    audit=(
        "weights, losses and batch sizes compared with mix_core_alg.py and train_srft.sh, both by "
        "other people"
    ),
)
