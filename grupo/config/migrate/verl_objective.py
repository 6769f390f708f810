"""The method of verl's sections `actor` and `algorithm`."""

from grupo.algo.aggregation import (
    Aggregation,
    ConstantLength,
    batch_sum,
    sequence_mean,
    token_mean,
    token_sum,
)
from grupo.algo.divergences import abs_log_ratio, k1, k2, k3_clamped
from grupo.algo.losses import (
    KL,
    Clip,
    ClippedValueLoss,
    CorrectedLoss,
    Loss,
    Reinforce,
    StraightThroughKL,
    WeightedReinforce,
    ZeroLoss,
)
from grupo.algo.ratios import ClippedRatio, SequenceTokenRatio
from grupo.config.migrate.objective import Objective, dual_clip
from grupo.config.migrate.settings import OptionValues, minibatches_of
from grupo.config.migrate.verl_advantage import sampler_of, translate_advantage
from grupo.methods.clip_cov import DropHighCovariance
from grupo.methods.dppo_kl import BinaryKLTrustRegion
from grupo.methods.dppo_tv import BinaryTVTrustRegion
from grupo.methods.gmpo import GeometricClip
from grupo.methods.kl_cov import PenaliseHighCovariance
from grupo.methods.sapo import SoftGateLoss

ACTOR = "actor_rollout_ref.actor."
ROLLOUT = "actor_rollout_ref.rollout."
CORRECTION = "algorithm.rollout_correction."
LOSS = f"{ACTOR}policy_loss."
AGGREGATIONS = {
    "token-mean": token_mean,
    "token-sum": batch_sum,
    "seq-mean-token-sum": token_sum,
    "seq-mean-token-mean": sequence_mean,
}
KL_ESTIMATORS = {
    "kl": k1,
    "k1": k1,
    "abs": abs_log_ratio,
    "mse": k2,
    "k2": k2,
    "low_var_kl": k3_clamped,
    "k3": k3_clamped,
}
OVERLONG_BUFFERS = (
    "reward.reward_kwargs.overlong_buffer_cfg",
    "reward_model.reward_kwargs.overlong_buffer_cfg",
    "reward_model.overlong_buffer",
)
SEQUENCE_MEAN = ("gspo", "sapo")  # their policy loss ignores loss_agg_mode
NEAREST = {
    "clip_cov": "verl draws without seed, and its covariance is that of a micro-batch",
    "kl_cov": "verl's covariance is that of a micro-batch",
    "geo_mean": "verl averages over a micro-batch",
    "dppo_tv": "the ratio is to the sampler, in verl to the recomputed old policy",
    "dppo_kl": "the ratio is to the sampler, in verl to the recomputed old policy",
}


def translate_objective(source: OptionValues, length: int, prompts: int) -> Objective:
    """The objective of verl's options.

    Args:
        source: The options.
        length: Most tokens of an answer.
        prompts: Prompts per step.
    """
    mode = str(source.get(f"{LOSS}loss_mode", "vanilla"))
    minibatch = source.number(f"{ACTOR}ppo_mini_batch_size", 256)
    policy_loss = _policy_loss(source, mode)
    aggregation = _aggregation(source, mode, length)
    is_gae = source.get("algorithm.adv_estimator", "gae") == "gae"
    objective = Objective(
        sampler=sampler_of(source, int(source.number(f"{ROLLOUT}n", 1))),
        policy_loss=policy_loss + _value_loss(source) if is_gae else policy_loss,
        kl=_kl(source),
        entropy_coef=source.number(f"{ACTOR}entropy_coeff", 0.0),
        advantage=translate_advantage(source),
        aggregation=aggregation,
        epochs=int(source.number(f"{ACTOR}ppo_epochs", 1)),
        minibatches=minibatches_of(source, prompts, minibatch, prompts),
    )
    _name_other_averages(source, mode, objective)
    _filters(source, objective, length)
    bypass = () if _has_sampler_ratio(source, mode) else ("bypass_mode",)
    for name in ("rollout_is", "rollout_rs", *bypass):
        if str(source.get(f"{CORRECTION}{name}", "null")).lower() not in ("null", "none", "false"):
            source.differs(f"{CORRECTION}{name}", "the nearest are tis, seq_tis and seq_mis")
    return objective


def _clip(source: OptionValues) -> tuple[float, float]:
    """The bounds; verl reads clip_ratio for those that are null, and their default is 0.2."""
    ratio = source.number(f"{ACTOR}clip_ratio", 0.2)
    names = f"{ACTOR}clip_ratio_low", f"{ACTOR}clip_ratio_high"
    low, high = (source.number(n, ratio if n in source.values else 0.2) for n in names)
    if ratio not in (low, high):
        source.remarks.append(
            f"clip_ratio={ratio:g} has no effect in verl, where clip_ratio_low and clip_ratio_high,"
            f" {low:g} and {high:g}, take its place"
        )
    return low, high


