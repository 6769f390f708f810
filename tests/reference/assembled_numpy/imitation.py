"""Methods that imitate demonstrations beside learning from rewards."""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    Array,
    group_mean,
    group_std,
    mean_of_row_means,
    mean_where,
    stop_gradient,
    z_score,
)
from tests.reference.assembled_numpy.losses import surrogate
from tests.reference.assembled_numpy.update import Update, reference

# the signal "sampled" without single forced actions in sampled rows
WHOLE_DEMONSTRATIONS = [[float(row % 5 != 1)] * 7 for row in range(15)]


def demonstrated(case: Case) -> Array:
    """True at the actions that were given and not sampled (n, T)."""
    return case.mask & (case.signals["sampled"] == 0)


def is_demonstration(case: Case) -> Array:
    """True for the rows of which no action was sampled (n,)."""
    return ~(case.mask & (case.signals["sampled"] == 1)).any(1)


def sampled_only(score, case: Case) -> Array:
    """An advantage over the sampled rollouts of each group; 1 for demonstrations (n,)."""
    own = ~is_demonstration(case)
    advantage = np.ones(len(case.reward))
    advantage[own] = score(case.reward[own], case.group[own])
    return advantage


def row_mean_where(x: Array, mask: Array) -> complex:
    """The mean over the rows with an action in `mask` of each row's mean over those actions."""
    rows = mask.any(1)
    return mean_of_row_means(x[rows], mask[rows])


@reference(
    "ahpo",
    "arXiv:2510.08540: L = xi L_off + L_on, from memory of the paper",
    terms={"correct": [1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0]},
    signals={"sampled": WHOLE_DEMONSTRATIONS},
)
def ahpo(case: Case) -> Update:
    own = ~is_demonstration(case)
    correct = case.terms["correct"] * own
    fails = np.array([correct[case.group == g].sum() < 1 for g in case.group])

    def loss(batch, pi):
        given = demonstrated(batch)
        on = row_mean_where(surrogate(batch, pi), batch.mask & ~given)
        return on + row_mean_where(-pi["logp"] * fails[:, None], given)

    advantage = np.where(own, sampled_only(z_score, case), fails)
    return Update(advantage, loss)


@reference(
    "amft",
    "TSYJ-He/AMFT: src/trainer/amft_trainer.py, src/trainer/ppo_loss.py, configs/main_config.yaml",
)
def amft(case: Case) -> Update:
    own = ~is_demonstration(case)
    tokens = np.repeat(case.reward[own], case.lengths[own])
    whitened = (case.reward - tokens.mean()) / np.sqrt(tokens.var(ddof=1) + 1e-8)
    advantage = np.where(own, whitened, 1)

    def loss(batch, pi):
        given = demonstrated(batch)
        rl = mean_where(surrogate(batch, pi) - 0.01 * pi["entropy"], batch.mask & ~given)
        return 0.2 * rl + 0.8 * mean_where(-pi["logp"], given)

    return Update(advantage, loss)


def shaped(logp: Array) -> Array:
    """f(p) = p / (p + 0.1), which LUFFY calls policy shaping."""
    p = np.exp(logp)
    return p / (p + 0.1)


@reference(
    "ampo",
    "SII-Enigma/AMPO: ampo/verl/verl/adaptive_mix_src/mix_core_alg.py and mix_actor.py,"
    " exp_scripts/train_ampo.sh; the entropy, a token mean there, is averaged as the loss here",
)
def ampo(case: Case) -> Update:
    def loss(batch, pi):
        off = -batch.advantage * shaped(pi["logp"])
        policy = np.where(demonstrated(batch), off, surrogate(batch, pi))
        return np.mean(((policy - 0.001 * pi["entropy"]) * batch.mask).sum(1)) / 64

    return Update(case.reward - group_mean(case.reward, case.group), loss, minibatches=2)


@reference(
    "chord_mu",
    "modelscope/Trinity-RFT: trinity/algorithm/policy_loss_fn/chord_policy_loss.py",
    progress=0.25,
)
def chord_mu(case: Case) -> Update:
    mu = 0.05 + (0.9 - 0.05) * 0.5 * (1 + np.cos(np.pi * 0.25))

    def loss(batch, pi):
        given = demonstrated(batch)
        rl = mean_where(surrogate(batch, pi), batch.mask & ~given)
        return (1 - mu) * rl + mu * mean_where(-pi["logp"], given)

    return Update(sampled_only(z_score, case), loss)


@reference(
    "chord_phi",
    "modelscope/Trinity-RFT: trinity/algorithm/policy_loss_fn/chord_policy_loss.py",
    signals={"sampled": WHOLE_DEMONSTRATIONS},
)
def chord_phi(case: Case) -> Update:
    def loss(batch, pi):
        given = demonstrated(batch)
        p = stop_gradient(np.exp(pi["logp"]))
        rl = mean_where(surrogate(batch, pi), batch.mask & ~given)
        return 0.9 * rl + 0.1 * mean_where(-p * (1 - p) * pi["logp"], given)

    return Update(sampled_only(z_score, case), loss)


