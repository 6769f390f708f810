"""AMFT: imitate more while entropy is low. He et al., 2025, arXiv:2508.06944."""

from collections.abc import Sequence

from grupo.algo.advantages import Whiten
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import NLL, Clip, EntropyBonus, MixSFT, PerSourceMean, SeparateDemos
from grupo.core.component import component
from grupo.core.controllers import Controller
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution


def amft(
    target_entropy: NonNegative,
    group_size: PositiveInt = 8,
    initial_sft_weight: Fraction = 0.8,
    gain: NonNegative = 5e-4,
    clip_eps: NonNegative = 0.2,
) -> Method:
    """(1 - mu) RL + mu SFT, mu <- clip(mu + gain (target_entropy - H), 0.05, 0.95).

    RL is PPO's clip with advantages whitened over the batch and an entropy bonus of 0.01, SFT the
    likelihood of demonstrations, each a mean over its own tokens. H is the policy's mean entropy
    over all trained tokens, those of demonstrations included. A step trains with the mu that the
    steps before have set.

    Args:
        target_entropy: entropy at which mu stays, in nats (paper: the entropy after a first stage
            of SFT).
        group_size: policy rollouts per task (our choice).
        initial_sft_weight: mu at the first step.
        gain: change of mu per nat.
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    mu = IntegralController(initial_sft_weight, target_entropy, gain)
    policy_loss = Clip(clip_eps, clip_eps) + EntropyBonus(0.01)
    return Method(
        sampler=WithExpertSolution(GroupSampler(group_size)),
        advantage=SeparateDemos(Whiten()),
        loss=MixSFT(mu, policy_loss, NLL()),
        aggregation=PerSourceMean(token_mean),
    )


@component
class IntegralController(Controller):
    """mu <- clip(mu + gain (target - metric), min_value, max_value) after each step.

    Args:
        start: mu at the first step.
        target: value of the metric at which mu stays.
        gain: change of mu per unit of the metric.
        min_value: smallest mu.
        max_value: largest mu.
        metric: name of the metric.
    """

    start: float
    target: float
    gain: float
    min_value: float = 0.05
    max_value: float = 0.95
    metric: str = "policy/entropy"  # pyrefly: ignore[bad-override]

    def next_value(self, metric_values: Sequence[float]) -> float:
        mu = self.start
        for value in metric_values:
            mu = min(self.max_value, max(self.min_value, mu + self.gain * (self.target - value)))
        return mu


PAPER = Paper(
    title="AMFT: Aligning LLM Reasoners by Meta-Learning the Optimal Imitation-Exploration Balance",
    use="Demonstrations and rewards are mixed in one stage, and entropy sets the proportion.",
    tags=("sft", "entropy", "off-policy"),
    checked=("golden", "properties", "run"),
    example="amft(target_entropy=0.5)",
    catalogue=("amft",),
    source=Source("code", "TSYJ-He/AMFT, configs/main_config.yaml, src/trainer and src/controller"),
    plan="src/trainer/amft_trainer.py: every iteration generates, and makes one update",
    missing=(
        "The critic of the release: a whitened reward is the advantage.",
        (
            "The meta-gradient that the release adds to mu every 20 steps: it needs three separate "
            "gradients of one step. The release has its sign wrong."
        ),
        "The SFT stage before, which sets the target entropy.",
    ),
    deviations=(
        (
            "H counts the tokens of demonstrations, too; the release's H is that of its PPO loss "
            "alone, whose rollouts are a placeholder of random numbers on the SFT batch."
        ),
        (
            "mu changes after the step; amft_trainer.py changes it before it weights the losses of "
            "the same step."
        ),
        (
            "The likelihood is that of the next token. The cross-entropy of amft_trainer.py does "
            "not shift the logits against the labels, while its PPO loss does; the module that "
            "makes the labels is not in the release."
        ),
        (
            "Advantages are whitened over the trained tokens, with 1e-8 added to the variance. The "
            "release whitens over all positions, padding too, and adds 1e-8 to the deviation."
        ),
        "group_size is our choice; the release has one rollout for each demonstration.",
    ),
    audit=(
        "loss, controller and constants compared with the released trainer, whose generation is a "
        "placeholder"
    ),
)
