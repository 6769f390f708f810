"""Guidance on sums of ten digits, of which the model of `grupo.toy.digit_sums_lm` solves none.

All arms generate 300,000 tokens on sums of ten digits, hints and further attempts counted, and are
evaluated on held-out sums without hints. The oracle's hint is the whole working but for its last
addition: the upper bound, which must win first.

Named before the first run of all seeds: the accuracy on held-out sums of 8 to 10 digits (`long`) of
GHPO, LUFFY, AMPO and Reset, each minus that of GRPO. A method that is better in all 8 seeds has
p = 0.004 (sign test), and p < 0.016 for all four.

python recipes/guidance/hard_sums.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from grupo.evidence.claims.hard_sums import (
    accuracy_by_terms,
    ghpo_sampler,
    hard_sums_recipe,
    trained_for_tokens,
)
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.method import Method
from grupo.methods.ampo import ampo
from grupo.methods.grpo import grpo
from grupo.methods.luffy import luffy
from grupo.rollouts.samplers import GroupSampler, Reset, with_hint
from grupo.tasks.digit_sums import HINT_PREFIX, STYLES
from grupo.toy.arithmetic_lm import ensure_trained
from grupo.toy.digit_sums_lm import ToyDigitSumsLM

GROUP_SIZE, MAX_TOKENS = 8, 300_000
MAX_NEW_TOKENS = ToyDigitSumsLM().max_new_tokens
GRPO = grpo(GROUP_SIZE, kl_coef=0.0)
METHODS: Mapping[str, Method] = {
    "GRPO": GRPO,
    "oracle hint": GRPO.replace(sampler=with_hint(GroupSampler(GROUP_SIZE), "hint", HINT_PREFIX)),
    "GHPO": GRPO.replace(sampler=ghpo_sampler(GROUP_SIZE)),
    "LUFFY": luffy(MAX_NEW_TOKENS),
    "AMPO": ampo(MAX_NEW_TOKENS, GROUP_SIZE, columns=tuple(STYLES)),
    "Reset": GRPO.replace(sampler=Reset(GROUP_SIZE)),
}
RECIPE = hard_sums_recipe(METHODS["GHPO"], seed=0, max_tokens=MAX_TOKENS)


def run(method: Method, seed: int, max_tokens: int = MAX_TOKENS) -> Metrics:
    """Metrics of the policy after `max_tokens`; the beginner with 0.

    Args:
        method: The method.
        seed: Seed of the run.
        max_tokens: Tokens that are generated.
    """
    ensure_trained(ToyDigitSumsLM())
    learner = trained_for_tokens(hard_sums_recipe(method, seed=seed, max_tokens=max_tokens))
    return {**accuracy_by_terms(learner, seed), "steps": float(learner.state.step)}


def main(folder: str, first_seed: str = "0", end: str = "8") -> None:
    """Run all arms and print the table."""
    arms = {
        "beginner": lambda seed: run(GRPO, seed, max_tokens=0),
        **{name: lambda seed, method=method: run(method, seed) for name, method in METHODS.items()},
    }
    runs = stored_runs(Path(folder) / "runs.jsonl", arms, range(int(first_seed), int(end)))
    print(paired_table(runs, ["long", "short", "steps"], "GRPO"))


if __name__ == "__main__":
    main(*sys.argv[1:])
