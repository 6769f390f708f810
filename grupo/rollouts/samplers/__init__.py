"""How a group comes to be: samplers, and samplers made from samplers."""

from grupo.rollouts.samplers.answer_belief import WithBelief
from grupo.rollouts.samplers.anytime import Anytime
from grupo.rollouts.samplers.base import Sampler
from grupo.rollouts.samplers.critique import Refined
from grupo.rollouts.samplers.demonstrations import Column, Demonstrate
from grupo.rollouts.samplers.early_exit import EarlyExits
from grupo.rollouts.samplers.entropy_branching import BranchWhenUnsure
from grupo.rollouts.samplers.greedy_baseline import WithGreedy
from grupo.rollouts.samplers.hints import Guided
from grupo.rollouts.samplers.independent import Independent
from grupo.rollouts.samplers.multi_temperature import WithTempered
from grupo.rollouts.samplers.paraphrases import Paraphrased
from grupo.rollouts.samplers.pruning import Posterior, Pruned
from grupo.rollouts.samplers.reflection import Reflected
from grupo.rollouts.samplers.resample import UntilInformative
from grupo.rollouts.samplers.scaffolding import Scaffolded
from grupo.rollouts.samplers.sde_branching import DeviateOnce, SplitTree
from grupo.rollouts.samplers.segment_tree import SegmentTree
from grupo.rollouts.samplers.self_hint import Coached
from grupo.rollouts.samplers.self_play import SelfPlay
from grupo.rollouts.samplers.shared_prefix import Tree
from grupo.rollouts.samplers.with_expert import WithExpert

__all__ = [
    "Anytime",
    "BranchWhenUnsure",
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
