"""BranchGRPO: a denoising tree, compared at each depth. Li et al., 2025, arXiv:2509.06040."""

from grupo.algo.advantages import ClampAdvantage, chain
from grupo.algo.advantages.tree import ActionMaskFn, DedupTokenMean, NormalizePerDepth
from grupo.algo.losses import Clip
from grupo.core.numbers import NonNegative, NonNegativeInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import SplitTree


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
        split_steps: denoising steps before which the tree splits in two (released run of 20 steps).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        max_advantage: A is clamped to [-max_advantage, max_advantage].
        sibling_correlation: correlation of the siblings' noises at a split.
        logp_coef: in v a leaf has the weight exp(logp_coef log p(leaf | node)).
        masks: a step counts if all masks hold: `BestOfSiblings()` and `TopBottomLeaves(4)` prune
            the width, `OutsideWindow(9, 4)` the depth.
    """
    return Method(
        sampler=SplitTree(split_steps, sibling_correlation=sibling_correlation),
        advantage=chain(
            NormalizePerDepth(logp_coef=logp_coef), ClampAdvantage(-max_advantage, max_advantage)
        ),
        loss=Clip(clip_eps, clip_eps),
        aggregation=DedupTokenMean(masks),
    )


PAPER = Paper(
    title="BranchGRPO: Stable and Efficient GRPO with Structured Branching in Diffusion Models",
    use="Generating images dominates the cost, and each denoising step needs its own advantage.",
    tags=("diffusion", "tree", "multimodal", "process-reward"),
    checked=("golden", "properties", "run"),
    catalogue=("branchgrpo",),
    source=Source(
        "code",
        "Fredreic1849/BranchGRPO, fastvideo/train_branchgrpo_flux.py and scripts/finetune; two "
        "notes on version 5 of the paper",
    ),
    plan=(
        "the release makes an update after every 12 denoising steps of a device's two trees; "
        "minibatches split groups here: one update per step, at which R is 1 and the clip never "
        "acts"
    ),
    missing=(
        "SDE steps in a window of 4 and ODE steps outside it (mix_ode_sde_tree).",
        "The two trees of a device start from the same noise (init_same_noise).",
    ),
    deviations=(
        (
            "Siblings have independent noises of the density's own size. In the release they are "
            "four times as large, although R uses the unscaled density. The paper's are (common + "
            "s own) / sqrt(1 + s^2), s = 4: sibling_correlation = 1/17."
        ),
        (
            "logp_coef = 1 weights leaves by the path from the node; the release weights children "
            "by the step to each alone."
        ),
        (
            "BestOfSiblings keeps the best child of each parent of the last split, "
            "TopBottomLeaves the best and the worst leaves, the split's own step staying (8.625 "
            "steps a leaf are 138 / 16). Mode 1 of the release sorts the steps of a branch, which "
            "have equal A, and so keeps its earlier half; mode 2 ranks the steps of both trees of "
            "a device."
        ),
        (
            "OutsideWindow(Linear(9.0, 19.0), 4) leaves out four depths, from the last split, a "
            "depth later every 30 of 300 steps; the window of the release moves to earlier depths."
        ),
        (
            "masks is empty, as the pruning of finetune_flux_branchgrpo_8gpus.sh: its window of "
            "depths has no entry, and its width mode is 0."
        ),
        "Masks remove steps from the loss, not from the forward pass: rows are whole.",
        "The loss is a mean over steps; the release divides it by the number of steps of a tree "
        "again.",
        (
            "The standard deviation gains 1e-6, in the release 1e-8. There A is 0 where it is "
            "below 1e-6."
        ),
    ),
    audit=(
        "splits, clip, advantage bound, pruning modes and the loop of updates compared with "
        "train_branchgrpo_flux.py and its script"
    ),
)
