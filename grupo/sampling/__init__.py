"""How a group comes to be: samplers, and samplers made from samplers."""

from grupo.sampling.anytime import Anytime
from grupo.sampling.base import Sampler
from grupo.sampling.believing import WithBelief
from grupo.sampling.branching import DeviateOnce, SplitTree
from grupo.sampling.budgeted import Budgeted
from grupo.sampling.chunked import Chunked
from grupo.sampling.coached import Coached
from grupo.sampling.demonstrate import Column, Demonstrate
from grupo.sampling.exits import EarlyExits
from grupo.sampling.expert import WithExpert
from grupo.sampling.greedy import WithGreedy
from grupo.sampling.hinted import Guided
from grupo.sampling.independent import Independent
from grupo.sampling.paraphrased import Paraphrased
from grupo.sampling.pruned import Posterior, Pruned
from grupo.sampling.refined import Refined
from grupo.sampling.reflected import Reflected
from grupo.sampling.resample import UntilInformative
from grupo.sampling.scaffolded import Scaffolded
from grupo.sampling.segments import SegmentTree
from grupo.sampling.selfplay import SelfPlay
from grupo.sampling.tempered import WithTempered
from grupo.sampling.tree import Tree
from grupo.sampling.unsure import BranchWhenUnsure

__all__ = [
    "Anytime",
    "BranchWhenUnsure",
    "Budgeted",
    "Chunked",
    "Coached",
    "Column",
    "Demonstrate",
    "DeviateOnce",
    "EarlyExits",
    "Guided",
    "Independent",
    "Paraphrased",
    "Posterior",
    "Pruned",
    "Refined",
    "Reflected",
    "Sampler",
    "Scaffolded",
    "SegmentTree",
    "SelfPlay",
    "SplitTree",
    "Tree",
    "UntilInformative",
    "WithBelief",
    "WithExpert",
    "WithGreedy",
    "WithTempered",
]
