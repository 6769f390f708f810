"""Methods whose paper could not be opened: references of the record, not of a source.

They hold the assembled method to what its record says, and say nothing about the paper.
"""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.losses import ppo_loss
from tests.reference.assembled_numpy.update import Update, reference


@reference("ppl_position", "the record", code="ppl_position(perplexity_coef=0.8)")
def ppl_position(case: Case) -> Update:
    log_perplexity = -(case.old_logp * case.mask).sum(1) / case.lengths
    w = (log_perplexity - log_perplexity.mean()) / (log_perplexity.std() + 1e-8)
    a = (z_score(case.reward, case.group) * np.maximum(1 - 0.8 * w, 0))[:, None]
    number = np.cumsum(case.mask, 1) - 1
    position = number / np.maximum(case.lengths - 1, 1)[:, None]

    loss = ppo_loss(token_mean)
    return Update(a + np.sign(a) * 0.1 / (1 + np.exp(-10 * (position - 0.5))), loss)


@reference("tldr", "the record", code="tldr(max_length=4)", terms={"level": [0, 1, 2] * 5})
def tldr(case: Case) -> Update:
    level = case.terms["level"]
    coef = np.array([0.5, 0.25, 0.0])[level.astype(int)]
    shaped = case.reward * (1 - coef * np.minimum(case.lengths / 4, 1))

    loss = ppo_loss()
    return Update(z_score(shaped, 3 * case.group + level), loss)
