"""Optimizers: components that make one, the update, and its state in a checkpoint."""

from grupo.algo.optimizers.adafactor import Adafactor
from grupo.algo.optimizers.adam import Adam
from grupo.algo.optimizers.adam8bit import Adam8bit
from grupo.algo.optimizers.base import OptimizerSpec
from grupo.algo.optimizers.muon import Muon
from grupo.algo.optimizers.schedule_free import ScheduleFreeAdam
from grupo.algo.optimizers.sgd import SGD

__all__ = [
    "SGD",
    "Adafactor",
    "Adam",
    "Adam8bit",
    "Muon",
    "OptimizerSpec",
    "ScheduleFreeAdam",
]
