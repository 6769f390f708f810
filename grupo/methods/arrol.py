"""ARRoL: rollouts are given up early until half are right. Xu et al., 2026, arXiv:2603.24840."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.calibration_counts import CountByBin
from grupo.algo.losses import Clip
from grupo.algo.losses.critic import QualityLoss
from grupo.core.paper import Paper
from grupo.core.schedules import Switch, as_float
from grupo.method import Method
from grupo.rollouts.samplers import BetaBins, EarlyPruning

PAPER = Paper(
    title="Prune as You Generate: Online Rollout Pruning for Faster and Better RLVR",
    use="Sampling is what costs, and how an answer begins tells how it will end.",
    checked=("golden", "laws", "run"),
    catalogue=("arrol",),
)


def arrol(
    group_size: int = 16,
    keep_fraction: float = 0.5,
    prune_at: int = 512,
    max_new_tokens_after: int = 16384,
    always_keep: int = 2,
    warmup_fraction: float = 0.1,
    clip_eps: float = 0.2,
) -> Method:
    """GRPO on the share `keep_fraction` of rollouts that go on after `prune_at` tokens; the best and worst of p.

    They minimise |sum p - half their number|. p = (s_b + 1) / (n_b + 2), s_b of n_b right in the
    bin b of h, older steps times 0.9; h = sigmoid(a head of the state), which learns
    -r log h - (1 - r) log(1 - h) of who went on. Nobody is given up before `warmup_fraction` of the run.
    """
    # From the abstract and summaries; Hsu1023/ARRoL on GitHub has no code yet (fe9ad20). Bins,
    # posterior and 512 are theirs; which are kept, `always_keep`, `warmup_fraction`, constants, a head that is
    # linear are our choice. Votes weighed by h are not here.
    posterior = BetaBins.from_history(10, 0.9)
    kept = as_float(Switch(warmup_fraction, 1.0, keep_fraction))
    return Method(
        sampler=EarlyPruning(
            group_size, kept, prune_at, max_new_tokens_after, always_keep, posterior
        ),
        advantage=chain(CountByBin(len(posterior.bins)), Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps) + QualityLoss(),
    )
