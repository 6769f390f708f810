"""EPO: judged turns are reinforced by their scores. Liu et al., 2025, arXiv:2502.12486."""

from torch import Tensor

from grupo.algo.advantages.turn_table import rollout_turn_mean, turn_returns, turns_to_tokens
from grupo.algo.losses import Reinforce
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.numbers import Fraction, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def epo(group_size: PositiveInt = 1, gamma: Fraction = 0.0) -> Method:
    """loss = mean over rollouts of -1/T sum_t A_t / |a_t| sum_k log pi(a_tk); no ratio, no
    baseline.

    A_t is the judge's score of turn t ("step/reward") plus gamma times the return of later turns.

    Args:
        group_size: rollouts per task (authors' code: 1).
        gamma: discount per turn (authors' code adds no later turns: 0.0).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=TurnScores(gamma),
        loss=Reinforce(),
        aggregation=rollout_turn_mean,
    )


@component
class TurnScores:
    """Discounted return of each turn's scores, broadcast to the turn's tokens.

    Args:
        gamma: discount per turn.
    """

    gamma: Fraction = 0.0

    # the score of each turn, at any of its tokens
    requires = Requires(signals=("step/reward",))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        return turns_to_tokens(turn_returns(batch, self.gamma), batch)


PAPER = Paper(
    title="EPO: Explicit Policy Optimization for Strategic Reasoning in LLMs via RL",
    use="In dialogues and negotiations, a judge can name the decisive turns afterwards.",
    tags=("process-reward", "agents"),
    checked=("golden", "properties", "run"),
    catalogue=("epo-strategic",),
    source=Source(
        "code",
        "AlibabaResearch/DAMO-ConvAI, EPO/LLaMA-Factory/src/llamafactory/train/sft/trainer.py and "
        "examples/train_epo",
    ),
    plan=(
        "llama3_sotopia_pi_rl.yaml: an SFT trainer, 3 passes over episodes that were collected "
        "before, 8 episodes a device for each update; one update per step here"
    ),
    missing=(
        "The frozen agent that acts on the strategy, and self-play that collects new episodes.",
    ),
    deviations=(
        "Episodes are sampled from the policy at every step; the release collects them once.",
        "The scale of the judge's scores belongs to the environment.",
    ),
    audit=(
        "loss compared with reward_weighted_loss of the released trainer, group and discount with "
        "its data form"
    ),
)
