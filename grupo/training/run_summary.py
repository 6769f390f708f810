"""The contents of a run's `summary.json`."""

from collections.abc import Mapping
from typing import Any

from grupo.recipe import Recipe


def run_summary(recipe: Recipe, step: int, data: Mapping[str, Any]) -> dict[str, Any]:
    """The summary of a run.

    Args:
        recipe: The recipe of the run.
        step: The number of steps.
        data: The plain data of the state after them, as a checkpoint holds it.
    """
    return {
        "method": repr(recipe.method),
        "model": recipe.policy.model,
        "steps": step,
        "seconds": round(data["seconds"], 2),
        "tokens": data["generated_tokens"],
        "ledger": {name: round(x, 3) for name, x in data["ledger"].items()},
        "failed_rollouts": data["failed_rollouts"],
        "held_out": data["eval_scores"],
    }
