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


def sppo(
    group_size: PositiveInt = 5,
    eta: NonNegative = 1000.0,
    epochs: PositiveInt = 1,
    minibatches: PositiveInt = 8,
) -> Method:
    """loss = mean over answers of (log(pi / pi_old) - eta (P - 1/2))^2, eq. 4.7.

    P is the win rate against all answers of the group, the answer itself included, which counts
    1/2. pi_old is the policy that sampled: a step is a round, and its successor the next opponent.
    Reward term: "win_rate", against the other answers.

    Args:
        group_size: rollouts per task (authors' code: 5).
        eta: scale of the target in nats (authors' code: 1 / beta, beta 0.001).
        epochs: passes over the answers of a step (run scripts: 1).
        minibatches: updates of a pass (our choice).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=identity,
        loss=RegressScore(rollout_log_ratio, WinRateTarget(eta)),
        aggregation=group_mean,
        updates=Updates(epochs, minibatches),
    )


PAPER = Paper(
    title="Self-Play Preference Optimization for Language Model Alignment",
    use="Answers can be compared but not scored, preferences may be cyclic, and a step is a round.",
    tags=("preferences", "self-play"),
    trl="DPOConfig(loss_type='sppo_hard'): given pairs, win rates of 1 and 0, another reference",
    checked=("golden", "properties", "run"),
    catalogue=("sppo-selfplay",),
    source=Source(
        "code",
        "uclaml/SPPO, sppo/trainer.py (loss), scripts/compute_prob.py, run_sppo_mistral.sh, "
        "run_sppo_llama-3.sh and scripts/pipeline.sh",
    ),
    plan=(
        "run_sppo_mistral.sh and run_sppo_llama-3.sh: --num 1, one epoch over the pairs of a round "
        "in batches of 8 per device; the 18 of pipeline.sh is a default that both override. Eight "
        "updates per step are our choice: a round of the release has more"
    ),
    missing=(
        "The release's choice of answers: it regresses the best and the worst of five alone.",
        "PairRM, the difference of whose scores gives a win rate through a sigmoid.",
        "The temperature of 0.7 and the top-p of 0.9 of generate.py.",
    ),
    deviations=(
        "The test of the Nash policy makes 5 passes of one update over a round, with eta 0.3.",
    ),
    audit="formula, eta and epochs compared with trainer.py, compute_prob.py and the run scripts",
    shown=(
        "tests/methods/test_preference_games.py::test_mean_iterate_of_sppo_is_near_the_nash_policy",
    ),
)
