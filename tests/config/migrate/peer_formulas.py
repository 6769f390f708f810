"""The updates of TRL 1.16, verl 0.10 and prime-rl in numpy, written from their formulas."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from tests.config.migrate.peer_files import MAX_LENGTH
from tests.reference.assembled_numpy.case import Case, CaseOptions
from tests.reference.assembled_numpy.formulas import (
    clip,
    group_mean,
    group_std,
    k3,
    magnitude,
    maximum,
    mean_of_row_means,
    minimum,
    stop_gradient,
    token_mean,
)
from tests.reference.assembled_numpy.update import Reference, Update

Array = np.ndarray
Options = Mapping[str, Any]
EPS_TRL, EPS_VERL = 1e-4, 1e-6


def trl_reference(options: Options) -> Reference:
    """The reference of a GRPOConfig."""
    return Reference(partial(_trl_update, options), "TRL 1.16, grpo_trainer.py", CaseOptions())


def verl_reference(options: Options) -> Reference:
    """The reference of verl's options, which are named without their section."""
    return Reference(partial(_verl_update, options), "verl 0.10, core_algos.py", CaseOptions())


def prime_rl_reference(options: Options) -> Reference:
    """The reference of prime-rl's `trainer.loss` with the advantages of its grpo.

    Its loss has the ratio where ours has the log-probability times the ratio as a constant: the
    gradients are equal.
    """
    return Reference(
        partial(_prime_rl_update, options),
        "PrimeIntellect-ai/prime-rl, trainer/rl/loss.py and orchestrator/algo/grpo.py",
        CaseOptions(),
        value_differs="prime-rl has the ratio, ours a log-probability with a constant weight",
    )


def _prime_rl_update(options: Options, case: Case) -> Update:
    low, high = options.get("dppo_mask_low", 0.2), options.get("dppo_mask_high", 0.2)

    def loss(batch: Case, pi: Mapping[str, Array]) -> complex:
        difference = pi["logp"] - batch.signals["logp@sampler"]
        trusted = _is_trusted("dppo_tv", low, high, batch, np.real(pi["logp"]))
        policy_loss = -batch.advantage * np.exp(difference) * trusted
        return token_mean(policy_loss + options.get("kl_tau", 1e-3) * difference**2, batch.mask)

    return Update(_centred(case.reward, case), loss)


def _trl_update(options: Options, case: Case) -> Update:
    return Update(_trl_advantage(options, case), partial(_trl_loss, options))


def _trl_advantage(options: Options, case: Case) -> Array:
    scale = options.get("scale_rewards", "group")
    if options.get("multi_objective_aggregation") == "normalize_then_sum":
        terms = case.terms.values()
        total = sum(_centred(x, case) / (group_std(x, case.group) + EPS_TRL) for x in terms)
        return (total - total.mean()) / (total.std(ddof=1) + EPS_TRL)
    std = case.reward.std(ddof=1) if scale == "batch" else group_std(case.reward, case.group)
    centred = _centred(case.reward, case)
    return centred if scale == "none" else centred / (std + EPS_TRL)


def _centred(x: Array, case: Case) -> Array:
    return x - group_mean(x, case.group)


def _trl_loss(options: Options, batch: Case, pi: Mapping[str, Array]) -> complex:
    kind = options.get("loss_type", "dapo")
    ratio = _ratio(options.get("importance_sampling_level", "token"), batch, pi)
    loss = _trl_policy_loss(options, kind, ratio, batch, pi)
    if "off_policy_mask_threshold" in options:
        drift = ((batch.signals["logp@sampler"] - np.real(pi["logp"])) * batch.mask).sum(1)
        is_near = drift / batch.lengths <= options["off_policy_mask_threshold"]
        loss = loss * ((batch.advantage >= 0) | is_near[:, None])
    if options.get("use_vllm") and options.get("vllm_importance_sampling_correction", True):
        loss = loss * _vllm_weight(options, batch)
    if options.get("beta"):
        kl = k3(pi["logp"], batch.signals["logp@ref"])
        kl = kl * ratio if options.get("use_bias_correction_kl", True) else kl
        loss = loss + options["beta"] * kl
    loss = loss + np.zeros(batch.mask.shape)
    bonus = options.get("entropy_coef", 0.0)
    entropy = token_mean(pi["entropy"], batch.mask) if bonus else 0.0
    return _trl_average(kind, loss, batch.mask) - bonus * entropy


