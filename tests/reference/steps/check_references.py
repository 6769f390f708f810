"""The weights of the reference policy after each rollout step, for scripted policies."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import sin

import torch
from torch import Tensor

from grupo.core.types import Rollout
from grupo.method import Method
from grupo.methods.coupled_grpo import coupled_grpo
from grupo.methods.deepseek_r1 import deepseek_r1
from grupo.methods.ema_pg import ema_pg
from grupo.methods.grpo_care import grpo_care
from grupo.methods.prorl import prorl
from grupo.methods.remix import remix
from grupo.methods.srpo import srpo
from grupo.models.base import AuxModels
from tests.reference.steps_plain.reference_updates import REFERENCES

NUM_STEPS = 1250  # three resets of ProRL
INITIAL = 0.75


class ScriptedPolicy:
    """A policy of one number."""

    def __init__(self, weight: float) -> None:
        self.weight = torch.tensor([weight], dtype=torch.float64)

    def weights(self) -> Mapping[str, Tensor]:
        return {"w": self.weight}

    def encode(self, rollouts: Sequence[Rollout]) -> None:
        raise AssertionError


def check_reference(method: Method, name: str) -> None:
    """Compare the reference after each step."""
    policies = [sin(step) + step / 100 for step in range(1, NUM_STEPS + 1)]
    reference = torch.tensor([INITIAL], dtype=torch.float64)
    models = AuxModels({}, reference_update=method.reference, reference_weights={"w": reference})
    found = []
    for step, weight in enumerate(policies, 1):
        models.update_reference(step, ScriptedPolicy(weight))
        found.append(float(reference))
    expected = REFERENCES[name](policies, INITIAL)
    assert expected[0] == INITIAL or name == "srpo"
    assert expected[-1] != INITIAL
    assert max(abs(a - b) for a, b in zip(found, expected, strict=True)) < 1e-9


CHECKS: dict[str, Callable[[], None]] = {
    f"{name}: reference": partial(check_reference, method, name)
    for name, method in {
        "coupled_grpo": coupled_grpo(),
        "deepseek_r1": deepseek_r1(),
        "ema_pg": ema_pg(),
        "grpo_care": grpo_care(),
        "prorl": prorl(),
        "remix": remix(),
        "srpo": srpo(),
    }.items()
}
