"""The contents of a run's `summary.json`."""

from collections.abc import Mapping
from typing import Any

from grupo.recipe import Recipe
from grupo.training.stopping import saved_best_steps


def run_summary(recipe: Recipe, step: int, data: Mapping[str, Any]) -> dict[str, Any]:
    """The summary of a run.

    `tokens` includes the steps that asynchronous rollouts generated ahead and that the run, stopped
    early, never trained on; the ledger has them as `tokens/generated_ahead`.

    Args:
        recipe: The recipe of the run.
        step: The number of steps.
        data: The plain data of the state after them, as a checkpoint holds it.
    """
    ahead = sum(sum(tokens.values()) for _, _, tokens, _ in data["rollout_queue"])
    ledger = data["ledger"] | ({"tokens/generated_ahead": float(ahead)} if ahead else {})
    return {
        "method": repr(recipe.method),
        "model": str(recipe.policy.model),
        "steps": step,
        "stop_reason": data["stop_reason"],
        "best_steps": saved_best_steps(recipe, step, data["eval_scores"]),
        "seconds": round(data["seconds"], 2),
        "tokens": data["generated_tokens"] + ahead,
        "ledger": {name: round(x, 3) for name, x in ledger.items()},
        "failed_rollouts": data["failed_rollouts"],
        "held_out": data["eval_scores"],
    }
