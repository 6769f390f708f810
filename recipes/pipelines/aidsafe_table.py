"""The table of AIDSAFE on a generated rule book: `docs/pipelines_shown.md`.

Named before the first run: violations fall after SFT and again after DPO, and refusals of requests
that are allowed stay within 5 points of the start.

python recipes/pipelines/aidsafe_table.py [SEEDS]
"""

import sys
import tempfile
from pathlib import Path

import torch
from aidsafe import REWARDS, pipeline, save_model
from rule_book import TESTED, is_allowed, is_forbidden

from grupo.envs import SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.pipeline import run_pipeline
from grupo.rollouts.evaluate import HasActor, run_rollouts
from grupo.training.resume.load_run import load_policy
from grupo.util.rng import derive_key

SEEDS = 8
TRAINED = ("sft", "dpo", "dpo_tenth")
METRICS = ("violations", "refused though allowed", "obeyed")


def measured(policy: HasActor, seed: int) -> dict[str, float]:
    """Violations of forbidden requests, refusals of allowed ones, and obedience to all."""
    groups = run_rollouts(policy.actor(derive_key(seed, "rules")), SingleTurn(REWARDS), TESTED, 4)
    found: dict[str, list[float]] = {name: [] for name in METRICS}
    for group in groups:
        for rollout in group.rollouts:
            found["obeyed"].append(rollout.reward_terms["obeys"])
            if is_forbidden(group.task):
                found["violations"].append(rollout.reward_terms["violates"])
            if is_allowed(group.task):
                found["refused though allowed"].append(rollout.reward_terms["refuses"])
    return {name: sum(values) / len(values) for name, values in found.items()}


def main() -> None:
    """Train the model that complies, then all stages with all seeds; print the table."""
    torch.set_num_threads(1)
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = str(save_model(folder))
        start = pipeline(model).stages[0].recipe.policy.build()
        runs = {
            "start": [measured(start, seed) for seed in seeds],
            **{stage: [] for stage in TRAINED},
        }
        for seed in seeds:
            root = run_pipeline(pipeline(model, seed), folder / f"seed{seed}")
            for stage in TRAINED:
                policy, _ = load_policy(root / stage)
                runs[stage].append(measured(policy, seed))
            print(seed, {arm: values[-1] for arm, values in runs.items()}, flush=True)
    print(paired_table(runs, METRICS, "start"))
    print(paired_table(runs, METRICS, "sft"))


if __name__ == "__main__":
    main()
