"""CHORD-mu: from imitation to exploration on one schedule. Zhang et al., 2025, arXiv:2508.11408."""

import math

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import NLL, Clip, MixSFT, PerSourceMean, SeparateDemos
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, PositiveFraction, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.ranges import PositiveProbability
from grupo.core.schedules import Schedule
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution


def chord_mu(
    group_size: PositiveInt = 8,
    initial_sft_weight: Fraction = 0.9,
    final_sft_weight: Fraction = 0.05,
    decay_fraction: PositiveFraction = 1.0,
    clip_eps: NonNegative = 0.2,
) -> Method:
    """loss = (1 - mu) GRPO + mu SFT, mu from initial_sft_weight to final_sft_weight along a cosine.

    GRPO of policy rollouts, -log pi of demonstrations, each a mean over its own tokens.

    Args:
        group_size: policy rollouts per task.
        initial_sft_weight: mu at the beginning (authors: 0.9).
        final_sft_weight: mu after the decay (authors: 0.05).
        decay_fraction: fraction of the run over which mu decays (authors: 200 steps; 1.0 is our
            choice).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    mu = CosineDecay(initial_sft_weight, final_sft_weight, decay_fraction)
    return Method(
        sampler=WithExpertSolution(GroupSampler(group_size)),
        advantage=SeparateDemos(chain(Center(), ScaleByStd())),
        loss=MixSFT(mu, Clip(clip_eps, clip_eps), NLL()),
        aggregation=PerSourceMean(token_mean),
    )


@component
class CosineDecay(Schedule):
    """Schedule from `start` to `end` along half a cosine over a fraction of the run; then `end`.

    Args:
        start: value at the beginning of the run.
        end: value after the decay.
        decay_fraction: fraction of the run over which it decays, in (0, 1].
    """

    start: float
    end: float
    decay_fraction: PositiveProbability

    def value(self, progress: float) -> float:
        """The value at a progress in [0, 1]."""
        angle = math.pi * min(1.0, progress / self.decay_fraction)
        return self.end + (self.start - self.end) * (1 + math.cos(angle)) / 2


PAPER = Paper(
    title="On-Policy RL Meets Off-Policy Experts: Harmonizing Supervised Fine-Tuning and "
    "Reinforcement Learning via Dynamic Weighting",
    use="One stage that moves from SFT to RL should replace SFT followed by RL.",
    tags=("sft", "off-policy"),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "modelscope/Trinity-RFT, examples/mix_chord/mix_chord.yaml and chord_policy_loss.py; "
        "ms-swift, examples/train/grpo/internal/chord.sh",
    ),
    plan=(
        "mix_chord.yaml: 256 rollouts and 64 demonstrations in one minibatch of 320: one update "
        "per step"
    ),
    missing=(
        "A warm-up of mu from 0, which chord-mu does not use.",
        "Truncated answers are left out of the loss in chord.sh (overlong_filter).",
        (
            "The dual clip of 3 that Trinity-RFT's PPO loss has in later versions. At one update "
            "per step the ratio is 1, and neither clip acts."
        ),
    ),
    deviations=(
        (
            "mu decays over the whole run, in chord.sh and by the comments of mix_chord.yaml over "
            "200 steps. The values of the yaml itself are another mixture: phi, and mu from 0 "
            "to 0.5 in 200 steps, then to 0.02 in 400."
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
    audit=(
        "loss, schedule and constants of chord-mu compared with the authors' Trinity-RFT and with "
        "ms-swift's script"
    ),
)
