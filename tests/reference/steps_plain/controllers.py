"""Numbers that follow a metric of the steps before: the value of each step, from the first.

Compared: the value that each step trains with, given the metric after each earlier step.

Written from
    597358816/AEPO and 597358816/DCPO, verl/trainer/ray_trainer.py, lines 730 and 784 to 845, and
        config.py: temperature 1.2 up to the target entropy, 0.8 above; the entropy before the first
        update counts as 0;
    TSYJ-He/AMFT, src/controller/adaptive_weight_controller.py, `update_mu`, and main_config.yaml;
        the meta-gradient is left out and mu is that of the steps before, as the record states;
    shawn0728/ARES, verl/trainer/ray_trainer.py, lines 808 to 824 and 895 to 901, and
        verl/workers/actor/dp_actor.py, lines 60 to 124; alpha follows the target of the step
        before, as the record states;
    openai/lm-human-preferences, lm_human_preferences/train_policy.py, `AdaptiveKLController`, and
        the record for the gain of 0.1 (section 2.2 of arXiv:1909.08593, which was not opened);
    RTkenny/RiskPO, verl/trainer/ppo/ray_trainer.py, lines 1431 to 1474, and ppo_trainer.yaml (lr_q
        0.1), and core_algos.py: the first batch gives the quantiles, later ones move them;
    the record and docstring of gfpo, which cite algorithm 2 of arXiv:2508.09726: 8, 8, 6 or 4
        rollouts of a very hard, hard, medium or easy group, by the quartiles of the mean rewards of
        earlier steps. 320 groups of warm-up and the easier side at a quartile are our reading. The
        paper was not opened;
    SkyworkAI/Skywork-OR1, verl/trainer/ppo/core_algos.py, `EntController`, and ray_trainer.py, line
        1169; the step of 0.005 without a largest value is the report's (arXiv:2505.22312) by the
        record, the smallest value of 0 is the scripts' (MIN_ENT_COEF);
    a public note on ReMix, arXiv:2507.06892, for lambda(t), p, m and T;
    the record of arrol, for sums in which a step counts 0.9 times the next one.
"""

from collections.abc import Sequence
from math import ceil, exp, log

import numpy as np

Values = Sequence[float]


def aepo_temperature(entropies: Values, target: float = 0.5) -> list[float]:
    """Temperature of the tempered rollouts of each step."""
    return [1.2 if entropy <= target else 0.8 for entropy in (0.0, *entropies)]


def aepo_weight(entropies: Values, target: float = 0.5) -> list[float]:
    """Weight of the tempered rollouts: half as many are put in while the policy is cold."""
    return [1.0 if entropy <= target else 0.5 for entropy in (0.0, *entropies)]


def dcpo_share(entropies: Values, fraction_correct: Values, target: float) -> list[float]:
    """Share a of the bonus for correct rollouts in each step."""
    shares = []
    for entropy, correct in zip((0.0, *entropies), fraction_correct, strict=True):
        alpha = min(abs(target - entropy), 0.1) / correct
        shares.append(alpha / (1 + alpha))
    return shares


def dcpo_temperature(entropies: Values, target: float) -> list[float]:
    """Factor on the temperature of the distribution that each step moves to."""
    return aepo_temperature(entropies, target)


def amft_weight(
    entropies: Values, target: float, gain: float = 0.0005, start: float = 0.8
) -> list[float]:
    """Weight of imitation in each step: it rises while the entropy is below the target."""
    mu = [start]
    for entropy in entropies:
        mu.append(min(max(mu[-1] + gain * (target - entropy), 0.05), 0.95))
    return mu


def ares_alpha(triggers: Values, sign: int, step: float = 0.05, start: float = 0.5) -> list[float]:
    """Size of the trigger reward of a difficulty.

    Args:
        triggers: Mean number of triggers of a rollout in each step.
        sign: 1 for easy and medium tasks, -1 for hard ones.
        step: Change for each trigger off the target.
        start: First size.
    """
    alpha, target = [start], None
    for mean in triggers:
        moved = 0.0 if target is None else sign * step * (mean - target)
        alpha.append(min(max(alpha[-1] + moved, 0.0), 2.0))
        target = round(mean)
    return alpha


