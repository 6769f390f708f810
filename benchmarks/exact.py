"""How exact is a gradient? A step's rollouts differentiated in three ways, and in float64.

    python -m benchmarks.exact short long agent

As sampling has read them; read anew, in C; and by transformers' modules. Float64 is by the modules.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from benchmarks.check import (
    gradient_distance,
    gradient_learner,
    replay_recipe,
    rollouts_and_gradient,
)
from benchmarks.compare import HERE
from benchmarks.ours import recipe
from benchmarks.workloads import WORKLOADS
from grupo.core.types import Rollout
from grupo.recipe import Recipe

GRADIENT_TOLERANCE = 1e-4
Gradient = dict[str, Tensor]


def gradients_by_path(name: str) -> tuple[dict[str, Gradient], Gradient]:
    """By every way in float32, and the truth."""
    plan = recipe(WORKLOADS[name], "float32")
    rollouts, recalled = rollouts_and_gradient(gradient_learner(plan))
    ways = {
        "recalled": recalled,
        "read anew": rollouts_and_gradient(gradient_learner(replay_recipe(plan, rollouts)))[1],
        "by modules": module_gradient(plan, rollouts),
    }
    return ways, module_gradient(plan, rollouts, float64=True)


def module_gradient(
    recipe: Recipe, rollouts: Sequence[Rollout], *, float64: bool = False
) -> Gradient:
    """By the model's own modules, which is how a model that saves memory works; or in float64."""
    policy: Any = recipe.policy
    learner = gradient_learner(
        replay_recipe(recipe.replace(policy=replace(policy, gradient_checkpointing=True)), rollouts)
    )
    if not float64:
        return rollouts_and_gradient(learner)[1]
    learner.policy.module.double()
    torch.set_default_dtype(torch.float64)
    try:
        return rollouts_and_gradient(learner)[1]
    finally:
        torch.set_default_dtype(torch.float32)


def main() -> int:
    """Print how far every way is from the truth; how many are far."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=WORKLOADS, metavar="NAME")
    names, far = parser.parse_args().names, 0
    subprocess.run([sys.executable, "-m", "benchmarks.models", *names], check=True, cwd=HERE.parent)
    for name in names:
        ways, truth = gradients_by_path(name)
        for way, gradient in ways.items():
            whole, worst = gradient_distance(gradient, truth)
            print(f"{name}, {way}: {whole:.1e} of the norm, {worst:.1e} in the worst tensor")
            far += not worst < GRADIENT_TOLERANCE
    return far


if __name__ == "__main__":
    sys.exit(main())
