"""The method of a GRPOConfig: TRL 1.16's loss types, ratios, KL, scaling and corrections."""

from typing import Any

from grupo.algo.advantages import (
    AdvantageEstimator,
    Center,
    PerRewardTerm,
    ScaleByStd,
    StandardiseBatch,
    chain,
)
from grupo.algo.aggregation import (
    Aggregation,
    ConstantLength,
    sequence_mean,
    token_mean,
    token_sum,
)
from grupo.algo.losses import KL, Clip, CorrectedKL, CorrectedLoss, Loss, WeightedReinforce
from grupo.algo.losses.importance_correction import (
    BoundedIS,
    ImportanceWeight,
    IntervalMask,
    TruncatedIS,
)
from grupo.algo.ratios import CappedRatio, SequenceTokenRatio, sequence, token
from grupo.algo.token_level import per_action, row_sum
from grupo.config.migrate.objective import Objective
from grupo.config.migrate.settings import OptionValues
from grupo.core.reference_update import ReferenceUpdate
from grupo.methods.lite_ppo import ScaleByBatchStd
from grupo.methods.off_policy_sequence_masking import OffPolicySequenceMask
from grupo.methods.sapo import SoftGateLoss
from grupo.methods.vespo import GammaKernel
from grupo.rollouts.samplers import GroupSampler

EPS = 1e-4  # TRL adds it to every standard deviation
RATIOS = {"token": token, "sequence": sequence, "sequence_token": SequenceTokenRatio()}
AGGREGATIONS = {
    "grpo": sequence_mean,
    "sapo": sequence_mean,
    "luspo": token_sum,
    "bnpo": token_mean,
    "dapo": token_mean,
    "cispo": token_mean,
    "vespo": token_mean,
}
TOKEN_COUNT_OF_STEP = ("dapo", "cispo", "vespo")
CLIPPED = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo")
NOT_TRANSLATED = {
    "mask_truncated_completions": "no component knows which answers are truncated; the nearest is"
    " OverlongPenalty, which lowers the reward of long answers",
    "use_adaptive_entropy": "the nearest is EntropyBonus(TargetEntropy(…)) of skywork_or1, whose"
    " coefficient begins at 0",
}


def translate_objective(
    source: OptionValues, length: int, minibatches: int, rewards: list[dict[str, Any]]
) -> Objective:
    """The objective of a GRPOConfig.

    Args:
        source: The options.
        length: Most tokens of an answer.
        minibatches: Updates per pass over a step.
        rewards: The reward functions of the recipe, with names and weights.
    """
    loss_type = _loss_type(source)
    ratio = _ratio(source)
    epochs = int(source.number("num_iterations", 1))
    aggregation = AGGREGATIONS.get(loss_type, ConstantLength(length))
    _name_other_denominators(source, loss_type, minibatches)
    for name, reason in NOT_TRANSLATED.items():
        if source.number(name, 0.0) or source.flag(name):
            source.differs(name, reason)
    if source.number("top_entropy_quantile", 1.0) < 1:
        source.differs(
            "top_entropy_quantile",
            "the nearest is TopEntropyMask, which reads the entropy before the step and masks"
            " the KL term too",
        )
    return Objective(
        sampler=GroupSampler(int(source.number("num_generations", 8))),
        policy_loss=_corrected(source, _policy_loss(source, loss_type, ratio), loss_type),
        kl=_kl(source, ratio),
        entropy_coef=_entropy_coef(source, aggregation),
        advantage=_advantage(source, rewards),
        aggregation=aggregation,
        epochs=epochs,
        minibatches=minibatches,
        reference=reference_of(source, epochs * minibatches),
    )


def _loss_type(source: OptionValues) -> str:
    name = str(source.get("loss_type", "dapo"))
    if name in (*AGGREGATIONS, "dr_grpo"):
        return name
    source.differs("loss_type", "it is not among the losses of TRL 1.16; 'dapo' is in its place")
    return "dapo"


def _ratio(source: OptionValues) -> Any:
    level = str(source.get("importance_sampling_level", "token"))
    if level not in RATIOS:
        source.differs("importance_sampling_level", "the ratio is per token in its place")
    return RATIOS.get(level, token)


def _name_other_denominators(source: OptionValues, loss_type: str, minibatches: int) -> None:
    """Name averages of TRL that are over another set of tokens than those of one update."""
    if loss_type in TOKEN_COUNT_OF_STEP and minibatches > 1:
        source.differs(
            "loss_type",
            "an update is divided by its own tokens, in TRL by the mean over the step's updates;"
            " the nearest aggregation is token_mean",
        )
    if loss_type == "bnpo" and source.number("gradient_accumulation_steps", 1) > 1:
        source.differs(
            "loss_type",
            "in TRL each micro-batch is divided by its own tokens; the nearest aggregation is"
            " token_mean, that of the whole update",
        )


