"""Methods whose reward is computed from the policy, its group or a judge, not from a label."""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    Array,
    group_mean,
    k3,
    mean_of_row_means,
    row_mean,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.losses import ppo_loss, surrogate
from tests.reference.assembled_numpy.update import Update, reference


def leave_one_out(x: Array, group: Array) -> Array:
    """x minus the mean of the others of its group (n,)."""
    size = np.array([(group == g).sum() for g in group])
    return (x - group_mean(x, group)) * size / (size - 1)


def label_counts(case: Case) -> Array:
    """Number of rollouts of the group with the same cluster (n,)."""
    same = case.group[:, None] == case.group
    cluster = case.terms["cluster"]
    return (same & (cluster[:, None] == cluster)).sum(1)


def em_rl_loss(batch, pi):
    """REINFORCE on the log-probability of whole answers, with the KL of whole answers."""
    kl = 0.001 * k3(pi["logp"], batch.signals["logp@ref"])
    return np.mean(((-batch.advantage * pi["logp"] + kl) * batch.mask).sum(1))


@reference("em_rl_sequence", "arXiv:2505.15134, eq. 3 and section 3.3, from memory of the paper")
def em_rl_sequence(case: Case) -> Update:
    reward = (case.old_logp * case.mask).sum(1)
    return Update(leave_one_out(reward, case.group), em_rl_loss)


@reference("em_rl_token", "arXiv:2505.15134, eq. 4 and section 3.3, from memory of the paper")
def em_rl_token(case: Case) -> Update:
    reward = -(case.signals["entropy"] * case.mask).sum(1)
    return Update(leave_one_out(reward, case.group), em_rl_loss)


@reference(
    "empo",
    "QingyangZhang/EMPO: trl/src/open_r1/rewards.py (get_empo_math_reward) and empo.py",
    terms={"cluster": [0, 0, 1, 2, 0, 1, 2, 3, 1, 1, 1, 1, 0, 1, 1]},
)
def empo(case: Case) -> Update:
    size = np.array([(case.group == g).sum() for g in case.group])
    p = label_counts(case) / size
    entropy = -group_mean(np.log(p), case.group)
    reward = np.where(entropy < np.log(size) - 1e-9, p, 0.0)
    return Update(z_score(reward, case.group), ppo_loss())


# 1 at the tokens of the answer
ANSWERS = [[float(column in (row % 2, 4 - row % 2)) for column in range(7)] for row in range(15)]
# rows 1 and 2 are accurate, with likelihoods 0.98 and 0.935: the cap of 0.95 decides on row 2
REFERENCE_LOGP = [
    [-0.02 - (7 * row + 3 * column) % 10 / 10 for column in range(7)] for row in range(15)
]
REFERENCE_LOGP[1:3] = [[-0.02] * 7, [-0.0672] * 7]


@reference(
    "grpo_care",
    "TencentARC/GRPO-CARE: src/r1-v/src/open_r1/trainer/grpo_trainer_ref_ema.py (compute_loss) and"
    " scripts/run_grpo_care_margin0.01_seed_bench_r1.sh",
    signals={"step/answer": ANSWERS, "logp@ref": REFERENCE_LOGP},
    terms={"correct": [0.5, 1, 1, 0, 0.5, 1, 0, 1, 0, 0, 0, 0, 0.5, 0.5, 0.5]},
)
def grpo_care(case: Case) -> Update:
    answer = case.mask * case.signals["step/answer"]
    mean_logp = (case.signals["logp@ref"] * answer).sum(1) / (answer.sum(1) + 1e-6)
    likelihood = np.minimum(np.exp(mean_logp), 0.95)
    correct = case.terms["correct"]
    accurate = (correct > 0.1) & (correct >= group_mean(correct, case.group))
    bonus = np.zeros(len(correct))
    for g in np.unique(case.group):
        chosen = accurate & (case.group == g)
        if chosen.any():
            consistent = chosen & (likelihood >= likelihood[chosen].mean() - 0.01)
            bonus[consistent] = 0.5 * correct[consistent]

    def loss(batch, pi):
        # the gradient of exp(log pi - stop_gradient(log pi)) A
        return mean_of_row_means(-batch.advantage * pi["logp"], batch.mask)

    return Update(z_score(case.reward + bonus, case.group, eps=1e-4), loss)


