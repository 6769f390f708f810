"""Methods that compare pairs of given answers."""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    maximum,
    stop_gradient,
)
from tests.reference.assembled_numpy.update import Update, reference

PAIRS = {
    "groups": (2,) * 8,
    "reward": (1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0),
    "not_compared": {
        "token mean for mean of rows": "a group is a pair: the mean over rows is that over groups"
    },
}


def log_sigmoid(x):
    return -np.log(1 + np.exp(-x))


def total(x, mask):
    """The sum over each row's actions."""
    return (x * mask).sum(1)


def pair_rows(batch):
    """The rows of the best and of the worst rollout of each group with different rewards."""
    best, worst = [], []
    for g in np.unique(batch.group):
        rows = np.flatnonzero(batch.group == g)
        if batch.reward[rows].max() > batch.reward[rows].min():
            best.append(rows[np.argmax(batch.reward[rows])])
            worst.append(rows[np.argmin(batch.reward[rows])])
    return np.array(best), np.array(worst)


def log_ratio(batch, pi):
    """h, the log-ratio of each answer to the reference policy."""
    return total(pi["logp"] - batch.signals["logp@ref"], batch.mask)


def mean_logp(batch, pi):
    """Log-likelihood of each answer per token."""
    return total(pi["logp"], batch.mask) / batch.lengths


def pair_loss(score, link):
    """The update whose loss is the mean of link(score(chosen) - score(rejected)) over the pairs."""

    def loss(batch, pi):
        chosen, rejected = pair_rows(batch)
        scores = score(batch, pi)
        return np.mean(link(scores[chosen] - scores[rejected]))

    return Update(None, loss)


@reference("dpo", "arXiv:2305.18290, eq. 7", **PAIRS)
def dpo(case: Case) -> Update:
    return pair_loss(log_ratio, lambda z: -log_sigmoid(0.1 * z))


@reference("cdpo", "Mitchell's note, eq. 3, from memory", **PAIRS)
def cdpo(case: Case) -> Update:
    return pair_loss(log_ratio, lambda z: -0.9 * log_sigmoid(0.1 * z) - 0.1 * log_sigmoid(-0.1 * z))


@reference("robust_dpo", "arXiv:2403.00409, eq. 9, from memory", **PAIRS)
def robust_dpo(case: Case) -> Update:
    e = 0.1

    def link(z):
        right, flipped = -log_sigmoid(0.1 * z), -log_sigmoid(-0.1 * z)
        return ((1 - e) * right - e * flipped) / (1 - 2 * e)

    return pair_loss(log_ratio, link)


@reference("hinge", "arXiv:2309.06657, the hinge-norm loss", code="hinge(gamma=1.0)", **PAIRS)
def hinge(case: Case) -> Update:
    return pair_loss(log_ratio, lambda z: maximum(1 - 1.0 * z, 0.0))


@reference("ipo", "arXiv:2310.12036, eq. 17, with means over tokens", **PAIRS)
def ipo(case: Case) -> Update:
    def score(batch, pi):
        return log_ratio(batch, pi) / batch.lengths

    return pair_loss(score, lambda z: (z - 1 / (2 * 0.1)) ** 2)


@reference("ln_dpo", "arXiv:2407.15229, from memory", **PAIRS)
def ln_dpo(case: Case) -> Update:
    def score(batch, pi):
        return log_ratio(batch, pi) / batch.lengths

    return pair_loss(score, lambda z: -log_sigmoid(5.0 * z))


@reference("simpo", "arXiv:2405.14734, eq. 6", **PAIRS)
def simpo(case: Case) -> Update:
    beta, gamma = 2.0, 1.0
    return pair_loss(mean_logp, lambda z: -log_sigmoid(beta * z - gamma))


@reference("orpo", "arXiv:2403.07691, eq. 3 to 7", **PAIRS)
def orpo(case: Case) -> Update:
    def loss(batch, pi):
        chosen, rejected = pair_rows(batch)
        m = mean_logp(batch, pi)
        log_odds = m - np.log(1 - np.exp(m))
        odds_ratio = -log_sigmoid(log_odds[chosen] - log_odds[rejected])
        return np.mean(-m[chosen] + 0.1 * odds_ratio)

    return Update(None, loss)


@reference("nca", "arXiv:2402.05369, the loss for pairs; the authors' README", **PAIRS)
def nca(case: Case) -> Update:
    def loss(batch, pi):
        chosen, rejected = pair_rows(batch)
        r = 0.01 * log_ratio(batch, pi)
        down = 0.5 * log_sigmoid(-r[chosen]) + 0.5 * log_sigmoid(-r[rejected])
        return np.mean(-log_sigmoid(r[chosen]) - down)

    return Update(None, loss)


def binary_classifier(batch, pi, beta):
    """-log sigma(r - d) of chosen and -log sigma(d - r) of rejected answers, by pair."""
    chosen, rejected = pair_rows(batch)
    r = beta * log_ratio(batch, pi)
    shift = stop_gradient(np.mean(np.concatenate([r[chosen], r[rejected]])))
    return -log_sigmoid(r[chosen] - shift) - log_sigmoid(shift - r[rejected])


@reference("bco", "arXiv:2404.04656, eq. 9 and 10; TRL, dpo_trainer.py, 'bco_pair'", **PAIRS)
def bco(case: Case) -> Update:
    return Update(None, lambda batch, pi: np.mean(binary_classifier(batch, pi, 0.1)))


@reference("mpo", "arXiv:2411.10442, eq. 1 to 6; weights of InternVL's scripts", **PAIRS)
def mpo(case: Case) -> Update:
    def loss(batch, pi):
        chosen, rejected = pair_rows(batch)
        h = log_ratio(batch, pi)
        preference = -log_sigmoid(0.1 * (h[chosen] - h[rejected]))
        quality = binary_classifier(batch, pi, 0.1)
        generation = -mean_logp(batch, pi)[chosen]
        return np.mean(0.8 * preference + 0.2 * quality + 1.0 * generation)

    return Update(None, loss)


@reference(
    "modpo",
    "arXiv:2310.03708, eq. 11",
    code='modpo(margin_weights=(("margin", 0.3),))',
    terms={"margin": "real"},
    **PAIRS,
)
def modpo(case: Case) -> Update:
    weight = 0.3

    def loss(batch, pi):
        chosen, rejected = pair_rows(batch)
        h = 0.1 * log_ratio(batch, pi)
        margin = weight * (batch.terms["margin"][chosen] - batch.terms["margin"][rejected])
        return np.mean(-log_sigmoid((h[chosen] - h[rejected] - margin) / (1 - weight)))

    return Update(None, loss)


@reference("bradley_terry", "arXiv:2203.02155, eq. 1", **PAIRS)
def bradley_terry(case: Case) -> Update:
    def score(batch, pi):
        last = batch.mask.shape[1] - 1 - np.argmax(batch.mask[:, ::-1], axis=1)
        return pi["score"][np.arange(len(last)), last]

    return pair_loss(score, lambda z: -log_sigmoid(z))
