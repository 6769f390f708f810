"""The method of OpenRLHF 0.11.2: its advantages, policy losses, clips and KL divergences."""

from grupo.algo.advantages import (
    AdvantageEstimator,
    Center,
    ClampAdvantage,
    ScaleByStd,
    StandardiseBatch,
    Whiten,
)
from grupo.algo.advantages.gae import GAE
from grupo.algo.advantages.kl_in_reward import KLToGo
from grupo.algo.aggregation import sequence_mean, token_mean
from grupo.algo.divergences import k1, k2, k3_clamped
from grupo.algo.losses import (
    KL,
    Clip,
    ClippedValueLoss,
    CorrectedLoss,
    Loss,
    StraightThroughKL,
    ZeroLoss,
)
from grupo.algo.losses.importance_correction import BoundedIS, ImportanceWeight, IntervalMask
from grupo.algo.ratios import sequence, token
from grupo.config.migrate.objective import Objective, Ratio, dual_clip
from grupo.config.migrate.settings import OptionValues, minibatches_of
from grupo.core.group_ops import leave_one_out_mean
from grupo.methods.reinforce_pp import ReturnMinusKL
from grupo.rollouts.samplers import GroupSampler

Estimators = tuple[AdvantageEstimator, ...]

ESTIMATOR = "algo.advantage.estimator"
CORRECTION = "algo.advantage.is_correction_"
EPS = 1e-9  # OpenRLHF adds it to the standard deviation of a group
BASELINES: dict[str, Estimators] = {
    "gae": (),
    "reinforce": (),
    "reinforce_baseline": (Center(),),
    "rloo": (Center(leave_one_out_mean),),
    "dr_grpo": (Center(),),
    "group_norm": (Center(), ScaleByStd(EPS)),
    "flash_reinforce": (StandardiseBatch(),),
}
WHITENED = ("reinforce", "reinforce_baseline")
KL_ESTIMATORS = {"k1": k1, "k2": k2, "k3": k3_clamped}


def translate_objective(source: OptionValues, length: int, prompts: int) -> Objective:
    """The objective of OpenRLHF's options.

    Args:
        source: The options.
        length: Most tokens of an answer.
        prompts: Prompts per step.
    """
    estimator = _estimator(source)
    is_gspo = _is_gspo(source)
    is_sequence_mean = is_gspo or _is_sequence_mean(source)
    group_size = int(source.number("rollout.n_samples_per_prompt", 1))
    loss = _corrected(source, _policy_loss(source, sequence if is_gspo else token), is_gspo)
    objective = Objective(
        sampler=GroupSampler(group_size),
        policy_loss=loss + _value_loss(source) if estimator == "gae" else loss,
        kl=_kl(source),
        entropy_coef=source.number("actor.entropy_coef", 0.0),
        advantage=_advantage(source, estimator),
        aggregation=sequence_mean if is_sequence_mean else token_mean,
        epochs=int(source.number("train.max_epochs", 1)),
        minibatches=minibatches_of(
            source, prompts * group_size, source.number("train.batch_size", 128), prompts
        ),
        dynamic_sampling=10 if source.flag("algo.dynamic_filtering_enable") else 0,
    )
    if is_sequence_mean:
        _name_token_means(source, objective)
    _name_other_filter(source, objective)
    if buffer := int(source.number("reward.overlong_buffer_len", 0)):
        objective.overlong = (length, buffer)
    return objective


def _estimator(source: OptionValues) -> str:
    name = str(source.get(ESTIMATOR, "gae"))
    if name == "flash_reinforce":
        source.differs(ESTIMATOR, "StandardiseBatch, the nearest, also divides by the deviation")
    if name in BASELINES:
        return name
    source.differs(
        ESTIMATOR, "it is not among those of OpenRLHF 0.11.2; group_norm is in its place"
    )
    return "group_norm"


def _is_gspo(source: OptionValues) -> bool:
    name = str(source.get("actor.policy_loss_type", "ppo"))
    if name not in ("ppo", "gspo"):
        source.differs("actor.policy_loss_type", "OpenRLHF 0.11.2 has ppo and gspo; it became ppo")
    return name == "gspo"


def _is_sequence_mean(source: OptionValues) -> bool:
    name = str(source.get("actor.loss_agg_mode", "token-mean"))
    if name not in ("token-mean", "seq-mean-token-mean"):
        source.differs("actor.loss_agg_mode", "grupo has no such average; token_mean is used")
    return name == "seq-mean-token-mean"


def _policy_loss(source: OptionValues, ratio: Ratio) -> Clip:
    eps = source.number("actor.eps_clip", 0.2)
    low, high = source.pair("actor.eps_clip_low_high", (eps, eps))
    cap = source.optional("actor.dual_clip")
    if cap is not None:
        ratio = dual_clip(source, "actor.dual_clip", cap, high, ratio)
    return Clip(low, high, ratio)


