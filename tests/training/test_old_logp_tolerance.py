"""Old log-probabilities are recomputed if they differ by more than rounding explains."""

from collections.abc import Generator
from contextlib import contextmanager
from math import inf
from typing import Any

import pytest
import torch

from grupo.core.dtypes import logp_rounding
from grupo.inference.vllm import Vllm
from grupo.models.causal_lm import CausalLM
from grupo.models.multi_policy_spec import MultiPolicy, RolePolicy
from grupo.training.learner import Learner
from tests.helpers.tiny_lm import save_model
from tests.helpers.training_recipes import base


@contextmanager
def scored_batches(policy: Any) -> Generator[list[int]]:
    """Rows of each batch that the policy evaluates without gradients."""
    rows = list[int]()
    signals = policy.signals

    def counted(batch: Any, names: Any = ("logp",)) -> Any:
        if not torch.is_grad_enabled():
            rows.append(len(batch.mask))
        return signals(batch, names)

    policy.signals = counted
    yield rows
    policy.signals = signals


@pytest.mark.parametrize(
    ("dtype", "tolerance", "mismatch", "is_recomputed"),
    [
        ("float32", None, 0.0009, False),
        ("float32", None, 0.0011, True),
        ("bfloat16", None, 0.041, False),  # SmolLM2-135M with adapters
        ("bfloat16", None, 0.051, True),
        ("bfloat16", 1e-3, 0.041, True),
        ("float32", inf, 1.0, False),
    ],
)
def test_log_probabilities_are_recomputed_above_the_tolerance(
    dtype, tolerance, mismatch, is_recomputed, tmp_path
):
    recipe = base(str(save_model(tmp_path)))
    policy = CausalLM(recipe.policy.model, dtype=dtype, max_new_tokens=6, device="cpu")
    learner = Learner(recipe.replace(policy=policy, old_logp_tolerance=tolerance))
    learner.state.sampler_logp_diff = mismatch
    with scored_batches(learner.policy) as rows:
        learner.step()
    assert bool(rows) == is_recomputed


def test_rounding_is_that_of_the_coarsest_part_of_a_policy():
    assert logp_rounding(CausalLM("m")) == logp_rounding(CausalLM("m", dtype="float64")) == 1e-3
    served = CausalLM("m", engine=Vllm(dtype="bfloat16"))
    roles = MultiPolicy(CausalLM("m"), (RolePolicy("b", CausalLM("m", dtype="bfloat16")),))
    assert logp_rounding(served) == logp_rounding(roles) == 0.05
