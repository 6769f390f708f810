"""GRPO as released: a mean over all tokens of the batch. Shao et al., 2024, arXiv:2402.03300."""

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import KL, Clip
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models",
    use="A result that was got with verl's GRPO is to be compared with.",
    trl="loss_type='dapo', which is its default, beta=0.001",
    verl="adv_estimator='grpo', use_kl_loss=True, kl_loss_coef=0.001, loss_agg_mode='token-mean'",
    checked=("golden", "laws", "reference", "run"),
)


def grpo_released(group_size: int = 5, clip_eps: float = 0.2, kl_coef: float = 0.001) -> Method:
    """A = (r - mean(r)) / (std(r) + 1e-6), std divided by G - 1, and a mean over all tokens.

    loss = 1 / sum_i L_i times the sum over all tokens of -min(R A, clip(R, 1 - `clip`, 1 + `clip`)
    A) + `kl` k3
    """
    # The paper averages tokens within an answer first (eq. 3), which `grpo` does; verl, with which
    # most results called GRPO were got, takes the mean over tokens: long answers weigh more. Its
    # example runs sample 5 with a KL of 0.001, 'low_var_kl', which is k3 cut at +-10 (not here).
    # verl also bounds -R A at 3 |A| where A < 0 and lets a lone rollout keep its reward; not here.
    return Method(
        sampler=GroupSampler(group_size),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
        aggregation=token_mean,
    )
