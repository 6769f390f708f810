"""Methods that read the entropy of the policy, or control it."""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    Array,
    clip,
    clipped_surrogate,
    group_std,
    k3,
    magnitude,
    minimum,
    stop_gradient,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.losses import ppo_loss
from tests.reference.assembled_numpy.update import Update, reference


@reference(
    "aepo",
    "597358816/AEPO, ray_trainer.py: fit, _select_by_advantage (threshold 0.05); core_algos.py:"
    " compute_policy_loss (masked_mean)",
    groups=(6, 5, 5),
    reward=(1, 0, 1, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1),
    terms={"temperature_scaled": (0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1)},
)
def aepo(case: Case) -> Update:
    tempered = case.terms["temperature_scaled"] == 1
    score = z_score(case.reward, 2 * case.group + tempered)
    advantage = np.where(tempered, score > 0.05, score)

    def loss(batch, pi):
        is_tempered = batch.terms["temperature_scaled"][:, None] == 1
        trained = batch.mask & ~(is_tempered & (batch.advantage == 0))
        ratio = np.exp(pi["logp"] - batch.old_logp)
        usual = clipped_surrogate(ratio, batch.advantage, 0.2, 0.2)
        return token_mean(np.where(is_tempered, -batch.advantage * pi["logp"], usual), trained)

    return Update(advantage, loss, minibatches=4)


@reference(
    "dcpo_distribution",
    "597358816/DCPO, ray_trainer.py: fit, branch DCPO; core_algos.py: compute_policy_loss"
    " (masked_mean)",
    terms={"correct": "binary"},
    reward="correct",
)
def dcpo_distribution(case: Case) -> Update:
    correct = case.terms["correct"]
    a = min(0.25, 0.1) / correct.mean()
    a = a / (1 + a)
    tempered = np.exp(case.signals["logp@t=1.2"] - case.old_logp)
    own = z_score(case.reward, case.group)[:, None]
    return Update(
        (1 - a) * own + a * correct[:, None] * tempered,
        ppo_loss(token_mean),
        minibatches=4,
    )


def row_quantile(x: Array, mask: Array, level: float) -> Array:
    """The quantile of each row's actions, interpolated (N, 1)."""
    return np.array([[np.quantile(row[m], level)] for row, m in zip(x, mask, strict=True)])


@reference(
    "archer",
    "wizard-III/ArcherCodeR, dp_actor.py and core_algos.py: compute_policy_loss",
    reward="binary",
)
def archer(case: Case) -> Update:
    kept = group_std(case.reward, case.group) > 0

    def loss(batch, pi):
        entropy = stop_gradient(pi["entropy"])
        uncertain = entropy >= row_quantile(entropy, batch.mask, 0.8)
        width = np.where(uncertain, 0.5, 0.2)
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, width, width)
        kl = np.where(uncertain, 0.0, 0.001) * k3(pi["logp"], batch.signals["logp@ref"])
        return token_mean(surrogate + kl, batch.mask)

    advantage = z_score(case.reward[kept], case.group[kept])
    return Update(advantage, loss, epochs=3, minibatches=2, kept=kept)


def covariance(advantage: Array, logp: Array, mask: Array) -> Array:
    """(A - mean A)(log pi - mean log pi) over the actions of the minibatch."""
    logp = stop_gradient(logp)
    return (advantage - advantage[mask].mean()) * (logp - logp[mask].mean())


@reference(
    "clip_cov",
    "PRIME-RL/Entropy-Mechanism-of-RL, core_algos.py: compute_policy_loss_clip_cov, with a"
    " fraction that leaves no choice to the draw",
    code="clip_cov(drop_fraction=1.0, min_covariance=0.05, max_covariance=0.5)",
    ratio_spread=1.3,
)
def clip_cov(case: Case) -> Update:
    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 1.0, 1.0)
        cov = covariance(batch.advantage, pi["logp"], batch.mask)
        dropped = (cov > 0.05) & (cov < 0.5)
        return token_mean(np.where(dropped, 0, surrogate), batch.mask)

    return Update(z_score(case.reward, case.group), loss, minibatches=8)


