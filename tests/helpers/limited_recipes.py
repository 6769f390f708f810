"""Recipes whose steps generate a limited number of tokens of each rollout."""

from grupo.models.causal_lm import CausalLM
from grupo.recipe import Evaluation, Recipe
from tests.helpers.training_recipes import base

LIMIT = 6  # tokens of an answer
STEPS = 6


def limited(model: str, tokens_per_step: int, max_staleness: int, **changes) -> Recipe:
    """Plain GRPO in float64, of which a step generates so many tokens of each rollout."""
    policy = CausalLM(model, max_new_tokens=LIMIT, device="cpu", dtype="float64")
    fields = {"policy": policy, "eval_tasks": 0, "evaluation": Evaluation(), "max_steps": STEPS}
    staleness = {"tokens_per_step": tokens_per_step, "max_staleness": max_staleness}
    return base(model).replace(**{**fields, **staleness, **changes})
