"""Methods that compare the answers that the policy sampled."""

from dataclasses import replace

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    z_score,
)
from tests.reference.assembled_numpy.losses import ppo_loss
from tests.reference.assembled_numpy.preference_pairs import (
    log_ratio,
    log_sigmoid,
    mean_logp,
    pair_loss,
    total,
)
from tests.reference.assembled_numpy.update import Update, reference

DISTINCT = (0.2, 0.9, 0.4, 0.1, 0.7, 0.3, 0.0, 0.8, 0.5, 0.6, 1.0, 0.15, 0.35, 0.95, 0.55, 0.25)


@reference(
    "inpo",
    "arXiv:2407.00617, the loss on winners and losers, from memory; epochs of a copy of the code",
    reward=DISTINCT[:15],
)
def inpo(case: Case) -> Update:
    eta, ref_weight = 0.005, 1 / 3

    def score(batch, pi):
        anchor = ref_weight * batch.signals["logp@ref"] + (1 - ref_weight) * batch.old_logp
        return total(pi["logp"] - anchor, batch.mask)

    return replace(pair_loss(score, lambda z: (z - 1 / (2 * eta)) ** 2), epochs=2)


@reference(
    "sppo",
    "arXiv:2405.00675, eq. 4.6; uclaml/SPPO, sppo/trainer.py and scripts/compute_prob.py:"
    " an answer is one of the K opponents, which it beats with probability 1/2",
    groups=(5, 5, 5),
    terms={"win_rate": "real"},
)
def sppo(case: Case) -> Update:
    def loss(batch, pi):
        size = np.array([(batch.group == g).sum() for g in batch.group])
        probability = ((size - 1) * batch.terms["win_rate"] + 1 / 2) / size
        log_ratio = total(pi["logp"] - batch.old_logp, batch.mask)
        return np.mean((log_ratio - 1000.0 * (probability - 1 / 2)) ** 2)

    return Update(None, loss, minibatches=8)


@reference(
    "spo_selfplay",
    "arXiv:2401.04056, algorithm 1; the optimiser, which it leaves open, is that of GRPO",
    terms={"win_rate": "real"},
)
def spo_selfplay(case: Case) -> Update:
    loss = ppo_loss()
    return Update(z_score(case.terms["win_rate"], case.group), loss)


@reference(
    "arenarl",
    "Alibaba-NLP/qqr, single_elimination.py (calculate_group_rewards) and run-qwen3-8B.sh; slime",
    terms={"rank": "real"},
)
def arenarl(case: Case) -> Update:
    loss = ppo_loss(high=0.28)
    return Update(z_score(case.terms["rank"], case.group), loss, minibatches=6)


@reference(
    "cgpo_codpo",
    "TRL's draft, trl/trainer/cgpo_trainer.py (codpo_optimization); arXiv:2409.20370",
    groups=(4, 4, 4, 4),
    reward=DISTINCT,
    terms={"feasible": (1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1)},
)
def cgpo_codpo(case: Case) -> Update:
    """Without a feasible answer a group is skipped; without an infeasible one its worst loses."""

    def loss(batch, pi):
        h, m, losses = log_ratio(batch, pi), mean_logp(batch, pi), []
        for g in np.unique(batch.group):
            rows = batch.group == g
            feasible, infeasible = (rows & (batch.terms["feasible"] == x) for x in (1, 0))
            if not feasible.any():
                continue
            chosen = np.argmax(np.where(feasible, batch.reward, -np.inf))
            others = infeasible if infeasible.any() else rows
            rejected = np.argmin(np.where(others, batch.reward, np.inf))
            losses.append(-log_sigmoid(0.1 * (h[chosen] - h[rejected])) - 5.0 * m[chosen])
        return np.mean(losses)

    return Update(None, loss)


@reference(
    "gepo",
    "arXiv:2505.12723, from memory of its text",
    groups=(4, 4, 4, 3),
    reward=(1, 1, 0, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 0, 1),
)
def gepo(case: Case) -> Update:
    def loss(batch, pi):
        h, losses = log_ratio(batch, pi), []
        for g in np.unique(batch.group):
            equivalent = h[(batch.group == g) & (batch.reward == 1)]
            inequivalent = h[(batch.group == g) & (batch.reward == 0)]
            difference = np.mean(equivalent) - np.mean(inequivalent)
            variance = np.mean((equivalent - np.mean(equivalent)) ** 2)
            losses.append(-log_sigmoid(0.1 * difference) + 1.0 * variance)
        return np.mean(losses)

    return Update(None, loss)


