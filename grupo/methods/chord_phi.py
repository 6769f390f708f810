"""CHORD-phi: imitate tokens of medium probability. Zhang et al., 2025, arXiv:2508.11408."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip, MixSFT, PerSourceMean, SeparateDemos, WeightedReinforce
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution


def chord_phi(
    group_size: PositiveInt = 8, sft_weight: Fraction = 0.1, clip_eps: NonNegative = 0.2
) -> Method:
    """loss = (1 - mu) GRPO + mu mean of -sg(p (1 - p)) log p over the tokens of demonstrations.

    mu = sft_weight is constant; GRPO of policy rollouts is a mean over its own tokens.

    Args:
        group_size: policy rollouts per task.
        sft_weight: mu (authors: 0.1).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    return Method(
        sampler=WithExpertSolution(GroupSampler(group_size)),
        advantage=SeparateDemos(chain(Center(), ScaleByStd())),
        loss=MixSFT(sft_weight, Clip(clip_eps, clip_eps), WeightedReinforce(uncertainty_weight)),
        aggregation=PerSourceMean(token_mean),
    )


def uncertainty_weight(pi: Signals, batch: Batch) -> PerAction:
    """p (1 - p), (N, T): largest at p = 1/2, 0 for certain and for impossible tokens."""
    p = pi.logp.exp()
    return p * (1 - p)


PAPER = Paper(
    title="On-Policy RL Meets Off-Policy Experts: Harmonizing Supervised Fine-Tuning and "
    "Reinforcement Learning via Dynamic Weighting",
    use="Demonstrations have another style, and the policy should keep its own.",
    tags=("sft", "off-policy"),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "modelscope/Trinity-RFT, examples/mix_chord/mix_chord.yaml and chord_policy_loss.py",
    ),
    plan=(
        "mix_chord.yaml: 256 rollouts and 64 demonstrations in one minibatch of 320: one update "
        "per step"
    ),
    missing=(
        (
            "The dual clip of 3 that Trinity-RFT's PPO loss has in later versions. At one update "
            "per step the ratio is 1, and neither clip acts."
        ),
    ),
    deviations=(
        (
            "mu is 0.1, as the comments of mix_chord.yaml have it for chord-phi; the values of the "
            "yaml itself are another mixture, mu from 0 to 0.5 in 200 steps, then to 0.02 in 400."
        ),
        (
            "Each task has its own demonstrations; in the yaml 64 demonstrations of a data set of "
            "their own are beside 32 tasks."
        ),
        (
            "Either mean is over all tokens of the step; in Trinity-RFT over the tokens of a "
            "micro-batch, weighted by its number of answers."
        ),
    ),
    audit="loss, weight and constants of chord-phi compared with the authors' Trinity-RFT",
)
