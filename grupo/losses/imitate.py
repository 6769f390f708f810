"""Imitation: learning from what somebody else said."""

from grupo.batch import Batch, PerAction, Signals
from grupo.losses.base import Loss
from grupo.piece import piece


@piece
class Likelihood(Loss):
    """-log pi: supervised learning of whatever the rows hold."""

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -pi.logp
