"""SPPO: regresses log-ratios to win rates in self-play. Wu et al., 2024, arXiv:2405.00675."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import RegressScore, WinRateTarget
from grupo.algo.losses.contrastive import rollout_log_ratio
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def sppo(group_size: PositiveInt = 5, eta: NonNegative = 1000.0, epochs: PositiveInt = 1) -> Method:
    """loss = mean over answers of (log(pi / pi_old) - eta (P - 1/2))^2, eq. 4.7.

    P is the win rate against all answers of the group, the answer itself included, which counts
    1/2. pi_old is the policy that sampled: a step is a round, and its successor the next opponent.
    Reward term: "win_rate", against the other answers.

    Args:
        group_size: rollouts per task (authors' code: 5).
        eta: scale of the target in nats (authors' code: 1 / beta, beta 0.001).
        epochs: updates on the answers of a step.
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=identity,
        loss=RegressScore(rollout_log_ratio, WinRateTarget(eta)),
        aggregation=group_mean,
        updates=Updates(epochs),
    )


PAPER = Paper(
    title="Self-Play Preference Optimization for Language Model Alignment",
    use="Answers can be compared but not scored, preferences may be cyclic, and a step is a round.",
    tags=("preferences", "self-play"),
    trl="DPOConfig(loss_type='sppo_hard'): given pairs, win rates of 1 and 0, another reference",
    checked=("golden", "properties", "run"),
    catalogue=("sppo-selfplay",),
    source=Source("code", "uclaml/SPPO, sppo/trainer.py (loss) and scripts/compute_prob.py"),
    plan="a step is a round of the paper, which makes 18 epochs over its answers; epochs is ours",
    missing=("The two-answer form, which regresses the best and the worst of five answers alone.",),
    deviations=(
        (
            "With one epoch log(pi / pi_old) is 0 at the only update of a step, whose gradient is "
            "that of -2 eta (P - 1/2) log pi; more epochs fit the target further."
        ),
    ),
    audit="formula compared with the catalogue's row of the authors' code",
    shown=(
        "tests/methods/test_preference_games.py::test_mean_iterate_of_sppo_is_near_the_nash_policy",
    ),
)