def _policy_loss(source: OptionValues, mode: str) -> Loss:
    low, high = _clip(source)
    cap = source.number(f"{ACTOR}clip_ratio_c", 3.0)
    losses: dict[str, Loss] = {
        "gspo": Clip(low, high, SequenceTokenRatio()),
        "cispo": WeightedReinforce(ClippedRatio(low, high)),
        "gpg": Reinforce(),
        "sapo": SoftGateLoss(
            source.number(f"{ACTOR}tau_pos", 1.0), source.number(f"{ACTOR}tau_neg", 1.05)
        ),
        "clip_cov": CorrectedLoss(
            Clip(low, high),
            DropHighCovariance(
                source.number(f"{LOSS}clip_cov_ratio", 2e-4),
                source.number(f"{LOSS}clip_cov_lb", 1.0),
                source.number(f"{LOSS}clip_cov_ub", 5.0),
            ),
        ),
        "kl_cov": PenaliseHighCovariance(
            source.number(f"{LOSS}kl_cov_ratio", 2e-4), source.number(f"{LOSS}ppo_kl_coef", 0.1)
        ),
        "geo_mean": GeometricClip(low, high),
        "dppo_tv": WeightedReinforce(BinaryTVTrustRegion(low, high, cap)),
        "dppo_kl": WeightedReinforce(BinaryKLTrustRegion(low, high, cap)),
    }
    if mode in NEAREST and not _has_sampler_ratio(source, mode):
        source.differs(f"{LOSS}loss_mode", f"the nearest loss is in its place: {NEAREST[mode]}")
    if mode not in (*losses, "vanilla"):
        source.differs(f"{LOSS}loss_mode", "grupo has no such loss; vanilla is in its place")
    return losses.get(mode) or Clip(low, high, dual_clip(source, f"{ACTOR}clip_ratio_c", cap, high))


def _has_sampler_ratio(source: OptionValues, mode: str) -> bool:
    """Whether verl's ratio is to the sampler, as that of DPPO is here."""
    return mode in ("dppo_tv", "dppo_kl") and source.flag(f"{CORRECTION}bypass_mode")


def _aggregation(source: OptionValues, mode: str, length: int) -> Aggregation:
    name = str(source.get(f"{ACTOR}loss_agg_mode", "token-mean"))
    factor = int(source.number(f"{ACTOR}loss_scale_factor", 0))
    if mode in SEQUENCE_MEAN:
        return sequence_mean
    if name == "seq-mean-token-sum-norm":
        if not factor:
            source.remarks.append(
                f"the constant of loss_agg_mode is max_response_length, {length}; without a"
                " loss_scale_factor verl divides by the width of the padded batch"
            )
        return ConstantLength(factor or length)
    if name not in AGGREGATIONS:
        source.differs(f"{ACTOR}loss_agg_mode", "grupo has no such average; token_mean is used")
    return AGGREGATIONS.get(name, token_mean)


def _kl(source: OptionValues) -> Loss:
    coefficient = source.number(f"{ACTOR}kl_loss_coef", 0.001)
    name = str(source.get(f"{ACTOR}kl_loss_type", "low_var_kl"))
    if not (source.flag(f"{ACTOR}use_kl_loss") and coefficient):
        return ZeroLoss()
    estimator = KL_ESTIMATORS.get(name.removesuffix("+"))
    if estimator is None:
        source.differs(f"{ACTOR}kl_loss_type", "verl has no such estimator of tokens; k3 is used")
    if name.endswith("+") and estimator is not None:
        return coefficient * StraightThroughKL(estimator)
    return coefficient * KL(estimator or k3_clamped)


def _value_loss(source: OptionValues) -> Loss:
    bound = source.number("critic.cliprange_value", 0.5)
    source.differs(
        "algorithm.adv_estimator",
        "verl whitens the advantages and trains a value model of its own; here GAE has a linear"
        " head on the policy's features (GAE(value_head=…) takes others) and is not whitened",
    )
    return 0.5 * ClippedValueLoss(bound)


def _name_other_averages(source: OptionValues, mode: str, objective: Objective) -> None:
    """Name the terms that verl averages otherwise than the policy loss."""
    name = source.get(f"{ACTOR}loss_agg_mode", "token-mean")
    if mode not in SEQUENCE_MEAN or name == "seq-mean-token-mean":
        return
    terms = {
        "kl_loss_coef": not isinstance(objective.kl, ZeroLoss),
        "entropy_coeff": bool(objective.entropy_coef),
    }
    for term in (f"{ACTOR}{term}" for term, is_given in terms.items() if is_given):
        source.differs(
            term,
            f"it is averaged by sequence_mean, as the policy loss of {mode} is, and in verl by"
            f" {name}; loss_agg_mode='seq-mean-token-mean' is equal",
        )


def _filters(source: OptionValues, objective: Objective, length: int) -> None:
    rounds = int(source.number("algorithm.filter_groups.max_num_gen_batches", 10)) or 10
    metric = source.get("algorithm.filter_groups.metric")
    if source.flag("algorithm.filter_groups.enable"):
        objective.dynamic_sampling = rounds
        if metric not in (None, "seq_final_reward", "seq_reward"):
            source.remarks.append(
                f"groups are filtered by their reward, in verl by {metric}: keep_nonzero_std"
            )
    for place in OVERLONG_BUFFERS:
        buffer = int(source.number(f"{place}.len", 4096))
        if source.flag(f"{place}.enable"):
            objective.overlong = (length, buffer)
        source.used.add(f"{place}.log")
