"""Replay of rollouts with an advantage, where most groups have none: sums of three sources.

The world is that of `grupo.evidence.claims.three_sources`: the toy model solves 45 % of the tasks
and none of another 45 %. All arms generate 100,000 tokens. "SSR" is VL-Rethinker without its forced
rethinking: selective sample replay, clip bounds of 0.8 and 1.35, advantages that are not scaled and
4 updates per step; "SSR, no replay" lacks the replay alone. Skywork R1V2 differs from GRPO in its
buffer alone. The arm that draws from the learnable source is the upper bound, which must win first.

Named before the first run of these seeds: (a) the accuracy on held-out sums of five and six digits
(`learnable`) of SSR and of Skywork R1V2, minus that of GRPO, by the exact sequential sign-flip test
with looks at 8, 12 and 16 pairs and an error of 5 % for both together; (b) `with_advantage`, the
share of the trained rollouts of the whole run that have a nonzero advantage, of the three. GRPO
with the replay buffer of SSR was added after these runs, for the tables alone.

python recipes/guidance/selective_replay.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.algo.replay_rules import advantage_magnitude, no_replay
from grupo.compare.sequential_design import SequentialDesign
from grupo.evidence.claims.hard_sums import steps_for_tokens
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.three_sources import (
    GROUP_SIZE,
    GRPO,
    LEARNABLE_ONLY,
    SOURCES,
    accuracy_by_source,
    three_sources_recipe,
)
from grupo.method import Method
from grupo.methods.skywork_r1v2 import skywork_r1v2
from grupo.methods.vl_rethinker import vl_rethinker
from grupo.rollouts.samplers import GroupSampler
from grupo.toy.arithmetic_lm import ensure_trained
from grupo.toy.digit_sums_lm import ToyDigitSumsLM
from grupo.training.learner import Learner, TrainStepResult
from grupo.util.importing import load_module_file

DESIGN = SequentialDesign(max_pairs=16, looks=(8, 12, 16))
SSR = vl_rethinker(GROUP_SIZE).replace(
    sampler=GroupSampler(GROUP_SIZE), loss=Clip(0.2, 0.35), updates=Updates(minibatches=4)
)
METHODS: Mapping[str, Method] = {
    "GRPO": GRPO,
    "learnable only": LEARNABLE_ONLY,
    "SSR": SSR,
    "SSR, no replay": SSR.replace(replay=no_replay),
    "Skywork R1V2": skywork_r1v2(GROUP_SIZE),
    "GRPO, SSR's replay": GRPO.replace(replay=SSR.replay),
}
TESTED = ("GRPO", "SSR", "Skywork R1V2")
RECIPE = three_sources_recipe(SSR, seed=0)


def run(method: Method, seed: int) -> Metrics:
    """Accuracies of the trained policy, and shares of its trained rollouts.

    Args:
        method: The method.
        seed: Seed of the run.
    """
    ensure_trained(ToyDigitSumsLM())
    learner = Learner(three_sources_recipe(method, seed=seed))
    steps = list(steps_for_tokens(learner))
    return {**accuracy_by_source(learner, seed), **trained_shares(steps)}


def beginner(seed: int) -> Metrics:
    """Accuracies of the policy before training.

    Args:
        seed: Seed of the attempts.
    """
    ensure_trained(ToyDigitSumsLM())
    return accuracy_by_source(Learner(three_sources_recipe(GRPO, seed=seed)), seed)


def trained_shares(steps: Sequence[TrainStepResult]) -> Metrics:
    """The number of steps, and the shares of their trained rollouts that have an advantage.

    `replayed` is the share of those that were drawn from a replay buffer.

    Args:
        steps: All steps of a run.
    """
    has_advantage = torch.cat([advantage_magnitude(step.batch) > 0 for step in steps])
    drawn = sum(step.metrics.get("replay/drawn", 0.0) for step in steps)
    return {
        "with_advantage": has_advantage.double().mean().item(),
        "replayed": drawn / len(has_advantage),
        "steps": float(len(steps)),
    }


def main(folder: str, first_seed: str = "0", end: str = "16") -> None:
    """Run all arms and print the tables."""
    arms = {
        "beginner": beginner,
        **{name: lambda seed, method=method: run(method, seed) for name, method in METHODS.items()},
    }
    runs = stored_runs(Path(folder) / "runs.jsonl", arms, range(int(first_seed), int(end)))
    print(paired_table(runs, list(SOURCES), "GRPO"))
    trained = {name: runs[name] for name in METHODS}
    print(paired_table(trained, ["with_advantage", "replayed", "steps"], "GRPO"))
    print(sequential_table({name: runs[name] for name in TESTED}, "learnable", "GRPO", DESIGN))


if __name__ == "__main__":
    load_module_file(Path(__file__)).main(*sys.argv[1:])