@reference("expo_self_explanation", "arXiv:2507.02834, from memory of the paper")
def expo_self_explanation(case: Case) -> Update:
    def loss(batch, pi):
        given = demonstrated(batch)
        rl = row_mean_where(surrogate(batch, pi), batch.mask & ~given)
        return rl + 0.05 * row_mean_where(-pi["logp"], given)

    return Update(sampled_only(z_score, case), loss)


@reference(
    "grao",
    "arXiv:2508.07750, eq. 2 to 4 and the training details",
    groups=(5, 5, 5),
    signals={"sampled": WHOLE_DEMONSTRATIONS},
)
def grao(case: Case) -> Update:
    def loss(batch, pi):
        spread = group_std(batch.reward, batch.group, ddof=0) + 1e-6
        a = (batch.reward - group_mean(batch.reward, batch.group)) / spread
        likelihood = (pi["logp"] * batch.mask).sum(1) / batch.mask.sum(1)
        given = is_demonstration(batch)
        objectives = []
        for g in np.unique(batch.group):
            own = (batch.group == g) & ~given
            y = np.flatnonzero((batch.group == g) & given)[0]
            exploration = np.mean(a[own] * likelihood[own])
            alignment = np.mean(a[own] * (likelihood[own] - likelihood[y]))
            objectives.append(exploration + 0.5 * a[y] * likelihood[y] + 0.6 * alignment)
        return -np.mean(objectives)

    return Update(None, loss)


@reference(
    "hpt",
    "TsinghuaC3I/Unify-Post-Training: exp_scripts/train.sh, hpt/verl/verl/mix_src/mix_trainer.py"
    " and mix_actor.py",
    terms={"correct": [1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0]},
)
def hpt(case: Case) -> Update:
    # The rollouts of this case do not name the demonstrations. So each group is solved, as its
    # demonstrations count as rollouts, or it is dropped, as it has nothing to imitate.
    kept = group_mean(case.terms["correct"], case.group) > 0

    def loss(batch, pi):
        given = demonstrated(batch)
        rl = mean_where(surrogate(batch, pi), batch.mask & ~given)
        return rl + mean_where(-pi["logp"], given)

    advantage = sampled_only(lambda r, g: r - group_mean(r, g), case.select(kept))
    return Update(advantage, loss, minibatches=2, kept=kept)


@reference(
    "luffy",
    "arXiv:2504.14945; ElliottYan/LUFFY: exp_scripts/train.sh, luffy/verl/verl/mix_src",
)
def luffy(case: Case) -> Update:
    def loss(batch, pi):
        off = -batch.advantage * shaped(pi["logp"])
        policy = np.where(demonstrated(batch), off, surrogate(batch, pi))
        return np.mean((policy * batch.mask).sum(1)) / 64

    return Update(case.reward - group_mean(case.reward, case.group), loss, minibatches=2)


@reference(
    "srft",
    "arXiv:2506.19767, eq. 7 to 13, without clip and with pi_beta = 1 (section 4.1);"
    " TsinghuaC3I/Unify-Post-Training: hpt/verl/verl/mix_src/mix_core_alg.py"
    " (compute_token_on_off_policy_srft_loss) and mix_actor.py",
    terms={"correct": "binary"},
)
def srft(case: Case) -> Update:
    def loss(batch, pi):
        given = demonstrated(batch)
        entropy = stop_gradient((pi["entropy"] * batch.mask).sum(1) / batch.mask.sum(1))[:, None]
        logp = pi["logp"]
        imitation = -0.5 * np.exp(-entropy) * logp - batch.advantage * np.exp(logp)
        correct = batch.terms["correct"][:, None] == 1
        exploration = -np.where(correct, 0.1 * np.exp(entropy), -1.0) * logp
        return mean_where(imitation, given) + mean_where(exploration, batch.mask & ~given)

    sign = np.where(case.terms["correct"] == 1, 1, -1)
    advantage = np.where(is_demonstration(case), z_score(case.reward, case.group), sign)
    return Update(advantage, loss, minibatches=2)


@reference("cog_rethinker", "arXiv:2510.15979, abstract; DAPO's surrogate, arXiv:2503.14476, eq. 8")
def cog_rethinker(case: Case) -> Update:
    def loss(batch, pi):
        given = demonstrated(batch)
        rl = mean_where(surrogate(batch, pi, 0.2, 0.28), batch.mask & ~given)
        return rl + 0.1 * mean_where(-pi["logp"], given)

    # groups without spread are kept for their copies, which rollouts of this case do not name
    kept = group_std(case.reward, case.group) > 0
    return Update(sampled_only(z_score, case.select(kept)), loss, kept=kept)
