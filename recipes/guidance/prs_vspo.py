"""VSPO with and without its damping on sums of three to nine digits: how far the policy moves.

64 tasks, which recur: the toy model of hard sums always solves those of three digits and never
those of eight. All arms generate the same number of tokens, groups that are dropped counted. `kl`
is the divergence from the policy at the start, the mean of the last five steps on the tokens that
are trained on.

Named before the first run of all seeds: `kl` is larger without the division by the number of
copies: the 95 % interval of its difference to VSPO is above 0.

python recipes/guidance/prs_vspo.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.evidence.claims.hard_sums import ENV, EVAL_SEED, TRAINING_SEED, hard_sums_recipe
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.tiny_lm import mean_terms
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.methods.prs_vspo import prs_vspo
from grupo.recipe import Recipe
from grupo.tasks.digit_sums import DigitSums
from grupo.toy.arithmetic_lm import ensure_trained
from grupo.toy.digit_sums_lm import ToyDigitSumsLM
from grupo.training.learner import Learner

SEEDS = 8
MAX_TOKENS = 120_000
MIN_TERMS, MAX_TERMS, TASKS = 3, 9, 64
LEARNING_RATE = 1e-4
VSPO = prs_vspo()
METHODS: Mapping[str, Method] = {
    "VSPO": VSPO,
    "without damping": VSPO.replace(advantage=chain(Center(), ScaleByStd())),
    "GRPO": grpo(5, kl_coef=0.001),
}


def recipe(method: Method, seed: int) -> Recipe:
    """Train the toy model of hard sums on 64 tasks.

    Args:
        method: The method.
        seed: Seed of the run.
    """
    base = hard_sums_recipe(method, seed=seed, max_tokens=MAX_TOKENS, learning_rate=LEARNING_RATE)
    return base.replace(tasks=DigitSums(MIN_TERMS, MAX_TERMS, size=TASKS, seed=TRAINING_SEED))


RECIPE = recipe(VSPO, seed=0)


def run(method: Method, seed: int) -> Metrics:
    """Divergence, accuracy, shares of groups without a gradient and of copies, and steps.

    Args:
        method: The method.
        seed: Seed of the run.
    """
    ensure_trained(ToyDigitSumsLM())
    learner = Learner(recipe(method, seed))
    kl, flat, copies = list[float](), list[float](), list[float]()
    while learner.state.generated_tokens < MAX_TOKENS:
        result = learner.step()
        groups = result.collected.kept_groups
        if not groups:
            continue  # no task has a value yet
        kl.append(result.metrics["policy/kl_ref"])
        flat.append(fmean(not group.has_reward_variance for group in groups))
        copies.append(1 - len({group.task.key for group in groups}) / len(groups))
    held_out = DigitSums(MIN_TERMS, MAX_TERMS, size=100, seed=EVAL_SEED).load()
    return {
        "kl": fmean(kl[-5:]),
        "kl_max": max(kl),
        "correct": mean_terms(learner.policy, ENV, held_out, attempts=4, seed=seed)["correct"],
        "flat": fmean(flat),
        "copies": fmean(copies),
        "steps": float(learner.state.step),
    }


def main(folder: Path, seeds: Sequence[int]) -> None:
    """Train what is missing in the folder and print the table."""
    runs = stored_runs(
        folder / "runs.jsonl", {name: partial(run, m) for name, m in METHODS.items()}, seeds
    )
    if len(seeds) > 1:
        print(paired_table(runs, ["kl", "kl_max", "correct", "flat", "copies", "steps"], "VSPO"))


if __name__ == "__main__":
    bounds = [int(text) for text in sys.argv[2:4]] or [0, SEEDS]
    main(Path(sys.argv[1]), range(*bounds))