def _corrected(source: OptionValues, loss: Loss, is_gspo: bool) -> Loss:
    """The loss with the weight of the trainer over the engine, for each token."""
    level = str(source.get(f"{CORRECTION}level", "off"))
    mode = str(source.get(f"{CORRECTION}mode", "mask"))
    gating = str(source.get(f"{CORRECTION}gating", "ratio"))
    low, high = source.pair(f"{CORRECTION}threshold", (0.5, 5.0))
    if level == "off":
        return loss
    if is_gspo or (level, gating) != ("token", "ratio"):
        source.differs(f"{CORRECTION}level", "the nearest are tis, icepop and seq_mis")
        return loss
    bound = BoundedIS(low, high) if mode == "clip" else IntervalMask(low, high)
    return CorrectedLoss(loss, ImportanceWeight(bound))


def _value_loss(source: OptionValues) -> Loss:
    source.differs(
        ESTIMATOR,
        "OpenRLHF whitens the advantages and trains a critic of its own; here GAE has a linear"
        " head on the policy's features (GAE(value_head=…) takes others) and is not whitened",
    )
    return 0.5 * ClippedValueLoss(source.number("critic.value_clip", 0.5))


def _advantage(source: OptionValues, estimator: str) -> Estimators:
    """The baseline of a group, the clamp, the KL divergence of each token, and the whitening."""
    gamma = source.number("algo.advantage.gamma", 1.0)
    lam = source.number("algo.advantage.lambd", 1.0)
    kl_coef = _kl_in_reward(source)
    before = (*BASELINES[estimator], ClampAdvantage(*source.pair("reward.clip_range", (-10, 10))))
    if estimator == "gae":
        token_rewards = (ReturnMinusKL(kl_coef, gamma=0.0),) if kl_coef else ()
        return *before, *token_rewards, GAE(gamma, lam)
    if estimator == "reinforce" and gamma != 1:
        before = *before, ReturnMinusKL(kl_coef, gamma)
    elif kl_coef:
        before = *before, KLToGo(kl_coef)
    is_scaled = not source.flag("algo.advantage.no_std_norm")
    return (*before, _whiten(source, is_scaled)) if estimator in WHITENED else before


def _whiten(source: OptionValues, is_scaled: bool) -> Whiten:
    source.differs(
        ESTIMATOR,
        "Whiten divides the variance by n - 1, OpenRLHF by n, the number of tokens: advantages"
        " are smaller by the square root of (n - 1) / n",
    )
    if not is_scaled:
        source.differs(
            "algo.advantage.no_std_norm", "Whiten, the nearest, also divides by the deviation"
        )
    return Whiten()


def _kl_in_reward(source: OptionValues) -> float:
    """The weight of the KL divergence in the reward; 0 without it."""
    coefficient = source.number("algo.kl.init_coef", 0.01)
    if source.flag("algo.kl.use_loss"):
        return 0.0
    if coefficient and source.get("algo.kl.estimator", "k1") != "k1":
        source.differs("algo.kl.estimator", "the KL divergence in the reward is k1: KLToGo")
    return coefficient


def _kl(source: OptionValues) -> Loss:
    if not source.flag("algo.kl.use_loss"):
        return ZeroLoss()
    name = str(source.get("algo.kl.estimator", "k1"))
    if name not in KL_ESTIMATORS:
        source.differs("algo.kl.estimator", "OpenRLHF has k1, k2 and k3; k1 is in its place")
    coefficient = source.number("algo.kl.init_coef", 0.01)
    estimator = KL_ESTIMATORS.get(name, k1)
    if not source.flag("algo.kl.unbiased_gradient"):
        return coefficient * KL(estimator)
    source.differs(
        "algo.kl.unbiased_gradient",
        "StraightThroughKL, the nearest, does not weight the gradient by the ratio of the policies,"
        " which is 1 in the first update of a step",
    )
    return coefficient * StraightThroughKL(estimator)


def _name_token_means(source: OptionValues, objective: Objective) -> None:
    """Name the terms that OpenRLHF averages over tokens whatever the policy loss is."""
    terms = {
        "algo.kl.init_coef": not isinstance(objective.kl, ZeroLoss),
        "actor.entropy_coef": bool(objective.entropy_coef),
    }
    for name in (name for name, is_given in terms.items() if is_given):
        source.differs(
            name,
            "it is averaged by sequence_mean, as the policy loss of gspo is, and in OpenRLHF over"
            " tokens; a method has one aggregation",
        )


def _name_other_filter(source: OptionValues, objective: Objective) -> None:
    """Name the range of mean scores, in place of which groups with different rewards are kept."""
    low, high = source.pair("algo.dynamic_filtering_range", (0.0, 1.0))
    if not objective.dynamic_sampling:
        return
    if (low, high) == (0.0, 1.0):
        source.remarks.append(
            "groups are kept whose rewards differ, in OpenRLHF those whose mean score is between"
            " 0 and 1: equal for scores of 0 and 1"
        )
    else:
        source.differs(
            "algo.dynamic_filtering_range",
            "groups are kept whose rewards differ; the nearest is KeepAccuracy",
        )
