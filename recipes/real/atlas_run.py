"""Training of one run of the atlas, and what is kept of it."""

import hashlib
import math
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from grupo.core.component import to_code
from grupo.core.message_content import content_text
from grupo.core.module_code import code_of, module_names
from grupo.evidence.atlas.runs import AtlasRun, Point
from grupo.pipeline import Pipeline
from grupo.pipeline.pipeline import stage_executions
from grupo.pipeline.run import run_pipeline
from grupo.recipe import Recipe
from grupo.report.plots import eval_scores_by_step
from grupo.report.read_run import read_metrics, read_rollouts, read_summary
from grupo.training.start import run_training

SHOWN_ANSWERS = 3
METRICS = ("sampled", "greedy", "pass@1", "pass@2", "pass@3")


def train_run(arm: str, training: Recipe | Pipeline, seed: int, digest: str) -> AtlasRun:
    """Train in a temporary folder, and return the record of the run.

    Args:
        arm: Family and name of the arm.
        training: A recipe; or a pipeline, of whose last stage the evaluations are kept, after the
            updates of the stages before it.
        seed: Seed of the run.
        digest: Digest of the arm, see `arm_digest`.
    """
    training = with_seed(training, seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        if isinstance(training, Recipe):
            run_training(training, folder)
            return measured_run(arm, training, digest, folder)
        run_pipeline(training, folder)
        *earlier, last = stage_executions(training, folder)
        updates = sum(updates_of(execution.stage.recipe) for execution in earlier)
        return measured_run(arm, last.stage.recipe, digest, last.folder, updates)


def with_seed(training: Recipe | Pipeline, seed: int) -> Recipe | Pipeline:
    """The recipe, or the pipeline with all its recipes, with a seed."""
    if isinstance(training, Recipe):
        return training.replace(seed=seed)
    stages: tuple[Any, ...] = training.stages
    return Pipeline(tuple(replace(x, recipe=x.recipe.replace(seed=seed)) for x in stages))


def updates_of(recipe: Recipe) -> float:
    """Updates of the optimizer in a whole run; NaN if the plan does not fix their number."""
    return recipe.max_steps * (recipe.updates_per_step or math.nan)


def measured_run(
    arm: str, recipe: Recipe, digest: str, folder: Path, updates_before: float = 0
) -> AtlasRun:
    """The record of a finished run, read from its folder."""
    steps = read_metrics(folder)
    tokens = [0.0, *accumulate(step["tokens/generated"] for step in steps)]
    per_step = recipe.updates_per_step or math.nan
    scores = sorted(eval_scores_by_step(read_summary(folder)).items())
    points = tuple(
        Point(updates_before + step * per_step, tokens[step], _metrics_of(values))
        for step, values in scores
    )
    reward = tuple(round(step["reward/mean"], 4) for step in steps)
    answers = {} if recipe.seed else _answers(folder)
    return AtlasRun(arm, recipe.seed, digest, points, reward, answers)


def arm_digest(training: Recipe | Pipeline) -> str:
    """Digest of a recipe or pipeline with seed 0, and of the code of its methods' modules."""
    recipes = (
        [training] if isinstance(training, Recipe) else [stage.recipe for stage in training.stages]
    )
    names = module_names(tuple(recipe.method for recipe in recipes))
    modules = (sys.modules[name] for name in sorted(names) if name.startswith("grupo."))
    text = "\n".join([to_code(with_seed(training, 0)), *map(code_of, modules)])
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _metrics_of(scores: Mapping[str, object]) -> dict[str, float]:
    metrics = {name: float(scores[name]) for name in METRICS if name in scores}  # type: ignore[arg-type]
    tokens = scores["tokens_per_answer"]
    return {**metrics, "answer_tokens": float(tokens["generated"])}  # type: ignore[index]


def _answers(folder: Path) -> dict[str, list[list[str]]]:
    """Prompt, answer and reward of the first rollout of groups of the first and the last step."""
    lines = list(read_rollouts(folder))
    first, last = (end(line["step"] for line in lines) for end in (min, max))
    shown: dict[str, list[list[str]]] = {"before": [], "after": []}
    tasks: set[tuple[int, str]] = set()
    for line in lines:
        step, task = line["step"], line["task"]
        name = "before" if step == first else "after" if step == last else ""
        if name and (step, task) not in tasks and len(shown[name]) < SHOWN_ANSWERS:
            tasks.add((step, task))
            shown[name].append([_prompt_text(line["prompt"]), line["text"], f"{line['reward']:g}"])
    return shown


def _prompt_text(prompt: Any) -> str:
    """A prompt that is text, or the last of its messages."""
    return prompt if isinstance(prompt, str) else content_text(prompt[-1]["content"])