@reference(
    "op_gfn",
    "arXiv:2310.00386; yhangchen/OP-GFN, multi/grid_cond_gfn.py (ordering_loss_ce)",
    reward="half",
)
def op_gfn(case: Case) -> Update:
    def loss(batch, pi):
        flow, losses = total(pi["logp"], batch.mask), []
        for g in np.unique(batch.group):
            rows = batch.group == g
            best = batch.reward[rows] == batch.reward[rows].max()
            share = flow[rows] - np.log(np.sum(np.exp(flow[rows])))
            losses.append(-np.mean(share[best]))
        return np.mean(losses)

    return Update(None, loss)


@reference(
    "srpo_self_improving",
    "arXiv:2406.01660, the losses of reviser and generator, derived from its min-max objective",
    groups=(6, 6),
    reward=(1, 0, 1, 1, 0, 0) * 2,
    terms={
        "answer_is_chosen": (1, 0, 1, 1, 0, 0) * 2,
        "previous_is_chosen": (0.5, 0.5, 1, 0, 1, 0) * 2,
    },
    lengths=(7, 4, 7, 7, 4, 4, 6, 5, 6, 6, 5, 5),
    code="srpo_self_improving(beta=0.4, generator_weight=0.3)",
)
def srpo_self_improving(case: Case) -> Update:
    beta, weight = 0.4, 0.3

    def pair(batch, scores):
        answer, previous = batch.terms["answer_is_chosen"], batch.terms["previous_is_chosen"]
        h = dict(zip(zip(answer, previous, strict=True), scores, strict=True))
        w_of_l, l_of_w, w_of_w, l_of_l = h[1, 0], h[0, 1], h[1, 1], h[0, 0]
        # the method's reading: a sum over the two orders of a pair, not their mean
        reviser = (1 / 2 - beta * (w_of_l - l_of_l)) ** 2
        reviser = reviser + (-1 / 2 - beta * (l_of_w - w_of_w)) ** 2
        both = w_of_l - l_of_w + h[1, 0.5] - h[0, 0.5]
        generator = (1 / 2 - beta / 2 * both) ** 2
        return (1 - weight) * reviser + weight * generator

    def loss(batch, pi):
        h = log_ratio(batch, pi)
        groups = [batch.group == g for g in np.unique(batch.group)]
        return np.mean([pair(batch.select(rows), h[rows]) for rows in groups])

    return Update(None, loss)


def soft_sort(x, steepness):
    """The matrix of the probability that element i is at place j, in ascending order.

    An odd-even network, whose comparators have the distribution function of Cauchy.
    """
    n = len(x)
    x, places = list(x), np.eye(n, dtype=complex)
    for layer in range(n):
        for j in range(layer % 2, n - 1, 2):
            a, b = x[j], x[j + 1]
            right = np.arctan(steepness * (b - a)) / np.pi + 1 / 2
            x[j], x[j + 1] = right * a + (1 - right) * b, (1 - right) * a + right * b
            swap = np.array([[right, 1 - right], [1 - right, right]])
            places[:, j : j + 2] = places[:, j : j + 2] @ swap
    return places


@reference(
    "groco",
    "arXiv:2301.02009, ascending distances; ninatu/learning_by_sorting, losses/groco.py (positives"
    " and negatives in order beforehand, Cauchy, odd-even, BCE); Felix-Petersen/diffsort,"
    " functional.py and networks.py",
    groups=(5, 4, 4, 3),
    reward="half",
)
def groco(case: Case) -> Update:
    def loss(batch, pi):
        distance, losses = -mean_logp(batch, pi), []
        for g in np.unique(batch.group):
            rows = np.flatnonzero(batch.group == g)
            rows = rows[np.lexsort((np.real(distance[rows]), -batch.reward[rows]))]
            places = soft_sort(distance[rows], 1.0)
            own = batch.reward[rows][:, None] == batch.reward[rows][None, :]
            losses.append(-np.mean(np.log(np.sum(places * own, axis=1))))
        return np.mean(losses)

    return Update(None, loss)