@reference(
    "kl_cov",
    "PRIME-RL/Entropy-Mechanism-of-RL, core_algos.py: compute_policy_loss_kl_cov",
    code="kl_cov(penalized_fraction=0.3)",
)
def kl_cov(case: Case) -> Update:
    def loss(batch, pi):
        log_ratio = pi["logp"] - batch.old_logp
        cov = covariance(batch.advantage, pi["logp"], batch.mask)
        count = int(np.ceil(0.3 * batch.mask.sum()))
        penalized = cov >= np.sort(cov[batch.mask])[-count]
        penalty = np.where(penalized, magnitude(log_ratio), 0)
        return token_mean(-np.exp(log_ratio) * batch.advantage + penalty, batch.mask)

    return Update(z_score(case.reward, case.group), loss, minibatches=8)


@reference(
    "entropy_advantage",
    "arXiv:2506.14758 from memory: psi = min(alpha H, |A| / kappa), on GRPO with a token mean",
    reward=(1, 0, 0, 0.4, 0.7, 0.2, 0, 1, 0.3, 0.3, 0.3, 0.3, 1, 0, 0.8),
)
def entropy_advantage(case: Case) -> Update:
    a = z_score(case.reward, case.group)[:, None]
    bonus = np.minimum(0.4 * case.signals["entropy"], np.abs(a) / 2.0)
    return Update(a + bonus, ppo_loss(token_mean))


def top(x: Array, mask: Array, fraction: float) -> Array:
    """True for the actions of the given fraction with the largest numbers (N, T)."""
    return (x >= np.quantile(x[mask], 1 - fraction)) & mask


@reference(
    "forking_tokens",
    "Shenzhi-Wang/Beyond-the-80-20-Rule-RLVR, core_algos.py: the mean over the mask of the response"
    " times that of high entropy; DAPO's recipe",
    code="forking_tokens(max_length=6, overlong_buffer=3)",
    reward="binary",
)
def forking_tokens(case: Case) -> Update:
    overlong = np.clip((case.lengths - (6 - 3)) / 3, 0, 1)
    shaped = 2 * case.reward - 1 - overlong
    kept = group_std(case.reward, case.group) > 0

    def loss(batch, pi):
        gate = top(batch.signals["entropy"], batch.mask, 0.2)
        ratio = np.exp(pi["logp"] - batch.old_logp)
        return token_mean(clipped_surrogate(ratio, batch.advantage, 0.2, 0.28), gate)

    return Update(z_score(shaped[kept], case.group[kept]), loss, minibatches=16, kept=kept)


@reference("earl_rtl", "arXiv:2511.12033, the abstract: the loss is kept on high-entropy tokens")
def earl_rtl(case: Case) -> Update:
    def loss(batch, pi):
        gate = top(batch.signals["entropy"], batch.mask, 0.2)
        ratio = np.exp(pi["logp"] - batch.old_logp)
        return token_mean(clipped_surrogate(ratio, batch.advantage, 0.2, 0.2), gate)

    return Update(z_score(case.reward, case.group), loss)


@reference(
    "hapo_token",
    "starriver030515/HAPO, core_algos.py: compute_hapo_outcome_advantage, compute_entropy_h,"
    " ada_clip, ada_advantage, compute_policy_loss; qwen2.5_math_7b.sh",
    code="hapo_token(dual_clip=1.5)",
    groups=(9, 4, 3),
    reward=(1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0),
    lengths=(7, 7, 6, 1, 7, 7, 7, 6, 7, 2, 7, 5, 4, 7, 5, 6),
    ratio_spread=2.0,
)
def hapo_token(case: Case) -> Update:
    kept = group_std(case.reward, case.group) > 0
    of_rows = z_score(case.reward, case.group)
    advantage = np.zeros(len(of_rows))
    for g in np.unique(case.group[kept]):
        rows = case.group == g
        of_tokens = np.repeat(case.reward[rows], case.lengths[rows])
        normed = (case.reward[rows] - of_tokens.mean()) / (of_tokens.std() + 1e-6)
        advantage[rows] = of_rows[rows] if (np.abs(normed) >= 5).any() else normed

    def loss(batch, pi):
        log_entropy = np.log(stop_gradient(pi["entropy"]))
        ordered = np.sort(log_entropy[batch.mask])
        h = log_entropy - ordered[round(0.8 * (len(ordered) - 1))]
        h = np.where(h > 0, h / h[batch.mask].max(initial=1e-8), h / -h[batch.mask].min())
        low = np.where(h > 0, 0.2, 0.2 * (1 - h))
        high = np.where(h > 0, 0.2 * (1 + h), 0.2)
        ratio = np.exp(pi["logp"] - batch.old_logp)
        r = stop_gradient(ratio)
        near = (r > 1 - low / 2) & (r < 1 + high / 2)
        changed = np.where(h > 0, ~near, near)
        a = np.where(changed, batch.advantage * (1 + h), batch.advantage)
        surrogate = clipped_surrogate(ratio, a, low, high)
        return token_mean(np.where(a < 0, minimum(-a * 1.5, surrogate), surrogate), batch.mask)

    return Update(advantage[kept], loss, minibatches=16, kept=kept)


