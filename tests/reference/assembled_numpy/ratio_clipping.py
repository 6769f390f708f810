"""Methods that bound the importance ratio."""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    clipped_surrogate,
    group_std,
    k3,
    mean_of_row_means,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.update import Update, reference


@reference("grpo", "arXiv:2402.03300, eq. 3 and 4")
def grpo(case: Case) -> Update:
    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.2, 0.2)
        kl = k3(pi["logp"], batch.signals["logp@ref"])
        return mean_of_row_means(surrogate + 0.04 * kl, batch.mask)

    return Update(z_score(case.reward, case.group), loss)


@reference(
    "dapo",
    "arXiv:2503.14476, eq. 8 to 13",
    code="dapo(max_length=6, overlong_buffer=3)",
    reward="binary",
)
def dapo(case: Case) -> Update:
    overlong = np.clip((case.lengths - (6 - 3)) / 3, 0, 1)
    shaped = 2 * case.reward - 1 - overlong
    kept = group_std(case.reward, case.group) > 0

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        return token_mean(clipped_surrogate(ratio, batch.advantage, 0.2, 0.28), batch.mask)

    return Update(z_score(shaped[kept], case.group[kept]), loss, minibatches=16, kept=kept)
