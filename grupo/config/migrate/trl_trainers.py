"""The methods of TRL's RLOOConfig and AsyncGRPOConfig, and the defaults that GRPOConfig has not."""

from collections.abc import Mapping
from typing import Any

from grupo.algo.advantages import (
    AdvantageEstimator,
    Center,
    ClampAdvantage,
    ScaleByStd,
    StandardiseBatch,
)
from grupo.algo.advantages.kl_in_reward import KLInReward
from grupo.algo.aggregation import sequence_mean, token_mean
from grupo.algo.losses import Clip
from grupo.algo.ratios import RatioTo, product
from grupo.config.migrate.objective import Objective
from grupo.config.migrate.settings import OptionValues
from grupo.config.migrate.trl_objective import NOT_TRANSLATED, reference_of
from grupo.core.group_ops import leave_one_out_mean, population_std
from grupo.rollouts.samplers import GroupSampler

TRAINER = "trainer"  # the name under which a script's options hold the kind of its trainer
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "RLOO": {"num_generations": 2, "beta": 0.05},
    "AsyncGRPO": {
        "max_completion_length": 2048,
        "lr_scheduler_type": "constant",
        "use_vllm": True,
        "vllm_mode": "server",
        "vllm_server_base_url": "http://localhost:8000",
        "max_staleness": 4,
    },
}
NORMALIZATION_EPS = 1e-4  # of RLOOTrainer's normalize_advantages
ASYNC_EPS = 1e-8  # AsyncGRPOTrainer adds it to the population's standard deviation


def rloo_objective(source: OptionValues, minibatches: int) -> Objective:
    """The objective of an RLOOConfig: PPO's clip of the ratio of the whole answer.

    The KL divergence of the answer lowers its reward. The baseline is the mean of the others.

    Args:
        source: The options.
        minibatches: Updates per pass over a step.
    """
    name = "mask_truncated_completions"
    if source.flag(name):
        source.differs(name, NOT_TRANSLATED[name])
    epochs = int(source.number("num_iterations", 1))
    return Objective(
        sampler=_sampler(source),
        policy_loss=Clip(*_clip_range(source), product),
        advantage=_rloo_advantage(source),
        aggregation=sequence_mean,
        epochs=epochs,
        minibatches=minibatches,
        reference=reference_of(source, epochs * minibatches),
    )


def async_objective(source: OptionValues, minibatches: int) -> Objective:
    """The objective of an AsyncGRPOConfig: PPO's clip of the ratio to the engine's probabilities.

    Args:
        source: The options.
        minibatches: Updates per pass over a step.
    """
    name = "gradient_accumulation_steps"
    if source.number(name, 1) > 1:
        source.differs(
            name,
            "in TRL each micro-batch is divided by its own tokens; the nearest aggregation is"
            " token_mean, that of the whole update",
        )
    if source.number("weight_sync_steps", 1) != 1:
        source.differs("weight_sync_steps", "the engine has new weights after every step")
    return Objective(
        sampler=_sampler(source),
        policy_loss=Clip(*_clip_range(source), RatioTo("sampler")),
        advantage=(Center(), ScaleByStd(ASYNC_EPS, population_std)),
        aggregation=token_mean,
        minibatches=minibatches,
    )


def _sampler(source: OptionValues) -> GroupSampler:
    return GroupSampler(int(source.number("num_generations", 8)))


def _clip_range(source: OptionValues) -> tuple[float, float]:
    low = source.number("epsilon", 0.2)
    return low, source.number("epsilon_high", low)


def _rloo_advantage(source: OptionValues) -> tuple[AdvantageEstimator, ...]:
    """The clip of rewards, the KL divergence, the baseline and the normalization, in this order."""
    estimators: list[AdvantageEstimator] = []
    if source.get("reward_clip_range") is not None:
        estimators.append(ClampAdvantage(*source.pair("reward_clip_range", (-10.0, 10.0))))
    if kl_coef := source.number("beta", 0.05):
        estimators.append(KLInReward(kl_coef))
    estimators.append(Center(leave_one_out_mean))
    if source.flag("normalize_advantages"):
        estimators.append(StandardiseBatch(NORMALIZATION_EPS))
    return tuple(estimators)
