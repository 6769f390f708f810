"""ARES: rewards uncertain triggers by a task's difficulty. Chen et al., 2025, arXiv:2510.08457."""

from collections.abc import Sequence
from itertools import pairwise

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.window_entropy import (
    DIFFICULTIES,
    KLOfDifficulties,
    UncertainTriggerReward,
    difficulty,
)
from grupo.algo.aggregation import token_mean
from grupo.algo.divergences import k3
from grupo.algo.losses import Clip, Loss
from grupo.algo.minibatches import Updates
from grupo.algo.ratios import CappedRatio
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.controllers import Controller, SmoothedKL
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.ranges import NonNegativeFloat
from grupo.core.requires import Requires
from grupo.core.units import RolloutSteps, Tokens
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def ares(
    group_size: PositiveInt = 8,
    trigger_tokens: tuple[int, ...] = (),
    window: Tokens = 4,
    alpha: NonNegativeFloat = 0.5,
    alpha_step: NonNegativeFloat = 0.05,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.3,
    dual_clip: Positive = 3.0,
    kl_coef: NonNegative = 0.01,
    beta_interval: RolloutSteps = 100,
) -> Method:
    """A = z-score of r + e, e the `UncertainTriggerReward`; loss = clipped ratio + kl_coef b k3.

    alpha of each difficulty rises by alpha_step x (mean N - last target), of hard tasks it falls
    by that. b of each difficulty is a `SmoothedKL` that holds a KL of 0.01. The mean is over
    tokens. A step makes 4 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' config: 8).
        trigger_tokens: ids of the tokens that may count; () for every token.
        window: tokens after a trigger whose mean entropy counts (authors' config: 4).
        alpha: first size of the reward (authors' code: 0.5).
        alpha_step: change of alpha for each trigger off the target (authors' code: 0.05).
        clip_low: ratios are clipped from 1 - clip_low (default of the authors' framework).
        clip_high: ratios are clipped to 1 + clip_high (default of the authors' framework).
        dual_clip: ratio bound where A < 0 (default of the authors' framework).
        kl_coef: weight of the KL divergence from the reference policy (authors' config: 0.01).
        beta_interval: rollout steps between two changes of b (authors' code: 100 micro-batches).
    """
    signs = (1, 1, -1)
    drifts = (
        MeanDrift(f"triggers/{bucket}", alpha, sign * alpha_step)
        for bucket, sign in zip(DIFFICULTIES, signs, strict=True)
    )
    alpha_easy, alpha_medium, alpha_hard = drifts
    betas = (SmoothedKL(interval=beta_interval, metric=f"kl_ref/{name}") for name in DIFFICULTIES)
    reward = UncertainTriggerReward(
        trigger_tokens,
        window,
        alpha_easy=alpha_easy,
        alpha_medium=alpha_medium,
        alpha_hard=alpha_hard,
    )
    kl_metrics = (KLOfDifficulties(),) if kl_coef else ()
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(*kl_metrics, reward, Center(), ScaleByStd()),
        loss=Clip(clip_low, clip_high, CappedRatio(dual_clip)) + kl_coef * KLByDifficulty(*betas),
        aggregation=token_mean,
        updates=Updates(minibatches=4),
    )


@component
class MeanDrift(Controller):
    """A number that rises by step_size (value - round(value before)) after each value but one.

    It stays between 0 and `largest`.

    Args:
        metric: The metric.
        start: The number before the second value.
        step_size: Change for each unit of the difference; negative for a number that falls.
        largest: Largest number.

    >>> MeanDrift("triggers/easy", 0.5, 0.05).next_value([3.2, 5.0])
    0.6
    """

    metric: str  # pyrefly: ignore[bad-override]
    start: NonNegativeFloat
    step_size: float
    largest: NonNegativeFloat = 2.0

    def next_value(self, metric_values: Sequence[float]) -> float:
        number = self.start
        for before, value in pairwise(metric_values):
            number += self.step_size * (value - round(before))
            number = max(0.0, min(self.largest, number))
        return number


@component
class KLByDifficulty(Loss):
    """b k3(pi, ref) in nats, (N, T), with a coefficient b for each `difficulty` of a group.

    Args:
        easy: coefficient of easy groups.
        medium: coefficient of medium groups.
        hard: coefficient of hard groups.
    """

    easy: NonNegative = 1.0
    medium: NonNegative = 1.0
    hard: NonNegative = 1.0

    requires = Requires(signals=("logp@ref",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        by_label = pi.logp.new_tensor((self.easy, self.medium, self.hard))
        coefficient = by_label[difficulty(batch)][batch.rollout, None]
        return coefficient * k3(pi.logp, batch.signals["logp@ref"])


PAPER = Paper(
    title="ARES: Multimodal Adaptive Reasoning via Difficulty-Aware Token-Level Entropy Shaping",
    use="Answers reason too long on easy tasks and too little on hard ones.",
    tags=("entropy", "length", "kl"),
    checked=("golden", "properties", "run"),
    catalogue=("ares-aepo",),
    source=Source(
        "code",
        "shawn0728/ARES: examples/reward_function/aepo.py, verl/trainer/ray_trainer.py,"
        " verl/workers/actor/dp_actor.py, verl/workers/rollout/vllm_rollout_spmd.py,"
        " experiments/AEPO/config.yaml, experiments/AEPO/train.sh",
    ),
    plan="config.yaml: 512 prompts per step in minibatches of 128, 4 updates",
    missing=(
        "The supervised first stage, whose traces grow with the difficulty of their task.",
        "The weight 0.67 of the KL of incorrect rollouts on easy tasks with a high soft cost, which"
        " the actor of the release never receives.",
        "verl's clamp of k3 to +-10, and the top-p of 0.99 with which the configuration samples.",
        "The list of trigger words, which is a file of the release; ids are an argument here.",
    ),
    deviations=(
        "alpha follows N minus the target of the step before: the release subtracts the rounded"
        " mean of N from the mean of N itself, so that its alpha follows rounding errors.",
        "Entropies are of the whole vocabulary, in the release of the 10 likeliest tokens, the"
        " generated one and one for the rest. For the threshold it leaves out the rest, and counts"
        " the mean of the windows so far at each of the last 4 tokens of an answer.",
        "The threshold is 0 in the first step, in the release measured by a validation; answers"
        " without a complete window do not count towards it.",
        "A trigger is the generated token, in the release the likeliest token at its place.",
        "The interval of beta counts the rollout steps that have rollouts of the difficulty, in the"
        " release all micro-batches. The KL that"
        " steers beta is measured once a step, before its updates; the release measures it in every"
        " micro-batch of an update, on each device for itself.",
        "The reward depends on difficulty, target and alpha, as aepo.py does. The configuration has"
        " online_filtering on, with which the release scores rollouts before it knows these three:"
        " each counts as easy, with target 0 and alpha 0.5, and is not scored again.",
        "No group is dropped. online_filtering replaces groups whose mean reward is at most 0.01 or"
        " at least 0.99.",
        "The mean is over the tokens of a minibatch; train.sh has micro-batches of one answer, so"
        " that its token mean is a mean of row means.",
    ),
    audit="reward, targets, alpha, threshold and beta compared with the files named above",
    shown=(
        "docs/guidance_shown/ares.md#ares-on-sums-of-three-difficulties",
        "tests/methods/test_ares.py::test_correct_easy_rollout_with_too_many_triggers",
    ),
)
