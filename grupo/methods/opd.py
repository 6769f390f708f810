"""OPD: a teacher scores every token of the policy's rollouts. Lu, 2025, blog post."""

from grupo.algo.advantages import chain
from grupo.algo.advantages.kl_in_reward import KLPerAction, zero_advantage
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Reinforce
from grupo.core.numbers import PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def opd(group_size: PositiveInt = 4) -> Method:
    """A_t = log teacher - log pi_old of each sampled token: minus an estimate of the KL divergence.

    loss = mean over tokens of -A log pi. Its gradient is that of KL(pi, teacher) state by state,
    without later consequences (a discount of 0). The reward is not read. The recipe defines
    "teacher". See `gkd` for the exact divergence over the vocabulary.

    Args:
        group_size: rollouts per task (authors' recipe: 4).
    """
    # Agarwal et al., arXiv:2306.13649, have the same idea with gradients through the divergence;
    # the blog's estimate needs only the teacher's log-probability of the sampled tokens.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(zero_advantage, KLPerAction(1.0, "teacher")),
        loss=Reinforce(),
        aggregation=token_mean,
    )


PAPER = Paper(
    title="On-Policy Distillation (Thinking Machines Lab)",
    use="A stronger teacher has the policy's vocabulary; no verifier is needed.",
    tags=("distillation", "process-reward"),
    checked=("golden", "properties", "run"),
    source=Source(
        "code",
        "thinking-machines-lab/tinker-cookbook: distillation/train_on_policy.py and "
        "recipes/distillation/on_policy_distillation.py",
    ),
    plan="one update per step: num_substeps 1 in on_policy_distillation.py",
    deviations=(
        "The token mean is our choice.",
        "There is no ratio to the sampler, by which the post corrects: on policy it is 1.",
        "log pi_old is the trainer's, in the release the engine's log-probability of its sample.",
    ),
    audit=(
        "advantage (weight 1, discount 0, reward 0), group size and plan compared with the "
        "cookbook's trainer and recipe"
    ),
)
