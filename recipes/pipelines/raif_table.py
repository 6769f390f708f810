"""The table of RAIF in a world of words: `docs/pipelines_shown.md`.

Named before the first run: with the contrast mask fewer intervals of 5 steps raise the length
without raising the share of constraints met, and RAIF meets more constraints than GRPO on as many
rollouts.

python recipes/pipelines/raif_table.py [SEEDS]
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import torch
from raif import REFERENCE, TERM, base_recipe, pipeline, raif, save_model
from word_constraints import held_out_tasks

from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.tiny_lm import mean_terms
from grupo.method import Method
from grupo.pipeline import Pipeline, run_pipeline
from grupo.pipeline.collect import ROWS_FILE
from grupo.recipe import Recipe
from grupo.tasks import DatasetTasks
from grupo.training.learner import Learner

SEEDS = 8
INTERVAL = 5  # steps
ARMS: Mapping[str, Method] = {
    "GRPO": raif(contrast=False, sft_coef=0.0),
    "contrast": raif(sft_coef=0.0),
    "SFT loss": raif(contrast=False),
    "RAIF: both": raif(),
}


def curve(recipe: Recipe) -> Sequence[Mapping[str, float]]:
    """Means on held-out tasks before training and after each interval."""
    learner, tasks = Learner(recipe), list(held_out_tasks())
    points = [mean_terms(learner.policy, recipe.env, tasks, attempts=4, seed=recipe.seed)]
    for step in range(1, recipe.max_steps + 1):
        learner.step()
        if step % INTERVAL == 0:
            points.append(
                mean_terms(learner.policy, recipe.env, tasks, attempts=4, seed=recipe.seed)
            )
    return points


def summary(points: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The last means, and the share of intervals that only make answers longer."""
    share = f"{TERM}/share"
    longer = [b["length"] > a["length"] and b[share] <= a[share] for a, b in pairwise(points)]
    last = points[-1]
    return {
        "met": last[share],
        "length": last["length"],
        "only longer": sum(longer) / len(longer),
    }


def main() -> None:
    """Train the model, collect the reference answers, then train each arm with all seeds."""
    torch.set_num_threads(1)
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS)
    with tempfile.TemporaryDirectory() as name:
        model = str(save_model(Path(name)))
        reference = Pipeline(pipeline(model).stages[:1])
        root = run_pipeline(reference, Path(name) / "run")
        tasks = DatasetTasks(str(root / "reference" / ROWS_FILE))
        assert all(REFERENCE in task.columns for task in tasks.load())
        recipe = base_recipe(model).replace(tasks=tasks, eval_tasks=0)
        start = recipe.policy.build()
        held_out = list(held_out_tasks())
        runs = {
            "start": [
                summary([mean_terms(start, recipe.env, held_out, attempts=4, seed=seed)] * 2)
                for seed in seeds
            ]
        }
        for arm, method in ARMS.items():
            chosen = [recipe.replace(method=method, seed=seed) for seed in seeds]
            runs[arm] = [summary(curve(recipe)) for recipe in chosen]
            print(arm, runs[arm][0], flush=True)
    print(paired_table(runs, ["met", "length", "only longer"], "GRPO"))


if __name__ == "__main__":
    main()
