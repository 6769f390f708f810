"""Optimizers: components that make one, the update, and its state in a checkpoint."""

from grupo.optimizers.adafactor import Adafactor
from grupo.optimizers.adam import Adam
from grupo.optimizers.adam8bit import Adam8bit
from grupo.optimizers.base import OptimizerSpec
from grupo.optimizers.muon import Muon
from grupo.optimizers.schedule_free import ScheduleFreeAdam
from grupo.optimizers.sgd import SGD

__all__ = [
    "SGD",
    "Adafactor",
    "Adam",
    "Adam8bit",
    "Muon",
    "OptimizerSpec",
    "ScheduleFreeAdam",
]
