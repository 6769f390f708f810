"""How a group comes to be: samplers, and samplers made from samplers."""

from grupo.sampling.base import Sampler
from grupo.sampling.demonstrate import Demonstrate
from grupo.sampling.independent import Independent
from grupo.sampling.resample import UntilInformative
from grupo.sampling.tree import Tree

__all__ = ["Demonstrate", "Independent", "Sampler", "Tree", "UntilInformative"]