@reference(
    "gui_g1",
    "Yuqi-Zhou/GUI-G1: src/open-r1-multimodal/src/open_r1/trainer/grpo_trainer.py and grpo_rec.py",
)
def gui_g1(case: Case) -> Update:
    reward = case.terms["hit"] + 0.25 * case.terms["iou"] + 0.125 * case.terms["box"]

    def loss(batch, pi):
        return np.mean((surrogate(batch, pi) * batch.mask).sum(1)) / 64

    weight = case.terms["difficulty"]  # a factor of the loss, and therefore of the advantage
    return Update(weight * (reward - group_mean(reward, case.group)), loss)


@reference(
    "intuitor",
    "arXiv:2505.19590; sunblaze-ucb/Intuitor: verl-intuitor/verl/trainer/ppo/ray_trainer.py",
)
def intuitor(case: Case) -> Update:
    reward = row_mean(case.signals["self_certainty"], case.mask)
    return Update(z_score(reward, case.group), ppo_loss(kl_coef=0.005))


@reference(
    "listener",
    "arXiv:2506.22832: the sum of three terms, from memory of the paper; the gate, the brief",
    code="listener(min_confidence=0.4)",
    terms={"format": "binary", "correct": "binary", "listener": "real"},
)
def listener(case: Case) -> Update:
    terms = case.terms
    convinced = terms["listener"] * (terms["listener"] >= 0.4)
    reward = terms["format"] * (1 + 0.5 * terms["correct"] + 0.5 * convinced)
    return Update(z_score(reward, case.group), ppo_loss())


@reference("mixed_r1", "arXiv:2505.24164, from memory of the paper")
def mixed_r1(case: Case) -> Update:
    reward = case.terms["correct"] + case.terms["format"]
    return Update(z_score(reward, case.group), ppo_loss())


@reference(
    "mm_upt",
    "waltonfuture/MM-UPT: verl/workers/reward/function.py, examples/config.yaml",
    terms={"cluster": [0, 0, 1, 2, 0, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1]},
)
def mm_upt(case: Case) -> Update:
    counts = label_counts(case)
    most = np.array([counts[case.group == g].max() for g in case.group])
    reward = (counts == most) * 1.0
    return Update(z_score(reward, case.group), ppo_loss(kl_coef=0.01), minibatches=4)


@reference(
    "papo",
    "MikeWangWZHL/PAPO: verl/workers/actor/dp_actor.py, verl/trainer/core_algos.py (compute_kl),"
    " examples/configs/config_grpo_papo.yaml, examples/papo_grpo/qwen2_5_vl_7b_grpo_papo.sh",
)
def papo(case: Case) -> Update:
    def loss(batch, pi):
        logp = pi["logp"]
        masked = batch.signals["logp@masked"]
        kl = 0.01 * k3(logp, batch.signals["logp@ref"]) - 0.02 * k3(logp, masked)
        entropies = -0.05 * logp - 0.05 * masked
        return mean_of_row_means(surrogate(batch, pi) + kl + entropies, batch.mask)

    return Update(z_score(case.reward, case.group), loss, minibatches=3)


@reference(
    "posterior_grpo",
    "Wodlfvllf/grpo-composer: configs/papers/posterior_grpo.yaml,"
    " grpo_composer/core/rewards/posterior_composite.py",
    terms={"format": "binary", "correct": "binary", "thinking": "real"},
)
def posterior_grpo(case: Case) -> Update:
    terms = case.terms
    reward = terms["format"] + terms["correct"] + terms["correct"] * terms["thinking"]

    def loss(batch, pi):
        return token_mean(surrogate(batch, pi, 0.2, 0.28), batch.mask)

    return Update(z_score(reward, case.group), loss)


@reference(
    "ps_grpo",
    "arXiv:2510.04392, from memory of the paper",
    groups=(6, 5, 4),
    terms={"agreement/prompt": [0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1]},
)
def ps_grpo(case: Case) -> Update:
    reward = case.terms["agreement"] + case.terms["correct"]
    prompt = case.group * 10 + case.terms["agreement/prompt"]
    return Update(z_score(reward, prompt), ppo_loss(kl_coef=0.04))


@reference("rent", "satrams/rent-rl: verl/trainer/ppo/ray_trainer.py (minimize_entropy)")
def rent(case: Case) -> Update:
    reward = -row_mean(case.signals["entropy"], case.mask)
    return Update(z_score(reward, case.group), ppo_loss())


