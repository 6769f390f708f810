"""Model cards: the README.md of an exported model, with recipe, data and results."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id

from grupo.core.component import component_fields, to_code, walk
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rollouts.eval_result import NOT_SCORED_TEXT
from grupo.rollouts.eval_scores import scores_by_step
from grupo.storage.checkpoint import Checkpoint
from grupo.tasks import DatasetTasks

SCORES = ("greedy", "sampled")
TAGS = ["grupo", "grpo", "reinforcement-learning"]


def model_card(
    recipe: Recipe, saved: Checkpoint, name: str, *, averaged: bool = False
) -> ModelCard:
    """The card of the model of a checkpoint.

    Args:
        recipe: The recipe of the run.
        saved: The checkpoint.
        name: Name of the model.
        averaged: The model is the moving average of the weights, which the run did not evaluate.
    """
    evaluations = scores_by_step(saved.data["eval_scores"], saved.step)
    results = {} if averaged else {n: x for n, x in evaluations.items() if n in (0, saved.step)}
    metadata = _metadata(recipe, results.get(saved.step, {}), name).to_yaml()
    sections = (
        f"# {name}",
        _description(recipe, saved, averaged),
        "## Results",
        _results_table(results) or _no_results(averaged),
        "## Data",
        _code({name: getattr(recipe, name) for name in ("tasks", "eval_tasks", "env")}),
        "## Recipe",
        _code(component_fields(recipe)),
    )
    return ModelCard(f"---\n{metadata}\n---\n\n" + "\n\n".join(sections) + "\n")


def _metadata(recipe: Recipe, scores: Mapping[str, Any], name: str) -> ModelCardData:
    """The metadata of the card; local folders are left out of it."""
    sources = [part.path for part in walk(recipe.tasks) if isinstance(part, DatasetTasks)]
    source = to_code(recipe.tasks)[:200]
    base = str(recipe.policy.model)
    results = [
        EvalResult(
            task_type="text-generation",
            dataset_type="held-out",
            dataset_name=f"tasks held out of {source}",
            metric_type="accuracy",
            metric_name=f"tasks solved, {score}",
            metric_value=round(scores[score], 6),
        )
        for score in SCORES
        if score in scores
    ]
    return ModelCardData(
        model_name=name,
        base_model=base if _is_hub_name(base) else None,
        datasets=[path for path in dict.fromkeys(sources) if _is_hub_name(path)] or None,
        tags=TAGS,
        pipeline_tag="text-generation" if isinstance(recipe.policy, CausalLM) else None,
        eval_results=results or None,
    )


def _description(recipe: Recipe, saved: Checkpoint, averaged: bool) -> str:
    name = str(recipe.policy.model)
    base = name if _is_hub_name(name) else "a local model"
    average = f" The weights are their moving average, {recipe.ema!r}." if averaged else ""
    return (
        f"Trained from {base} with group-relative policy optimization by grupo:"
        f" {saved.step} steps, {saved.data['generated_tokens']:,} generated tokens."
        f"{average}\n\nMethod:\n\n    {to_code(recipe.method)}"
    )


def _results_table(results: Mapping[int, Mapping[str, Any]]) -> str:
    """Fractions of held-out tasks solved, with 95 % intervals; "" without an evaluation."""
    rows = [
        f"| {step} | {' | '.join(_share(scores, name) for name in SCORES)} |"
        for step, scores in results.items()
    ]
    header = "| steps | greedy | sampled (pass@1) |\n|---|---|---|\n"
    caption = "Held-out tasks solved, in %, with 95 % bootstrap intervals over tasks.\n\n"
    return caption + header + "\n".join(rows) if rows else ""


def _share(scores: Mapping[str, Any], name: str) -> str:
    if name not in scores:
        return NOT_SCORED_TEXT
    low, high = scores["intervals"][name]
    return f"{100 * scores[name]:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def _no_results(averaged: bool) -> str:
    if averaged:
        return "The run evaluated the trained weights, not this average."
    return "The run did not evaluate this checkpoint."


def _code(values: Mapping[str, Any]) -> str:
    """An indented block of code, which no text in the values can end."""
    return "\n".join(f"    {name} = {to_code(value)}" for name, value in values.items())


def _is_hub_name(name: str) -> bool:
    """Whether a name can be that of a repository on the hub, and no file or folder has it."""
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return "/" in name and not Path(name).exists()
