"""BranchGRPO: a denoising tree, compared at each depth. Li et al., 2025, arXiv:2509.06040."""

from grupo.algo.advantages import ClampAdvantage, chain
from grupo.algo.advantages.tree import ActionMaskFn, DedupTokenMean, NormalizePerDepth
from grupo.algo.losses import Clip
from grupo.core.numbers import NonNegative, NonNegativeInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import SplitTree

PAPER = Paper(
    title="BranchGRPO: Stable and Efficient GRPO with Structured Branching in Diffusion Models",
    use="Generating images dominates the cost, and each denoising step needs its own advantage.",
    tags=("diffusion", "tree", "multimodal", "process-reward"),
    checked=("golden", "properties", "run"),
    catalogue=("branchgrpo",),
)


def branch_grpo(
    split_steps: tuple[NonNegativeInt, ...] = (0, 3, 6, 9),
    clip_eps: NonNegative = 1e-3,
    *,
    max_advantage: NonNegative = 5.0,
    sibling_correlation: NonNegative = 0.0,
    logp_coef: NonNegative = 0.0,
    masks: tuple[ActionMaskFn, ...] = (),
) -> Method:
    """A = (v - mean(v)) / std(v) among the nodes of a depth, v the mean reward of a node's leaves.

    loss = -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A), R = pi / old. All steps that lead to a
    node have its A; a step counts once, however many leaves share it.

    Args:
        split_steps: denoising steps before which the tree splits in two.
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        max_advantage: A is clamped to [-max_advantage, max_advantage].
        sibling_correlation: correlation of the siblings' noises at a split.
        logp_coef: in v a leaf has the weight exp(logp_coef log p(leaf | node)).
        masks: a step counts if all masks hold: `BestOfSiblings()` and `TopBottomLeaves(4)` prune
            the width, `OutsideWindow(9, 4)` the depth.
    """
    # Numbers are the released run's, of 20 steps. The rest is from two readers' notes of the
    # paper's fifth version: noises (common + s own) / sqrt(1 + s^2), s = 4, so
    # sibling_correlation = 1/17; logp_coef = 1 is more stable; of the last split each parent's best
    # child, or the best and the worst leaves, the split's own step staying (8.625 steps a leaf are
    # 138 / 16); four depths left out, from the last split, a step later every 30:
    # OutsideWindow(Linear(9.0, 19.0), 4).
    # The released code differs: independent noises, four times as large, although R uses the
    # unscaled density; fusion weights children by the step to each alone; "best per branch" sorts
    # steps of equal A and so keeps each branch's earlier half; the window moves to earlier depths.
    # Masks remove steps from the loss, not from the forward pass: rows are whole.
    return Method(
        sampler=SplitTree(split_steps, sibling_correlation=sibling_correlation),
        advantage=chain(
            NormalizePerDepth(logp_coef=logp_coef), ClampAdvantage(-max_advantage, max_advantage)
        ),
        loss=Clip(clip_eps, clip_eps),
        aggregation=DedupTokenMean(masks),
    )