@reference(
    "skywork_or1",
    "SkyworkAI/Skywork-OR1, core_algos.py, dp_actor.py, ray_trainer.py, 7b_8k.sh",
    reward="binary",
)
def skywork_or1(case: Case) -> Update:
    kept = group_std(case.reward, case.group) > 0
    return Update(z_score(case.reward[kept], case.group[kept]), ppo_loss(token_mean), kept=kept)


@reference(
    "dhpo",
    "arXiv:2601.05607, the abstract, and the brief for what it leaves open; the token ratio has"
    " GRPO's clip, the sequence ratio GSPO's clip and token form, sg(s) pi / sg(pi)",
    ratio_spread=0.3,
)
def dhpo(case: Case) -> Update:
    def loss(batch, pi):
        entropy = stop_gradient(pi["entropy"])
        least = np.where(batch.mask, entropy, np.inf).min(1, keepdims=True)
        most = np.where(batch.mask, entropy, -np.inf).max(1, keepdims=True)
        weight = (entropy - least) / (most - least + 1e-8)
        log_ratio = (pi["logp"] - batch.old_logp) * batch.mask
        token = np.exp(log_ratio)
        row = stop_gradient(np.exp(log_ratio.sum(1) / batch.lengths)[:, None])
        row = row * token / stop_gradient(token)
        a = batch.advantage
        raw = weight * token + (1 - weight) * row
        clipped = weight * clip(token, 0.8, 1.2) + (1 - weight) * clip(row, 1 - 3e-4, 1 + 4e-4)
        return token_mean(-minimum(raw * a, clipped * a), batch.mask)

    return Update(z_score(case.reward, case.group), loss)


def of_largest_variance(x: Array, count: int) -> Array:
    """True for the `count` numbers of largest variance: some of the lowest, the others highest."""
    order = np.argsort(x)
    subsets = [np.r_[order[:k], order[len(x) - count + k :]] for k in range(count + 1)]
    chosen = max(subsets, key=lambda rows: x[rows].var())
    return np.isin(np.arange(len(x)), chosen)


@reference(
    "d3s",
    "arXiv:2509.22115, the abstract; brief: linear schedules and the mean over kept tokens",
    groups=(4, 4, 4, 4),
    lengths=(6,) * 16,
    reward=(0.9, 0.1, 0.5, 0.2, 1, 0.3, 0.4, 0, 0.8, 0.35, 0.6, 0.15, 0.7, 0.05, 0.45, 0.25),
)
def d3s(case: Case) -> Update:
    rollout_fraction = 0.25 + 0.5 * (1 - 0.25)
    token_fraction = 0.2 + 0.5 * (1 - 0.2)

    def loss(batch, pi):
        count = round(rollout_fraction * len(batch.reward))
        rows = of_largest_variance(batch.advantage[:, 0], count)
        mask = batch.mask & rows[:, None]
        score = np.abs(batch.advantage) * batch.signals["entropy"]
        number = round(token_fraction * mask.sum())
        kept = mask & (score >= np.sort(score[mask])[-number])
        ratio = np.exp(pi["logp"] - batch.old_logp)
        return token_mean(clipped_surrogate(ratio, batch.advantage, 0.2, 0.2), kept)

    return Update(z_score(case.reward, case.group), loss)
