"""Critique-GRPO: a refined answer joins each group. Zhang et al., 2025, arXiv:2506.03106."""

from grupo.algo import ratios
from grupo.algo.advantages import Center
from grupo.algo.aggregation import ConstantLength
from grupo.algo.losses import EntropyBonus, PolicyShaping, SelectByContext, WeightedReinforce
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, with_critique


def critique_grpo(
    max_length: PositiveInt,
    group_size: PositiveInt = 8,
    shaping_constant: NonNegative = 0.1,
    entropy_coef: NonNegative = 0.001,
) -> Method:
    """-r A on the first answers' tokens, -f(pi) A on the refinement's, f(p) = p / (p + constant).

    Each answer gets a critique (correct or not, and the reference answer) and a second attempt; the
    best second attempt takes the first place of the group, behind the plain prompt.
    A = r - mean(r).

    A step makes 2 updates, one on each of 2 minibatches.

    Args:
        max_length: constant that token sums are divided by, in tokens (script: 6,144).
        group_size: first answers per task (script: 8).
        shaping_constant: constant of f.
        entropy_coef: reward per nat of entropy.
    """
    loss = SelectByContext(
        WeightedReinforce(ratios.token), PolicyShaping(shaping_constant)
    ) + EntropyBonus(entropy_coef)
    return Method(
        sampler=with_critique(GroupSampler(group_size)),
        advantage=Center(),
        loss=loss,
        aggregation=ConstantLength(max_length),
        updates=Updates(minibatches=2),
    )


PAPER = Paper(
    title="Critique-GRPO: Advancing LLM Reasoning with Natural Language and Numerical Feedback",
    use="The model fails alone and succeeds after a critique of its answer.",
    tags=("hints", "off-policy"),
    checked=("golden", "properties", "run"),
    example="critique_grpo(max_length=64)",
    catalogue=("critique-grpo",),
    source=Source(
        "code",
        "zhangxy-2019/critique-GRPO, verl/verl/critique_grpo/critique_core_algos.py and "
        "examples/grpo_trainer/run_open_r1_math4k-qwen3-8b-base-critique_simple_gt_online.sh",
    ),
    plan=(
        "run_open_r1_math4k-qwen3-8b-base-critique_simple_gt_online.sh: train batch 128, minibatch "
        "64 prompts: 2 updates per step"
    ),
    missing=("Critiques of a stronger model: with_critique(..., critique=yours).",),
    deviations=(
        (
            "The second attempt takes one place of the group (n_prefix 1, as a comment of the "
            "release prints it). The script leaves n_prefix at -1, at which every place gets it."
        ),
        (
            "A is not divided by the standard deviation, as in the paper; the release divides: its "
            "trainer reads norm_adv_by_std_in_grpo, which is True, and not the script's "
            "grpo_use_std=False."
        ),
        (
            "The entropy is a sum divided by max_length, as the loss; the release takes its mean "
            "over tokens."
        ),
        (
            "The mean is over answers; the release sums the rows of a micro-batch, and weighs each "
            "micro-batch by 8 / 64: it divides the number of its metrics, not of its rows, by the "
            "size of the minibatch."
        ),
        (
            "The release tokenises the text of the second attempt again and adds an end token, "
            "also to a truncated one."
        ),
    ),
    audit=(
        "loss, shaping, entropy bonus, group and batch sizes compared with the loss and the run "
        "script, whose clip and token mean are off; the choice of the second attempt with "
        "process_refinement_groups: the first correct one, else the first of the highest score"
    ),
    shown=("tests/methods/test_toys.py::test_hinted_training_solves_locks_unsolved_by_grpo",),
)
