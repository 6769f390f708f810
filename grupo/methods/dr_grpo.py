"""Dr. GRPO: GRPO without its two normalisations. Liu et al., 2025, arXiv:2503.20783."""

from grupo.algo.advantages import Center
from grupo.algo.aggregation import ConstantLength
from grupo.algo.losses import Clip
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Understanding R1-Zero-Like Training: A Critical Perspective",
    use="Answers get longer without getting better, or very easy and hard tasks dominate.",
    trl="loss_type='dr_grpo', scale_rewards='none' (the constant is max_completion_length)",
    verl="norm_adv_by_std_in_grpo=False, loss_agg_mode='seq-mean-token-sum-norm' with a "
    "loss_scale_factor (without one it divides by the padded width)",
    checked=("golden", "laws", "reference", "run"),
    example="dr_grpo(max_length=64)",
)


def dr_grpo(max_length: int, group_size: int = 8, clip_eps: float = 0.2) -> Method:
    """A = r - mean(r), and every token over one constant `max_length`: no bias to short or to hard.

    loss = mean over answers of 1 / `max_length` times the sum over tokens of
           -min(R A, clip(R, 1 - `clip_eps`, 1 + `clip_eps`) A)
    with R = pi / old (section 3.2); `max_length` is the generation budget in the paper's listing 1.
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=Center(),
        loss=Clip(clip_eps, clip_eps),
        aggregation=ConstantLength(max_length),
    )
