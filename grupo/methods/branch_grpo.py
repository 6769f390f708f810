"""BranchGRPO: one denoising tree, compared depth by depth. Li et al., 2025, arXiv:2509.06040."""

from grupo.credit import Clipped, chain
from grupo.credit.nodes import AmongDepth, EachOnce
from grupo.losses import Clip
from grupo.method import Method
from grupo.paper import Paper
from grupo.sampling import SplitTree

PAPER = Paper(
    title="BranchGRPO: Stable and Efficient GRPO with Structured Branching in Diffusion Models",
    use="Drawing an image is what costs, and steps are to be credited each for what it did.",
    checked=("golden", "laws", "run"),
    catalogue=("branchgrpo",),
)


def branch_grpo(
    at: tuple[int, ...] = (0, 3, 6, 9), clip: float = 1e-3, bound: float = 5.0
) -> Method:
    """A = (v - mean(v)) / std(v) among the nodes of a depth, v the mean reward of a node's leaves.

    The tree splits in two before the steps `at`. A, within -+`bound`, is of all steps that lead to
    the node; a step counts once however many leaves share it. loss = -min(R A, clip(R, 1 - `clip`,
    1 + `clip`) A), R = pi / old.
    """
    # Siblings' noises are independent; in the paper, as remembered, they have a small share in
    # common, and the released code makes them four times as large, which leaves the density that R
    # is of. Its choices are at=(0, 3, 6, 9) of 20 steps. Not here: pruning, softmax-weighted v.
    return Method(
        sample=SplitTree(at),
        credit=chain(AmongDepth(), Clipped(-bound, bound)),
        loss=Clip(clip, clip),
        weigh=EachOnce(),
    )
