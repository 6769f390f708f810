"""ARRoL: rollouts are given up early until half are right. Xu et al., 2026, arXiv:2603.24840."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.calibration_counts import Tallied
from grupo.algo.losses import Clip
from grupo.algo.losses.critic import FitQuality
from grupo.core.paper import Paper
from grupo.core.schedules import Switch, varying
from grupo.method import Method
from grupo.rollouts.samplers import Posterior, Pruned

PAPER = Paper(
    title="Prune as You Generate: Online Rollout Pruning for Faster and Better RLVR",
    use="Sampling is what costs, and how an answer begins tells how it will end.",
    checked=("golden", "laws", "run"),
    catalogue=("arrol",),
)


def arrol(
    group: int = 16,
    keep: float = 0.5,
    at: int = 512,
    rest: int = 16384,
    spared: int = 2,
    warmup: float = 0.1,
    clip: float = 0.2,
) -> Method:
    """GRPO on the share `keep` of rollouts that go on after `at` tokens; the best and worst of p.

    They minimise |sum p - half their number|. p = (s_b + 1) / (n_b + 2), s_b of n_b right in the
    bin b of h, older steps times 0.9; h = sigmoid(a head of the state), which learns
    -r log h - (1 - r) log(1 - h) of who went on. Nobody is given up before `warmup` of the run.
    """
    # From the abstract and summaries; Hsu1023/ARRoL on GitHub has no code yet (fe9ad20). Bins,
    # posterior and 512 are theirs; which are kept, `spared`, `warmup`, constants, a head that is
    # linear are our choice. Votes weighed by h are not here.
    posterior = Posterior.following(10, 0.9)
    kept = varying(Switch(warmup, 1.0, keep))
    return Method(
        sample=Pruned(group, kept, at, rest, spared, posterior),
        credit=chain(Tallied(len(posterior.bins)), Center(), ScaleByStd()),
        loss=Clip(clip, clip) + FitQuality(),
    )
