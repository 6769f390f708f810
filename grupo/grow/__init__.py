"""Small language models made on the spot, where no hub is at hand."""

from grupo.grow.masked import MaskedSeedling, Reversals
from grupo.grow.seedling import Seedling, ensure, grow

__all__ = ["MaskedSeedling", "Reversals", "Seedling", "ensure", "grow"]
