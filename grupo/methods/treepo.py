"""TreePO: a tree of segments, compared at every branching. Li et al., 2025, arXiv:2508.17445."""

import torch
from torch import Tensor

from grupo.algo.advantages import Whiten, chain
from grupo.algo.advantages.token_table import rollout_and_turn
from grupo.algo.advantages.turn_table import combine_labels
from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.samplers import SegmentTree

PAPER = Paper(
    title="TreePO: Bridging the Gap of Policy Optimization and Efficacy and Inference Efficiency "
    "with Heuristic Tree-based Modeling",
    use="Sampling is what costs, and what answers begin with can be sampled once for several.",
    checked=("golden", "laws", "run"),
    catalogue=("treepo",),
)


@component
class AncestorAdvantage:
    """Mean over ancestors, by leaves^power, of x - mean(x of their leaves): group, shared nodes."""

    leaf_exponent: float = 0.0
    required_signals = frozenset({"step/node"})

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        acted, R = rollout_and_turn(batch)[0], len(x)
        node = combine_labels(batch.group[acted], batch.signals["step/node"][batch.mask])
        roots = torch.stack([torch.arange(R), batch.group])
        leaf, node = torch.cat([roots, torch.stack([acted, node + R]).unique(dim=1)], 1)
        n = group_ops.count(x[leaf], node)
        weight = n**self.leaf_exponent * ((n > 1) | (node < R))
        off = weight * (x[leaf] - group_ops.mean(x[leaf], node))
        return group_ops.sum(off, leaf)[:R] / group_ops.sum(weight, leaf)[:R]


def treepo(
    group_size: int = 16,
    segment_tokens: int = 512,
    max_depth: int = 14,
    max_resample_rounds: int = 10,
) -> Method:
    """A = mean over a leaf's ancestors, the group first, of r - mean(r of their leaves); whitened.

    Clip [0.8, 1.28], token mean; groups whose rewards are all the same are dropped.
    """
    # Not here: paths end as they repeat themselves, or in a box; a penalty for overlong answers.
    return Method(
        curriculum=DynamicSampling(ShuffledTasks(), max_resample_rounds),
        sampler=SegmentTree(group_size, segment_tokens, max_depth),
        filter=keep_nonzero_std,
        advantage=chain(AncestorAdvantage(), Whiten()),
        loss=Clip(0.2, 0.28),
        aggregation=token_mean,
    )
