"""AMPO: the best understood teachers help failing groups. Yuan et al., 2025, arXiv:2510.02227."""

from grupo.algo.advantages import Center
from grupo.algo.aggregation import ConstantLength
from grupo.algo.losses import Clip, EntropyBonus, PolicyShaping, SelectBySource
from grupo.algo.minibatches import Updates
from grupo.algo.ratios import CappedRatio
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import ComprehendedSolutions, GroupSampler, Rescue, RescueAttempt
from grupo.rollouts.samplers.merge_rules import replace_last


def ampo(
    max_length: PositiveInt,
    group_size: PositiveInt = 8,
    num_solutions: PositiveInt = 2,
    columns: tuple[str, ...] = ("solution",),
    shaping_constant: NonNegative = 0.1,
    entropy_coef: NonNegative = 0.001,
) -> Method:
    """Where all rollouts fail, num_solutions of them give way to the best comprehended solutions.

    A solution's comprehension is the mean probability of the answer's tokens behind its reasoning.
    A = r - mean(r) over sampled rollouts and solutions. loss = mean over rollouts of the sum over
    tokens, divided by max_length, of PPO's clipped loss (0.2, at most 10 |A|) for sampled tokens,
    -f(pi) A for others, f(p) = p / (p + shaping_constant), minus entropy_coef x entropy for both.

    A step has 2 updates, each on a minibatch of its groups.

    Args:
        max_length: length limit of an answer, in tokens.
        group_size: rollouts per task, solutions included (authors' script: 8).
        num_solutions: solutions in a failed group (authors' script: 2).
        columns: columns of the solutions, one of each teacher (authors' script: 4 teachers).
        shaping_constant: the constant in f (authors' script: 0.1).
        entropy_coef: reward per nat of entropy (authors' script: 0.001).
    """
    attempt = RescueAttempt(ComprehendedSolutions(columns, num_solutions), replace_last)
    clipped = Clip(0.2, 0.2, CappedRatio(10.0))
    return Method(
        sampler=Rescue(GroupSampler(group_size), (attempt,)),
        advantage=Center(),
        loss=SelectBySource(clipped, PolicyShaping(shaping_constant)) + EntropyBonus(entropy_coef),
        aggregation=ConstantLength(max_length),
        updates=Updates(minibatches=2),
    )


PAPER = Paper(
    title="More Than One Teacher: Adaptive Multi-Guidance Policy Optimization for Diverse "
    "Exploration",
    use="Some tasks are never solved, and several models have written solutions.",
    tags=("off-policy", "sft"),
    checked=("golden", "properties", "run"),
    example="ampo(max_length=64)",
    catalogue=("ampo",),
    source=Source(
        "code",
        "SII-Enigma/AMPO: adaptive_mix_src/mix_core_alg.py, mix_dapo_trainer.py, "
        "workers/reward_manager/prob.py, exp_scripts/train_ampo.sh",
    ),
    plan="train_ampo.sh: 128 prompts per step in minibatches of 64, 2 updates",
    missing=(
        "Injection with a fixed probability also where the policy succeeds.",
        (
            "The reward of the script: 0.9 correct + 0.1 format, and -1 more where a sequence of "
            "ten words occurs ten times in an answer whose reward is not 0."
        ),
    ),
    deviations=(
        "The last wrong rollouts are replaced, which are as good as random ones.",
        "Solutions are ordered by comprehension alone; in the release by 0.9 of it + 0.1 if the "
        "format is right.",
        "Solutions are scored by the environment; the script takes verified ones to be right.",
        "The answer of a solution is where the reference answer stands last in its text.",
        (
            "The entropy is summed over a rollout and divided by max_length, as the loss is, since "
            "a sum of losses has one aggregation; in the release it is a token mean."
        ),
        (
            "The release sums the loss over the rollouts of a micro-batch and does not divide by "
            "their number: that scale is left out."
        ),
    ),
    audit=(
        "condition, number of solutions, order by the mean probability of the answer, advantage "
        "without standard deviation, shaping, dual clip, entropy bonus and plan compared with the "
        "script, the loss and the catalogue's row of the trainer"
    ),
    shown=(
        "docs/guidance_shown/hard_sums.md#results",
        "tests/methods/test_ampo.py::test_solution_that_makes_the_answer_likelier_is_chosen",
        "tests/methods/test_ampo.py::test_one_correct_rollout_keeps_all_solutions_away",
    ),
)
