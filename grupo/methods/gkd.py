"""GKD: match a teacher on what you say yourself. Agarwal et al., 2023, arXiv:2306.13649."""

from grupo.algo.advantages.kl_in_reward import zero_advantage
from grupo.algo.losses import JSD
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="On-Policy Distillation of Language Models: Learning from Self-Generated Mistakes",
    use="Distil from a teacher whose whole distribution can be computed; no verifier is needed.",
    trl="GKDTrainer, experimental: lmbda is the share of own rollouts, beta the mixture of its JSD",
    checked=("golden", "laws", "run"),
)


def gkd(group_size: int = 1) -> Method:
    """loss = mean over rollouts of mean over tokens of JSD(pi, teacher) of each state, exactly.

    No gradient flows through the sampling, and the reward is not read. The recipe names the
    "teacher".
    """
    # The paper's lambda, the share of own rollouts among the teacher's and the data's, is 1 here.
    # Its divergence is a choice: this is JSD(0.5). .but(loss=ForwardKL("teacher")) imitates all
    # that the teacher does, .but(loss=ReverseKL("teacher")) what it does most.
    return Method(sampler=GroupSampler(group_size), advantage=zero_advantage, loss=JSD("teacher"))