def _ratio(level: str, batch: Case, pi: Mapping[str, Array]) -> Array:
    log_ratio = (pi["logp"] - batch.old_logp) * batch.mask
    if level == "sequence":
        log_ratio = log_ratio.sum(1, keepdims=True) / batch.lengths[:, None]
    return np.exp(log_ratio)


def _trl_policy_loss(
    options: Options, kind: str, ratio: Array, batch: Case, pi: Mapping[str, Array]
) -> Array:
    low = options.get("epsilon", 0.2)
    high = options.get("epsilon_high", low)
    A = batch.advantage
    if kind == "cispo":
        return -stop_gradient(minimum(ratio, high)) * A * pi["logp"]
    if kind == "sapo":
        positive, negative = (
            options.get(f"sapo_temperature_{side}", default)
            for side, default in (("pos", 1.0), ("neg", 1.05))
        )
        tau = np.where(A > 0, positive, negative)
        return -A * 4 / tau / (1 + np.exp(-tau * (ratio - 1)))
    if kind == "vespo":
        log_w = ((np.real(pi["logp"]) - batch.old_logp) * batch.mask).sum(1, keepdims=True)
        k = np.where(A >= 0, options.get("vespo_k_pos", 2.0), options.get("vespo_k_neg", 3.0))
        decay = np.where(
            A >= 0, options.get("vespo_lambda_pos", 3.0), options.get("vespo_lambda_neg", 2.0)
        )
        return -np.exp(decay + k * log_w - decay * np.exp(log_w)) * A * pi["logp"]
    clipped = clip(ratio, 1 - low, 1 + high)
    capped = minimum(ratio, options["delta"]) if "delta" in options else ratio
    return -minimum(capped * A, clipped * A)


def _vllm_weight(options: Options, batch: Case) -> Array:
    mode = options.get("vllm_importance_sampling_mode", "sequence_mask")
    low = options.get("vllm_importance_sampling_clip_min", 0.0)
    high = options.get("vllm_importance_sampling_clip_max", 3.0)
    difference = (batch.old_logp - batch.signals["logp@sampler"]) * batch.mask
    if mode.startswith("sequence"):
        difference = difference.sum(1, keepdims=True)
    weight = np.exp(difference)
    is_within = (weight >= low) & (weight <= high)
    return np.clip(weight, low, high) if mode.endswith("truncate") else weight * is_within


def _trl_average(kind: str, loss: Array, mask: Array) -> complex:
    if kind in ("grpo", "sapo"):
        return mean_of_row_means(loss, mask)
    if kind == "dr_grpo":
        return (loss * mask).sum() / (len(mask) * MAX_LENGTH)
    if kind == "luspo":
        return (loss * mask).sum(1).mean()
    return token_mean(loss, mask)


def _verl_update(options: Options, case: Case) -> Update:
    centred = _centred(case.reward, case)
    std = group_std(case.reward, case.group) + EPS_VERL
    is_scaled = options.get("norm_adv_by_std_in_grpo", True)
    return Update(centred / std if is_scaled else centred, partial(_verl_loss, options))


