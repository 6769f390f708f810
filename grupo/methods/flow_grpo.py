"""Flow-GRPO: denoising steps drawn and learned like words. Liu et al., 2025, arXiv:2505.05470."""

from grupo.algo.advantages import Center, ClampAdvantage, ScaleByStd, chain
from grupo.algo.losses import Clip, ReverseKL
from grupo.algo.minibatches import Updates
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Flow-GRPO: Training Flow Matching Models via Online RL",
    use="A flow-matching model of images, and a reward that looks at them.",
    checked=("golden", "laws", "run"),
    catalogue=("flow-grpo",),
)


def flow_grpo(
    group_size: int = 24,
    clip_eps: float = 1e-4,
    kl_coef: float = 0.04,
    max_advantage: float = 5.0,
    minibatches: int = 2,
) -> Method:
    """A = (r - mean(r)) / std(r) over images of a prompt, within -+`bound`; an action is a step.

    loss = mean over images of mean over steps of
           -min(R A, clip(R, 1 - `clip`, 1 + `clip`) A) + `kl` KL(pi, ref)
    with R = pi / old and KL = |m - m_ref|^2 / (2 s^2), m a step's mean and s its noise. Its KL and
    log R are means over a latent's numbers. An update is on 1 of `updates` parts of the prompts.
    """
    # Numbers are of the authors' scripts for SD 3.5. There std is that of all rewards of a step; in
    # the paper, and here, the group's. There KL is over sigma^2; here over the step's own variance,
    # sigma^2 dt, as in the paper's closed form.
    loss = Clip(clip_eps, clip_eps)
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByStd(), ClampAdvantage(-max_advantage, max_advantage)),
        loss=loss + kl_coef * ReverseKL(),
        updates=Updates(minibatches=minibatches),
    )
