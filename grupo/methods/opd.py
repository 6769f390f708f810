"""OPD: a teacher grades every token of your own rollouts. Lu, 2025, blog post."""

from grupo.algo.advantages import chain
from grupo.algo.advantages.kl_in_reward import KLPerAction, zero_advantage
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Reinforce
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="On-Policy Distillation (Thinking Machines Lab)",
    use="There is a stronger teacher with your vocabulary and nothing else: no verifier is needed.",
    checked=("golden", "laws", "run"),
)


def opd(group_size: int = 4) -> Method:
    """A_t = log teacher - log pi_old of each token that was drawn: minus an estimate of KL.

    loss = mean over tokens of -A log pi. Its gradient is that of KL(pi, teacher) state by state,
    with no regard to what a token leads to (a discount of 0). The reward is not read. The recipe
    names the "teacher". See `gkd` for the exact divergence over the vocabulary.
    """
    # Agarwal et al., arXiv:2306.13649, have the same idea with gradients through the divergence;
    # the blog's estimate needs only the teacher's log-probability of what was said. The blog
    # corrects by the ratio to the sampler, 1 on policy. Token mean and `group_size` are our choice.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(zero_advantage, KLPerAction(1.0, "teacher")),
        loss=Reinforce(),
        aggregation=token_mean,
    )
