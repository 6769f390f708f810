"""Training of one run of the atlas, and what is kept of it."""

import hashlib
import math
import sys
import tempfile
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path

from grupo.core.component import to_code
from grupo.core.module_code import code_of, module_names
from grupo.evidence.atlas.runs import AtlasRun, Point
from grupo.recipe import Recipe
from grupo.report.plots import eval_scores_by_step
from grupo.report.read_run import read_metrics, read_rollouts, read_summary
from grupo.training.start import run_training

SHOWN_ANSWERS = 3
METRICS = ("sampled", "greedy", "pass@1", "pass@2", "pass@3")


def train_run(arm: str, recipe: Recipe, digest: str) -> AtlasRun:
    """Train a recipe in a temporary folder, and return what the atlas keeps of the run.

    Args:
        arm: Family and name of the arm.
        recipe: The recipe, with the seed of the run.
        digest: Digest of the arm, see `arm_digest`.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        run_training(recipe, folder)
        return measured_run(arm, recipe, digest, folder)


def measured_run(arm: str, recipe: Recipe, digest: str, folder: Path) -> AtlasRun:
    """The record of a finished run, read from its folder."""
    steps = read_metrics(folder)
    tokens = [0.0, *accumulate(step["tokens/generated"] for step in steps)]
    updates = recipe.updates_per_step or math.nan
    scores = sorted(eval_scores_by_step(read_summary(folder)).items())
    points = tuple(
        Point(step * updates, tokens[step], _metrics_of(values)) for step, values in scores
    )
    reward = tuple(round(step["reward/mean"], 4) for step in steps)
    answers = {} if recipe.seed else _answers(folder)
    return AtlasRun(arm, recipe.seed, digest, points, reward, answers)


def arm_digest(recipe: Recipe) -> str:
    """Digest of a recipe without its seed and model, and of the code of the method's modules."""
    described = recipe.replace(seed=0)
    names = sorted(x for x in module_names((recipe.method,)) if x.startswith("grupo."))
    text = "\n".join([to_code(described), *(code_of(sys.modules[name]) for name in names)])
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
            shown[name].append([line["prompt"][-1]["content"], line["text"], f"{line['reward']:g}"])
    return shown
