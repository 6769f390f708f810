"""ReMix against GRPO on sums of five to seven digits: rollouts until GRPO's accuracy is reached.

All arms make the same number of steps at a constant learning rate; every second step the accuracy
on held-out sums is measured, and averaged with the two measurements before. The accuracy to reach
is that of GRPO at its end with the same seed. `rollouts` is the number of rollouts until it is
reached for the first time, those of GRPO included; an arm that does not reach it has the number of
all rollouts of GRPO.

Named before the first run of all seeds: `ratio`, the rollouts of ReMix over those of GRPO, is
below 0.6: the 95 % interval of its mean - 0.6 is below 0. Second: `end`, the accuracy at the end,
is lower without reincarnation.

python recipes/guidance/remix.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

from grupo.algo.minibatches import Updates
from grupo.evidence.claims.hard_sums import ENV, EVAL_SEED, hard_sums_recipe
from grupo.evidence.claims.paired_table import paired_table, signed
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.tiny_lm import mean_terms
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.methods.remix import remix
from grupo.recipe import EarlyStopping, Recipe
from grupo.tasks.digit_sums import DigitSums
from grupo.toy.arithmetic_lm import ensure_trained
from grupo.toy.digit_sums_lm import ToyDigitSumsLM
from grupo.training.learner import Learner
from grupo.util.statistics import student_t_mean

SEEDS = 8
STEPS, EVERY_STEPS, MIXED_STEPS = 48, 2, 24
MIN_TERMS, MAX_TERMS = 5, 7
LEARNING_RATE = 5e-5
GRPO = grpo(8, kl_coef=0.0)
METHODS: Mapping[str, Method] = {
    "GRPO": GRPO,
    "GRPO, two updates": GRPO.replace(updates=Updates(epochs=2)),
    "no reincarnation": remix(8, reincarnation_step=STEPS),
    "ReMix": remix(8, reincarnation_step=MIXED_STEPS),
}


def recipe(method: Method, seed: int) -> Recipe:
    """Train the toy model of hard sums at a constant learning rate.

    Args:
        method: The method.
        seed: Seed of the run.
    """
    base = hard_sums_recipe(
        method, seed=seed, max_tokens=1, min_terms=MIN_TERMS, max_terms=MAX_TERMS
    )
    return base.replace(
        max_steps=STEPS, learning_rate=LEARNING_RATE, early_stopping=EarlyStopping()
    )


RECIPE = recipe(METHODS["ReMix"], seed=0)


def run(method: Method, seed: int, steps: int = STEPS) -> Metrics:
    """The accuracy and the rollouts so far at every measurement, and the mean length at the end.

    Args:
        method: The method.
        seed: Seed of the run.
        steps: Number of steps.
    """
    ensure_trained(ToyDigitSumsLM())
    learner = Learner(recipe(method, seed))
    held_out = DigitSums(MIN_TERMS, MAX_TERMS, size=100, seed=EVAL_SEED).load()
    rollouts, measured = 0, dict[str, float]()
    for step in range(1, steps + 1):
        groups = learner.step().collected.sampled_groups
        rollouts += sum(len(group.rollouts) for group in groups)
        if step % EVERY_STEPS == 0:
            means = mean_terms(learner.policy, ENV, held_out, attempts=4, seed=seed)
            measured[f"accuracy/{step}"] = means["correct"]
            measured[f"rollouts/{step}"] = float(rollouts)
            measured["length"] = means["length"]
    return measured


def smoothed(measured: Metrics) -> list[tuple[float, float]]:
    """Rollouts and accuracy of each measurement; the mean of up to three accuracies."""
    accuracy = [value for name, value in measured.items() if name.startswith("accuracy/")]
    rollouts = [value for name, value in measured.items() if name.startswith("rollouts/")]
    means = [fmean(accuracy[max(0, i - 2) : i + 1]) for i in range(len(accuracy))]
    return list(zip(rollouts, means, strict=True))


def compared(measured: Metrics, of_grpo: Metrics) -> Metrics:
    """The metrics of a run against GRPO's with the same seed."""
    most, target = smoothed(of_grpo)[-1]
    reached = [rollouts for rollouts, accuracy in smoothed(measured) if accuracy >= target]
    own = [rollouts for rollouts, accuracy in smoothed(of_grpo) if accuracy >= target]
    return {
        "rollouts": reached[0] if reached else most,
        "ratio": (reached[0] if reached else most) / own[0],
        "reached": float(bool(reached)),
        "end": smoothed(measured)[-1][1],
        "length": measured["length"],
    }


def main(folder: Path, seeds: Sequence[int]) -> None:
    """Train what is missing in the folder and print the table."""
    runs = stored_runs(
        folder / "runs.jsonl", {name: partial(run, m) for name, m in METHODS.items()}, seeds
    )
    if len(seeds) < 2:
        return
    table = {
        name: [compared(*pair) for pair in zip(runs[name], runs["GRPO"], strict=True)]
        for name in runs
    }
    print(paired_table(table, ["rollouts", "ratio", "end"], "GRPO"))
    for name in ("reached", "length"):
        print(name, {arm: fmean(x[name] for x in rows) for arm, rows in table.items()})
    print("ratio - 0.6:", signed(student_t_mean([x["ratio"] - 0.6 for x in table["ReMix"]])))
    pairs = zip(table["no reincarnation"], table["ReMix"], strict=True)
    print("end without - with:", signed(student_t_mean([a["end"] - b["end"] for a, b in pairs])))


if __name__ == "__main__":
    bounds = [int(text) for text in sys.argv[2:4]] or [0, SEEDS]
    main(Path(sys.argv[1]), range(*bounds))
