"""GKD: matches a teacher on the policy's own rollouts. Agarwal et al., 2023, arXiv:2306.13649."""

from grupo.algo.advantages.kl_in_reward import zero_advantage
from grupo.algo.losses import JSD
from grupo.core.numbers import PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def gkd(group_size: PositiveInt = 1) -> Method:
    """loss = mean over rollouts of mean over tokens of JSD(pi, teacher) over the vocabulary.

    Sampling is not differentiated, and the reward is not read. The recipe defines "teacher".

    Args:
        group_size: rollouts per task (our choice).
    """
    return Method(sampler=GroupSampler(group_size), advantage=zero_advantage, loss=JSD("teacher"))


PAPER = Paper(
    title="On-Policy Distillation of Language Models: Learning from Self-Generated Mistakes",
    use="The teacher's full distribution can be computed; no verifier is needed.",
    tags=("distillation",),
    trl="GKDTrainer, experimental: lmbda is the share of own rollouts, beta the mixture of its JSD",
    checked=("golden", "properties", "run"),
    source=Source(
        "third_party",
        "TRL's GKDTrainer, which cites the paper, and TRL's index of papers",
    ),
    plan="not stated in any source that was opened; one update per step, as in TRL's GKDTrainer",
    missing=(
        (
            "A mixture with a fixed set of answers: the paper's lambda, the fraction of the "
            "student's own rollouts, is 1. TRL has 0.5, by default and for the paper's setting."
        ),
    ),
    deviations=(
        (
            "The divergence is a choice of the paper, here JSD(0.5). "
            '.replace(loss=ForwardKL("teacher")) covers all modes of the teacher, '
            '.replace(loss=ReverseKL("teacher")) its main ones.'
        ),
        "The mean is over the tokens of an answer and then over answers; TRL's is over all tokens.",
        "group_size is our choice, 1.",
    ),
    audit="divergence, mean and options compared with TRL's GKDTrainer; the paper could not be "
    "opened",
)
