"""Methods whose paper could not be opened: references of the record, not of a source.

They hold the assembled method to what its record says, and say nothing about the paper.
"""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import z_score
from tests.reference.assembled_numpy.losses import ppo_loss
from tests.reference.assembled_numpy.update import Update, reference


@reference("tldr", "the record", code="tldr(max_length=4)", terms={"level": [0, 1, 2] * 5})
def tldr(case: Case) -> Update:
    level = case.terms["level"]
    coef = np.array([0.5, 0.25, 0.0])[level.astype(int)]
    shaped = case.reward * (1 - coef * np.minimum(case.lengths / 4, 1))

    loss = ppo_loss()
    return Update(z_score(shaped, 3 * case.group + level), loss)
