"""How a group comes to be: samplers, and samplers made from samplers."""

from grupo.sampling.base import Sampler
from grupo.sampling.demonstrate import Column, Demonstrate
from grupo.sampling.expert import WithExpert
from grupo.sampling.greedy import WithGreedy
from grupo.sampling.independent import Independent
from grupo.sampling.paraphrased import Paraphrased
from grupo.sampling.resample import UntilInformative
from grupo.sampling.tempered import WithTempered
from grupo.sampling.tree import Tree

__all__ = [
    "Column",
    "Demonstrate",
    "Independent",
    "Paraphrased",
    "Sampler",
    "Tree",
    "UntilInformative",
    "WithExpert",
    "WithGreedy",
    "WithTempered",
]
