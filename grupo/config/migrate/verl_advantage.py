"""The advantages of verl's `algorithm.adv_estimator`, with its KL divergence in the reward."""

from grupo.algo.advantages import AdvantageEstimator, Center, ScaleByStd, Whiten
from grupo.algo.advantages.gae import GAE
from grupo.algo.advantages.kl_in_reward import KLInReward, KLToGo
from grupo.config.migrate.settings import OptionValues
from grupo.core.group_ops import leave_one_out_mean
from grupo.methods.gpg import ScaleByInformative
from grupo.methods.opo import center_by_length
from grupo.methods.optimal_token_baseline import SubtractTokenBaseline
from grupo.methods.passk_leave_one_out import marginal_best
from grupo.methods.reinforce_pp import ReturnMinusKL
from grupo.methods.remax import SubtractRewardTerm
from grupo.rollouts.samplers import GroupSampler, Sampler, WithGreedyBaseline

Estimators = tuple[AdvantageEstimator, ...]

NAME = "algorithm.adv_estimator"
MULTI_TURN = "actor_rollout_ref.rollout.multi_turn.enable"
BY_GROUP: dict[str, Estimators] = {
    "grpo": (Center(), ScaleByStd()),
    "grpo_vectorized": (Center(), ScaleByStd()),
    "grpo_passk": (ScaleByStd(), marginal_best),
    "rloo": (Center(leave_one_out_mean),),
    "rloo_vectorized": (Center(leave_one_out_mean),),
    "opo": (center_by_length,),
    "reinforce_plus_plus_baseline": (Center(), Whiten()),
    "gpg": (Center(), ScaleByInformative()),
}
UNSCALED: dict[str, Estimators] = {"grpo": (Center(),), "grpo_passk": (marginal_best,)}
BY_TOKEN = ("optimal_token_baseline", "tir_optimal_token_baseline")
KEEPS_LONE_REWARD = ("grpo", "grpo_vectorized", "rloo", "opo", "reinforce_plus_plus_baseline")
DISCOUNTED = ("gae", "reinforce_plus_plus")


def sampler_of(source: OptionValues, group_size: int) -> Sampler:
    """The sampler of a step, with a greedy answer for ReMax."""
    sampler = GroupSampler(group_size)
    return WithGreedyBaseline(sampler) if source.get(NAME) == "remax" else sampler


def translate_advantage(source: OptionValues) -> Estimators:
    """The advantage of verl's options, as estimators that are applied in turn."""
    name = str(source.get(NAME, "gae"))
    gamma, lam = source.number("algorithm.gamma", 1.0), source.number("algorithm.lam", 1.0)
    is_scaled = source.flag("algorithm.norm_adv_by_std_in_grpo", True)
    kl_coef = _kl_coef(source)
    kl_to_go = (KLToGo(kl_coef),) if kl_coef else ()
    _name_differences(source, name)
    if name == "gae":
        token_rewards = (ReturnMinusKL(kl_coef, gamma=0.0),) if kl_coef else ()
        return *token_rewards, GAE(gamma, lam)
    if name == "reinforce_plus_plus":
        is_plain = not kl_coef and gamma == 1
        return (Whiten(),) if is_plain else (ReturnMinusKL(kl_coef, gamma), Whiten())
    if name == "remax":
        return SubtractRewardTerm("greedy"), *kl_to_go
    if name in BY_TOKEN:
        return *kl_to_go, SubtractTokenBaseline(min_rollouts=2)
    estimators = BY_GROUP.get(name, BY_GROUP["grpo"])
    estimators = estimators if is_scaled else UNSCALED.get(name, estimators)
    return (KLInReward(kl_coef), *estimators) if kl_coef else estimators


def _kl_coef(source: OptionValues) -> float:
    """The weight of the KL divergence in the reward; 0 without it."""
    coefficient = source.number("algorithm.kl_ctrl.kl_coef", 0.001)
    estimator = str(source.get("algorithm.kl_penalty", "kl"))
    kind = source.get("algorithm.kl_ctrl.type", "fixed")
    source.used |= {"algorithm.kl_ctrl.target_kl", "algorithm.kl_ctrl.horizon"}
    if not source.flag("algorithm.use_kl_in_reward"):
        return 0.0
    if estimator not in ("kl", "k1"):
        source.differs("algorithm.kl_penalty", "the KL divergence in the reward is k1: KLInReward")
    if kind != "fixed":
        source.differs(
            "algorithm.kl_ctrl.type", "the nearest is KLInReward(AdaptiveKL(…)) of kl_in_reward"
        )
    return coefficient


def _name_differences(source: OptionValues, name: str) -> None:
    group_size = source.number("actor_rollout_ref.rollout.n", 1)
    if name == "gpg":
        source.differs(NAME, "ScaleByInformative counts groups with spread, verl rewards but 0")
    elif name == "gdpo":
        source.differs(
            NAME,
            "the nearest is gdpo, which takes the names of the reward terms; grpo is in its place",
        )
    elif name == "optimal_token_baseline" and source.flag(MULTI_TURN):
        source.differs(
            NAME, "verl counts observations as positions, SubtractTokenBaseline does not"
        )
    elif name not in (*BY_GROUP, *BY_TOKEN, "gae", "reinforce_plus_plus", "remax"):
        source.differs(NAME, "grupo has no such estimator; grpo is in its place")
    elif name in KEEPS_LONE_REWARD and group_size == 1:
        source.differs(NAME, "a lone rollout has the advantage 0, in verl its reward")
    if name in BY_TOKEN:
        source.used.add("actor_rollout_ref.actor.calculate_sum_pi_squared")
    if name not in DISCOUNTED:
        source.used |= {"algorithm.gamma", "algorithm.lam"}
    if source.flag("algorithm.use_pf_ppo"):
        source.differs("algorithm.use_pf_ppo", "grupo does not draw rollouts again by reward")