def ares_beta(
    divergences: Sequence[float | None], interval: int, target: float = 0.01
) -> list[float]:
    """Coefficient of the KL divergence of a difficulty, which is in the loss of each step.

    Args:
        divergences: Mean KL of the difficulty's rollouts in each step; None in a step without.
        interval: Steps between two changes; a step without the difficulty counts, too.
        target: KL to hold.
    """
    decay = 0.97
    beta, smooth, error = 1.0, None, 0.0
    betas = [beta]
    for count, kl in enumerate(divergences, 1):
        if kl is not None:
            smooth = kl if smooth is None else decay * smooth + (1 - decay) * kl
            e = smooth / target - 1
            if abs(e) >= 0.02 and count % interval == 0:
                error = decay * error + (1 - decay) * e
                raised = log(beta) + 0.05 * min(max(error, -0.2), 0.2)
                beta = exp(min(max(raised, log(1e-4)), log(1e2)))
        betas.append(beta)
    return betas


def ares_threshold(percentiles: Values) -> list[float]:
    """Entropy from which a window counts, in each step after the first."""
    thresholds: list[float] = []
    for percentile in percentiles:
        before = thresholds[-1] if thresholds else percentile
        thresholds.append(0.99 * before + 0.01 * percentile)
    return thresholds


def ziegler_kl_coef(
    divergences: Values, target: float = 0.02, gain: float = 0.1, start: float = 0.1
) -> list[float]:
    """Weight of the KL divergence in the reward of each step."""
    coef = [start]
    for kl in divergences:
        coef.append(coef[-1] * (1 + gain * float(np.clip(kl / target - 1, -0.2, 0.2))))
    return coef


def riskpo_quantiles(scores: Sequence[Values], levels: Values, rate: float = 0.1) -> list[Values]:
    """The tracked quantiles after each step, for the bundle scores of each step."""
    tracked: list[Values] = []
    for batch in scores:
        s = np.asarray(batch)
        if not tracked:
            tracked.append([float(np.quantile(s, level)) for level in levels])
        else:
            tracked.append(
                [
                    q + rate * (level - float(np.mean(s < q)))
                    for q, level in zip(tracked[-1], levels, strict=True)
                ]
            )
    return tracked


def riskpo_advantages(
    scores: Sequence[Values], thresholds: Values, levels: Values, weight: float = 1.5
) -> list[float]:
    """Advantages of a step's bundles of one task each.

    Core_algos.py, lines 624 to 800, with credit by the standard deviation and both risks mixed.

    Args:
        scores: Score of each set of a bundle, by bundle.
        thresholds: The tracked quantiles after this step, as the record states; the release never
            reads them, since it stores them in a batch that the next step does not have.
        levels: Levels of the quantiles.
        weight: Weight of the lower tail.
    """
    q, upper = thresholds
    low, high = levels
    result: list[float] = []
    for group in scores:
        s = np.asarray(group, float)
        within = np.maximum(s - q, 0) - np.maximum(s - upper, 0) + q - upper
        mixed = (weight * -np.maximum(q - s, 0) / low + within / (high - low)) / (weight + 1)
        deviation = s.std(ddof=1)
        result += (mixed / deviation / deviation).tolist()
    return result


def gfpo_kept(means: Values, earlier: Values, warmup: int = 320) -> list[int]:
    """Rollouts that are kept of each group of a step.

    Args:
        means: Mean reward of each group of the step.
        earlier: Mean rewards of all groups of earlier steps.
        warmup: Groups before which all count as very hard.
    """
    if len(earlier) < warmup:
        return [8] * len(means)
    quartiles = np.quantile(earlier, (0.25, 0.5, 0.75))
    return [(8, 8, 6, 4)[int((mean >= quartiles).sum())] for mean in means]


def skywork_entropy_coef(
    entropies: Values, target: float = 0.2, delta: float = 0.005
) -> list[float]:
    """Weight of the entropy in the loss of each step."""
    coef, enabled = 0.0, True
    used = [coef * enabled]
    for entropy in entropies:
        coef = max(coef + delta if entropy < target else coef - delta, 0.0)
        enabled = entropy < target
        used.append(coef * enabled)
    return used


def remix_reference_weight(step: int) -> float:
    """lambda(t) in step t, from 1."""
    return max(1 - 0.1 * ceil(max(step - 50, 0) / 10), 0.5)


def remix_numbers(step: int, last_mixed: int = 50) -> tuple[float, int]:
    """Share of old rollouts and number of updates in step t, from 1."""
    return (0.4, 2) if step <= last_mixed else (0.0, 1)


def decayed_sums(values: Values, decay: float = 0.9) -> list[float]:
    """The sum before each step, in which each earlier step counts `decay` times the next one."""
    sums = [0.0]
    for value in values:
        sums.append(decay * sums[-1] + value)
    return sums