@reference(
    "srpo_reflection",
    "arXiv:2506.01713, eq. 4 to 8; SUSTechBruce/SRPO_MLLMs:"
    " spro_rl_train/verl_srpo/examples/reward_function/srpo_rm.py",
    terms={
        "correct": [0, 1, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1],
        "first": [0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0],
        "format": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1],
        "reflection": [1, 1, 1, 0, 1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 1],
        "first_length": [2, 1, 1, 0, 2, 3, 1, 1, 0, 0, 0, 0, 1, 2, 2],
    },
)
def srpo_reflection(case: Case) -> Update:
    first = case.terms["first"]
    final = case.terms["correct"]
    effect = np.where(final == 1, np.where(first == 1, 0.25, 0.5), np.where(first == 1, -0.25, 0))
    start = case.terms["first_length"]
    two = start > 0
    target = 2 * start
    longest = 2.5 * start
    brevity = np.exp(-((np.abs(case.lengths - target) / np.where(two, longest - target, 1)) ** 2))
    reflection = case.terms["reflection"] * (effect + 0.25) + 0.1 * brevity * two
    reward = 0.5 * case.terms["format"] + 0.5 * first + reflection
    return Update(z_score(reward, case.group), ppo_loss(), minibatches=8)


@reference(
    "trust_grpo",
    "arXiv:2505.17018, eq. 1 to 6; kxfan2002/SophiaVL-R1: verl/workers/reward/custom.py",
    terms={"correct": "binary", "thinking": "real"},
)
def trust_grpo(case: Case) -> Update:
    correct = case.terms["correct"] >= 0.5
    thinking = case.terms["thinking"]
    trust = np.ones(len(correct))
    for g in np.unique(case.group):
        own = case.group == g
        if (own & correct).any() and (own & ~correct).any():
            gap = thinking[own & correct].mean() - thinking[own & ~correct].mean()
            trust[own] = np.exp(min(gap, 0))
    reward = case.terms["correct"] + trust * 0.3 * np.exp(-0.5) * thinking
    return Update(z_score(reward, case.group), ppo_loss(kl_coef=0.04))


@reference(
    "ttrl",
    "PRIME-RL/TTRL: verl/examples/ttrl/aime.sh",
    code="ttrl(num_kept=3)",
    terms={"majority": "binary"},
)
def ttrl(case: Case) -> Update:
    first = np.array([np.flatnonzero(case.group == g)[0] for g in case.group])
    kept = np.arange(len(case.group)) - first < 3
    part = case.select(kept)
    return Update(z_score(part.terms["majority"], part.group), ppo_loss(), minibatches=8, kept=kept)


DISAGREEMENT = [
    [(7 * (row // 4) + 5 * column) % 11 / 10 for column in range(7)] for row in range(15)
]


@reference(
    "tw_grpo",
    "longmalongma/TW-GRPO: src/open_r1/trainer/grpo_trainer.py (compute_loss and"
    " compute_token_importance_kl_logs_uniform)",
    signals={"disagreement": DISAGREEMENT},
)
def tw_grpo(case: Case) -> Update:
    reward = case.terms["correct"] + case.terms["format"]

    def loss(batch, pi):
        x = batch.signals["disagreement"]
        weight = np.zeros(x.shape)
        for g in np.unique(batch.group):
            own = batch.group == g
            values = x[own][batch.mask[own]]
            weight[own] = 1 + 0.7 * (x[own] - values.min()) / (values.max() - values.min())
        return token_mean(weight * surrogate(batch, pi, 0.2, 0.28), batch.mask)

    return Update(z_score(reward, case.group), loss)


@reference(
    "verifree",
    "sail-sg/VeriFree: verifree.py (learning_step) and run.sh",
    terms={"answer_probability": "real"},
)
def verifree(case: Case) -> Update:
    probability = case.terms["answer_probability"]
    thought = (case.signals["sampled"] == 1) & case.mask
    advantage = leave_one_out(probability, case.group)
    weight = np.where(thought, advantage[:, None], probability[:, None])

    def loss(batch, pi):
        return np.mean((-batch.advantage * pi["logp"] * batch.mask).sum(1))

    return Update(weight, loss)
