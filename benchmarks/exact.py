"""Measure the accuracy of gradients: three paths in float32 or bfloat16 against float64.

    python -m benchmarks.exact short long agent --precision float32

The paths differentiate the same rollouts: with activations cached while sampling, with activations
recomputed by the C kernels, and by transformers' modules. The float64 reference uses the modules.
The exit code is the number of paths with an error above the tolerance in the worst tensor.
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
from benchmarks.grupo_worker import recipe
from benchmarks.workloads import WORKLOADS
from grupo.core.types import Rollout
from grupo.recipe import Recipe

GRADIENT_TOLERANCE = {"float32": 1e-4, "bfloat16": 1e-1}
Gradient = dict[str, Tensor]


def gradients_by_path(name: str, precision: str) -> tuple[dict[str, Gradient], Gradient]:
    """Return the gradient of each path in a precision, and the float64 reference."""
    workload_recipe = recipe(WORKLOADS[name], precision)
    rollouts, cached_gradient = rollouts_and_gradient(gradient_learner(workload_recipe))
    replay = replay_recipe(workload_recipe, rollouts)
    gradients = {
        "cached activations": cached_gradient,
        "recomputed activations": rollouts_and_gradient(gradient_learner(replay))[1],
        "modules": module_gradient(workload_recipe, rollouts),
    }
    full_recipe = recipe(WORKLOADS[name], "float32")
    return gradients, module_gradient(full_recipe, rollouts, float64=True)


def module_gradient(
    recipe: Recipe, rollouts: Sequence[Rollout], *, float64: bool = False
) -> Gradient:
    """Return the gradient by transformers' modules, which gradient checkpointing selects."""
    policy: Any = recipe.policy
    module_recipe = recipe.replace(policy=replace(policy, gradient_checkpointing=True))
    learner = gradient_learner(replay_recipe(module_recipe, rollouts))
    if not float64:
        return rollouts_and_gradient(learner)[1]
    learner.policy.module.double()
    torch.set_default_dtype(torch.float64)
    try:
        return rollouts_and_gradient(learner)[1]
    finally:
        torch.set_default_dtype(torch.float32)


def main() -> int:
    """Print the relative error of every path; return how many exceed the tolerance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=WORKLOADS, metavar="NAME")
    parser.add_argument("--precision", choices=GRADIENT_TOLERANCE, default="float32")
    arguments = parser.parse_args()
    names, precision = arguments.names, arguments.precision
    failures = 0
    subprocess.run([sys.executable, "-m", "benchmarks.models", *names], check=True, cwd=HERE.parent)
    for name in names:
        gradients, reference = gradients_by_path(name, precision)
        for path, gradient in gradients.items():
            whole, worst = gradient_distance(gradient, reference)
            print(f"{name}, {path}: {whole:.1e} of the norm, {worst:.1e} in the worst tensor")
            failures += not worst < GRADIENT_TOLERANCE[precision]
    return failures


if __name__ == "__main__":
    sys.exit(main())
