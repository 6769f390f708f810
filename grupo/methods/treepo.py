"""TreePO: a tree of segments, compared at every node. Li et al., 2025, arXiv:2508.17445."""

import torch
from torch import Tensor

from grupo.algo.advantages import Whiten, chain
from grupo.algo.advantages.token_table import rollout_and_turn
from grupo.algo.advantages.turn_table import combine_labels
from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.samplers import SegmentTree


def treepo(
    group_size: PositiveInt = 16,
    segment_tokens: PositiveInt = 512,
    max_depth: PositiveInt = 14,
    max_resample_rounds: PositiveInt = 10,
) -> Method:
    """A = whitened mean over a leaf's ancestors, the group among them, of r - mean(r of their
    leaves).

    Clip [0.8, 1.28], token mean; groups of equal rewards are dropped.

    A step makes 16 updates, one on each of 16 minibatches.

    Args:
        group_size: rollouts per task (authors' script: 16).
        segment_tokens: tokens per segment (authors' script: 512).
        max_depth: most segments of an answer (authors' script: 14).
        max_resample_rounds: most rounds of dynamic sampling in a step (authors' script: 10).
    """
    return Method(
        curriculum=DynamicSampling(ShuffledTasks(), max_resample_rounds),
        sampler=SegmentTree(group_size, segment_tokens, max_depth),
        filter=keep_nonzero_std,
        advantage=chain(AncestorAdvantage(), Whiten()),
        loss=Clip(0.2, 0.28),
        aggregation=token_mean,
        updates=Updates(minibatches=16),
    )


@component
class AncestorAdvantage:
    """Mean over ancestors of x - mean(x of their leaves), weighted by leaves^leaf_exponent.

    The ancestors of a leaf are its group and the nodes it shares.

    Args:
        leaf_exponent: exponent of the number of leaves in the weights.
    """

    leaf_exponent: NumberOrSchedule = 0.0

    requires = Requires(signals=("step/node",))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        token_rollout = rollout_and_turn(batch)[0]
        R = len(x)
        node = combine_labels(batch.group[token_rollout], batch.signals["step/node"][batch.mask])
        roots = torch.stack([torch.arange(R), batch.group])
        edges = torch.stack([token_rollout, node + R]).unique(dim=1)
        leaf, node = torch.cat([roots, edges], 1)
        n = group_ops.count(x[leaf], node)
        weight = n**self.leaf_exponent * ((n > 1) | (node < R))
        deviation = weight * (x[leaf] - group_ops.mean(x[leaf], node))
        return group_ops.sum(deviation, leaf)[:R] / group_ops.sum(weight, leaf)[:R]


PAPER = Paper(
    title="TreePO: Bridging the Gap of Policy Optimization and Efficacy and Inference Efficiency "
    "with Heuristic Tree-based Modeling",
    use="Sampling dominates the cost, and common prefixes can be sampled once for several answers.",
    tags=("tree", "advantage", "filtering"),
    checked=("golden", "properties", "run"),
    catalogue=("treepo",),
    source=Source(
        "code",
        (
            "multimodal-art-projection/TreePO, verl/trainer/ppo/core_algos.py and "
            "recipe/treepo/run_treepo_train.sh"
        ),
    ),
    plan="run_treepo_train.sh: train batch 512, minibatch 32: 16 updates per step",
    missing=(
        "The early end of paths that repeat themselves or have a boxed answer.",
        "The overlong penalty over the last 512 tokens and the dual clip of 10 of the script.",
    ),
    deviations=(
        "Places that remain after a division go to the first paths, one each; the release gives all"
        " of them to the last path.",
        "The first round has 2 to 8 segments, as the script's experiment is named; the script sets"
        " the 8 where no code reads it (actor_rollout_ref.tree_random_first_div_max), so that its"
        " first round has 2.",
        "The script filters by accuracy, the method by the reward.",
    ),
    audit=(
        "advantage compared with compute_tree_reinforce_plus_plus_baseline_outcome_advantage, "
        "constants and batch sizes with the script"
    ),
)
