"""Small language models made on the spot, where no hub is at hand."""

from grupo.toy.arithmetic_lm import Seedling, ensure, grow
from grupo.toy.masked_lm import MaskedSeedling, Reversals

__all__ = ["MaskedSeedling", "Reversals", "Seedling", "ensure", "grow"]
