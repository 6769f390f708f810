"""Methods that learn from the distributions of a teacher."""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    group_mean,
    mean_of_row_means,
    mean_where,
    stop_gradient,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.losses import surrogate
from tests.reference.assembled_numpy.update import Update, reference


@reference(
    "g_opd",
    "RUCBM/G-OPD: verl/verl/workers/actor/dp_actor.py, branch only_reverse_kl_advantages",
)
def g_opd(case: Case) -> Update:
    base = case.signals["logp@ref"]
    gain = case.signals["logp@teacher"] - base
    advantage = 1.25 * gain - (case.old_logp - base)

    def loss(batch, pi):
        return token_mean(surrogate(batch, pi), batch.mask)

    return Update(advantage, loss)


@reference("gkd", "arXiv:2306.13649, eq. 1 (mean over the answer) and algorithm 1 with lambda 1")
def gkd(case: Case) -> Update:
    def loss(batch, pi):
        return mean_of_row_means(pi["jsd@teacher"], batch.mask)

    return Update(None, loss)


@reference("kdrl", "arXiv:2506.02208: GRPO with k2 of the reverse KL, from memory of the paper")
def kdrl(case: Case) -> Update:
    def loss(batch, pi):
        k2 = (batch.signals["logp@teacher"] - pi["logp"]) ** 2 / 2
        return token_mean(surrogate(batch, pi) + 0.003 * k2, batch.mask)

    return Update(z_score(case.reward, case.group), loss)


@reference(
    "opd",
    "thinking-machines-lab/tinker-cookbook: tinker_cookbook/distillation/train_on_policy.py",
)
def opd(case: Case) -> Update:
    def loss(batch, pi):
        return token_mean(-batch.advantage * pi["logp"], batch.mask)

    return Update(case.signals["logp@teacher"] - case.old_logp, loss)


@reference(
    "srpo",
    "arXiv:2604.02288, section 3.1 to 3.3, section 4.1 and table 3 (no std, clip of 0.28 above);"
    " lasgroup/SDPO: verl/trainer/ppo/core_algos.py and verl/trainer/config/sdpo.yaml (is_clip)",
    terms={"correct": [0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0]},
)
def srpo(case: Case) -> Update:
    def loss(batch, pi):
        correct = batch.terms["correct"] == 1
        has_teacher = group_mean(correct, batch.group) > 0
        distilled = batch.mask & (~correct & has_teacher)[:, None]
        weight = np.exp(-batch.signals["entropy@hinted"])
        weight = weight / mean_where(weight, distilled)
        ratio = stop_gradient(np.minimum(np.exp(pi["logp"] - batch.old_logp), 2.0))
        distillation = weight * ratio * pi["jsd@hinted"]
        per_action = surrogate(batch, pi, 0.2, 0.28)
        return token_mean(np.where(distilled, distillation, per_action), batch.mask)

    return Update(case.reward - group_mean(case.reward, case.group), loss)