def _policy_loss(source: OptionValues, loss_type: str, ratio: Any) -> Loss:
    low = source.number("epsilon", 0.2)
    high = source.number("epsilon_high", low)
    cap = source.optional("delta")
    positive = source.number("sapo_temperature_pos", 1.0)
    negative = source.number("sapo_temperature_neg", 1.05)
    kernel = GammaKernel(
        (source.number("vespo_k_pos", 2.0), source.number("vespo_lambda_pos", 3.0)),
        (source.number("vespo_k_neg", 3.0), source.number("vespo_lambda_neg", 2.0)),
    )
    if loss_type == "cispo":  # epsilon_high is the cap itself
        return WeightedReinforce(CappedRatio(high, ratio))
    if loss_type == "sapo":
        return SoftGateLoss(positive, negative, ratio)
    if loss_type == "vespo":
        return WeightedReinforce(kernel)
    if cap is not None and cap < 1 + high:
        source.differs(
            "delta",
            "a cap below 1 + epsilon_high acts inside TRL's clip; the nearest component is"
            " CappedRatio as the ratio of Clip",
        )
    elif cap is not None:
        ratio = CappedRatio(cap, ratio)
    return Clip(low, high, ratio)


def _corrected(source: OptionValues, loss: Loss, loss_type: str) -> Loss:
    """The loss with its mask for stale answers and the weight that corrects vLLM's numerics."""
    threshold = source.optional("off_policy_mask_threshold")
    if threshold is not None:
        loss = CorrectedLoss(loss, OffPolicySequenceMask(threshold))
    is_corrected = source.flag("vllm_importance_sampling_correction", True)
    cap = source.number("vllm_importance_sampling_clip_max", 3.0)
    cap = source.number("vllm_importance_sampling_cap", cap)
    low = source.optional("vllm_importance_sampling_clip_min")
    mode = str(source.get("vllm_importance_sampling_mode", "sequence_mask"))
    if not (source.flag("use_vllm") and is_corrected):
        return loss
    if loss_type == "vespo":
        source.differs(
            "vllm_importance_sampling_correction",
            "TRL multiplies bounded token ratios into the kernel's ratio; the nearest is"
            ' GammaKernel(ratio=RatioTo("sampler", row_sum))',
        )
        return loss
    level = row_sum if mode.startswith("sequence") else per_action
    return CorrectedLoss(loss, ImportanceWeight(_bound(mode, low, cap), level))


def _bound(mode: str, low: float | None, cap: float) -> TruncatedIS | BoundedIS | IntervalMask:
    if mode.endswith("mask"):
        return IntervalMask(low or 0.0, cap)
    return TruncatedIS(cap) if low is None else BoundedIS(low, cap)


def _kl(source: OptionValues, ratio: Any) -> Loss:
    is_corrected = source.flag("use_bias_correction_kl", True)
    return source.number("beta", 0.0) * (CorrectedKL(ratio=ratio) if is_corrected else KL())


def _entropy_coef(source: OptionValues, aggregation: Aggregation) -> float:
    """The weight of the bonus, which TRL averages over tokens whatever the loss type is."""
    coefficient = source.number("entropy_coef", 0.0)
    if coefficient and aggregation is not token_mean:
        source.differs(
            "entropy_coef",
            "TRL averages the entropy over tokens and the loss otherwise, and a method has one"
            " aggregation for both; the nearest is EntropyBonus with token_mean",
        )
        return 0.0
    if coefficient and source.number("gradient_accumulation_steps", 1) > 1:
        source.differs(
            "entropy_coef",
            "EntropyBonus is averaged over the tokens of the update, in TRL over those of each"
            " micro-batch",
        )
    return coefficient


def _advantage(
    source: OptionValues, rewards: list[dict[str, Any]]
) -> tuple[AdvantageEstimator, ...]:
    scale = str(source.get("scale_rewards", "group")).lower()
    mode = str(source.get("multi_objective_aggregation", "sum_then_normalize"))
    if mode == "normalize_then_sum":
        weights = tuple((r["name"], r.get("weight", 1.0)) for r in rewards)
        return PerRewardTerm(chain(Center(), ScaleByStd(EPS)), weights), StandardiseBatch(EPS)
    if scale in ("none", "false"):
        return (Center(),)
    return Center(), ScaleByBatchStd(EPS) if scale == "batch" else ScaleByStd(EPS)


def reference_of(source: OptionValues, updates: int) -> ReferenceUpdate:
    """The reference policy's steps; TRL counts optimizer updates, grupo rollout steps."""
    rate = source.number("ref_model_mixup_alpha", 0.6)
    every = source.number("ref_model_sync_steps", 512) / updates
    if not source.flag("sync_ref_model"):
        return ReferenceUpdate()
    if every != round(every):
        source.differs(
            "ref_model_sync_steps",
            f"the nearest is ReferenceUpdate(every={max(1, round(every))}): the reference moves"
            f" after whole steps of {updates} updates",
        )
    return ReferenceUpdate(rate, max(1, round(every)))
