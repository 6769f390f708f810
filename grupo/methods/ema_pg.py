"""EMA-PG: a reference that follows the policy slowly. Zhang and Ba, 2026, arXiv:2602.04417."""

from grupo.algo.losses import Clip, ReverseKL
from grupo.core.paper import Paper
from grupo.core.reference_update import ReferenceUpdate
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="EMA Policy Gradient: Taming Reinforcement Learning for LLMs with EMA Anchor and Top-k "
    "KL",
    use="A long run is held back by a fixed reference, and unstable without any.",
    trl="sync_ref_model=True, ref_model_mixup_alpha, ref_model_sync_steps, with beta > 0: k3",
    checked=("golden", "laws", "run"),
)


def ema_pg(
    group_size: int = 8,
    kl_coef: float = 1e-3,
    ref_update_rate: float = 0.05,
    ref_update_every: int = 10,
    clip_high: float = 0.28,
) -> Method:
    """loss = mean over answers of mean over tokens of -min(R A, clip(R, 0.8, 1 + `high`) A)
           + `kl` KL(pi, ref), exactly, over the whole vocabulary
    and ref <- (1 - `rate`) ref + `rate` pi after every `every` steps.
    """
    # The numbers are those of the released DeepScaleR script (LunjunZhang/ema-pg), whose KL is k3;
    # the paper's own is exact on the k likeliest tokens with a sampled tail, unbiased at any k:
    # here k is the vocabulary. It also masks truncated answers.
    return Method(
        sampler=GroupSampler(group_size),
        loss=Clip(0.2, clip_high) + kl_coef * ReverseKL(),
        reference=ReferenceUpdate(ref_update_rate, ref_update_every),
    )
