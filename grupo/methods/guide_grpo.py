"""Guide-GRPO: hints where all fail, learned without them. Nath et al., 2025, arXiv:2506.13923."""

from grupo.algo.losses import Clip
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithHint

PAPER = Paper(
    title="Adaptive Guidance Accelerates Reinforcement Learning of Reasoning Models",
    use="Many tasks are never solved, and somebody can write a hint for each.",
    checked=("golden", "laws", "run"),
    catalogue=("guide-grpo",),
)


def guide_grpo(group_size: int = 8, clip_eps: float = 0.2, hint_column: str = "hint") -> Method:
    """r_t = pi(o_t | q, o_<t) / old(o_t | q, g, o_<t) for rollouts that saw the hint g.

    Where all `group` plain rollouts are wrong, as many more are drawn with the hint in the task's
    `column` in the prompt, and compared with them in one group; their gradient is that of the plain
    prompt. loss = -min(r A, clip(r, 1 - `clip`, 1 + `clip`) A), A = (r - mean(r)) / std(r).
    """
    # That both halves are one group is our reading; `group` is our choice. To refuse hints that
    # give the answer away: .but(sample=Guided(Independent(8), guarded=True)).
    return Method(
        sampler=WithHint(GroupSampler(group_size), hint_column), loss=Clip(clip_eps, clip_eps)
    )
