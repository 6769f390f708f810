"""TreePO: a tree of segments, compared at every branching. Li et al., 2025, arXiv:2508.17445."""

import torch
from torch import Tensor

from grupo import groups
from grupo.batch import Batch
from grupo.credit import Whiten, chain
from grupo.credit.actions import rollout_and_turn
from grupo.credit.turns import alike
from grupo.curate import informative
from grupo.curricula import Refilled, Shuffled
from grupo.losses import Clip
from grupo.method import Method
from grupo.paper import Paper
from grupo.piece import piece
from grupo.sampling import SegmentTree
from grupo.weights import token_mean

PAPER = Paper(
    title="TreePO: Bridging the Gap of Policy Optimization and Efficacy and Inference Efficiency "
    "with Heuristic Tree-based Modeling",
    use="Sampling is what costs, and what answers begin with can be sampled once for several.",
    checked=("golden", "laws", "run"),
    catalogue=("treepo",),
)


@piece
class Ancestors:
    """Mean over ancestors, by leaves^power, of x - mean(x of their leaves): group, shared nodes."""

    power: float = 0.0
    needs = frozenset({"mark/node"})

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        acted, R = rollout_and_turn(batch)[0], len(x)
        node = alike(batch.group[acted], batch.seen["mark/node"][batch.mask])
        roots = torch.stack([torch.arange(R), batch.group])
        leaf, node = torch.cat([roots, torch.stack([acted, node + R]).unique(dim=1)], 1)
        n = groups.count(x[leaf], node)
        weight = n**self.power * ((n > 1) | (node < R))
        off = weight * (x[leaf] - groups.mean(x[leaf], node))
        return groups.sum(off, leaf)[:R] / groups.sum(weight, leaf)[:R]


def treepo(leaves: int = 16, segment: int = 512, depth: int = 14, rounds: int = 10) -> Method:
    """A = mean over a leaf's ancestors, the group first, of r - mean(r of their leaves); whitened.

    Clip [0.8, 1.28], token mean; groups whose rewards are all the same are dropped.
    """
    # Not here: paths end as they repeat themselves, or in a box; a penalty for overlong answers.
    return Method(
        curriculum=Refilled(Shuffled(), rounds),
        sample=SegmentTree(leaves, segment, depth),
        curate=informative,
        credit=chain(Ancestors(), Whiten()),
        loss=Clip(0.2, 0.28),
        weigh=token_mean,
    )