def _verl_loss(options: Options, batch: Case, pi: Mapping[str, Array]) -> complex:
    mode = options.get("loss_mode", "vanilla")
    average = partial(
        VERL_AVERAGES[options.get("loss_agg_mode", "token-mean")],
        mask=batch.mask,
        scale=options.get("loss_scale_factor", MAX_LENGTH),
    )
    policy_average = mean_of_row_means if mode in ("gspo", "sapo") else None
    policy_loss = _verl_policy_loss(options, mode, batch, pi)
    loss = policy_average(policy_loss, batch.mask) if policy_average else average(policy_loss)
    if options.get("entropy_coeff"):
        loss -= options["entropy_coeff"] * average(pi["entropy"])
    if options.get("use_kl_loss"):
        kl = _verl_kl(options.get("kl_loss_type", "low_var_kl"), pi["logp"], batch)
        loss += options.get("kl_loss_coef", 0.001) * average(kl)
    return loss


VERL_AVERAGES: Mapping[str, Callable[..., complex]] = {
    "token-mean": lambda x, mask, scale: (x * mask).sum() / mask.sum(),
    "token-sum": lambda x, mask, scale: (x * mask).sum(),
    "seq-mean-token-sum": lambda x, mask, scale: (x * mask).sum(1).mean(),
    "seq-mean-token-sum-norm": lambda x, mask, scale: (x * mask).sum(1).mean() / scale,
    "seq-mean-token-mean": lambda x, mask, scale: mean_of_row_means(x, mask),
}


def _verl_policy_loss(options: Options, mode: str, batch: Case, pi: Mapping[str, Array]) -> Array:
    low, high = options.get("clip_ratio_low", 0.2), options.get("clip_ratio_high", 0.2)
    A = batch.advantage
    if mode in ("dppo_tv", "dppo_kl"):
        trusted = _is_trusted(mode, low, high, batch, stop_gradient(pi["logp"]))
        weight = np.exp(stop_gradient(pi["logp"]) - batch.signals["logp@sampler"])
        return -A * np.minimum(weight, options.get("clip_ratio_c", 3.0)) * pi["logp"] * trusted
    ratio = _ratio("token", batch, pi)
    if mode == "gspo":
        sequence = stop_gradient(_ratio("sequence", batch, pi))
        ratio = sequence * ratio / stop_gradient(ratio)
    if mode == "sapo":
        tau = np.where(A > 0, options.get("tau_pos", 1.0), options.get("tau_neg", 1.05))
        return -A * 4 / tau / (1 + np.exp(-tau * (ratio - 1)))
    if mode == "cispo":
        return -stop_gradient(clip(ratio, 1 - low, 1 + high)) * A * pi["logp"]
    if mode == "gpg":
        return -A * pi["logp"]
    loss = maximum(-A * ratio, -A * clip(ratio, 1 - low, 1 + high))
    bounded = minimum(-A * options.get("clip_ratio_c", 3.0), loss)
    return np.where((A < 0) & (mode == "vanilla"), bounded, loss)


def _is_trusted(kind: str, low: float, high: float, batch: Case, logp: Array) -> Array:
    """True for tokens of DPPO's trust region around the sampler."""
    A, p, q = batch.advantage, np.exp(logp), np.exp(batch.signals["logp@sampler"])
    if kind == "dppo_tv":
        return np.where(A > 0, p - q <= high, p - q >= -low)
    kl = q * np.log(q / p) + (1 - q) * np.log((1 - q + 1e-8) / (1 - p + 1e-8))
    return np.where(A > 0, (kl <= high) | (p <= q), (kl <= low) | (p >= q))


def _verl_kl(kind: str, logp: Array, batch: Case) -> Array:
    difference = logp - batch.signals["logp@ref"]
    square = difference**2 / 2
    values = {
        "k1": difference,
        "abs": magnitude(difference),
        "k2": square,
        "k3": clip(np.exp(clip(-difference, -20, 20)) + difference - 1, -10, 10),
    }
    names = {"kl": "k1", "mse": "k2", "low_var_kl": "k3"}
    plain = kind.removesuffix("+")
    value = values[names.get(plain, plain)]
    is_straight_through = kind.endswith("+")
    return square + stop_gradient(value - square) if is_straight_through else value
