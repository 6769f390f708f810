"""Schedules: the number that each step trains with, as a function of the progress of the run.

The numbers are those of `resolve_schedules`, which the training loop calls before each step.
"""

from collections.abc import Callable
from functools import partial

from grupo.core.schedules import Schedule, resolve_schedules
from grupo.method import Method
from grupo.methods.ada_grpo import ada_grpo
from grupo.methods.arrol import arrol
from grupo.methods.canon import (
    COSINE_FIRST_INTER_LATER_INTRA,
    COSINE_FIRST_INTRA_LATER_INTER,
    canon,
)
from grupo.methods.chord_mu import chord_mu
from grupo.methods.d3s import d3s
from grupo.methods.expo_self_explanation import expo_self_explanation
from grupo.methods.grpo_d import grpo_d
from grupo.methods.kdrl import kdrl
from grupo.methods.scaf_grpo import scaf_grpo
from grupo.methods.thinktuning import thinktuning
from grupo.methods.trust_grpo import trust_grpo
from tests.reference.steps.resolving import assert_close, parts
from tests.reference.steps_plain.schedules import SCHEDULES

PROGRESS = (0.0, 0.05, 0.0999, 0.1, 0.149, 0.151, 0.25, 0.4999, 0.5, 0.75, 0.9, 1.0)


def check_schedules(method: Method, name: str) -> None:
    """Compare the schedules of a method over the run."""
    schedules = parts(method, Schedule)
    # the token fraction of D3S comes after the rollout fraction, as in the table
    expected = SCHEDULES[name]
    assert len(schedules) == len(expected)
    for schedule, value in zip(schedules, expected, strict=True):
        assert_close([resolve_schedules(schedule, x) for x in PROGRESS], [*map(value, PROGRESS)])


INTRA_FIRST = canon(between_weight=COSINE_FIRST_INTRA_LATER_INTER)
INTER_FIRST = canon(between_weight=COSINE_FIRST_INTER_LATER_INTRA)
SCHEDULED = {
    "ada_grpo": ada_grpo(),
    "arrol": arrol(),
    "canon(between_weight=COSINE_FIRST_INTER_LATER_INTRA)": INTER_FIRST,
    "canon(between_weight=COSINE_FIRST_INTRA_LATER_INTER)": INTRA_FIRST,
    "chord_mu": chord_mu(),
    "chord_mu(decay_fraction=0.5)": chord_mu(decay_fraction=0.5),
    "d3s": d3s(),
    "expo_self_explanation": expo_self_explanation(),
    "grpo_d": grpo_d(),
    "kdrl": kdrl(),
    "scaf_grpo": scaf_grpo(),
    "thinktuning": thinktuning(),
    "trust_grpo": trust_grpo(),
}

CHECKS: dict[str, Callable[[], None]] = {
    f"{name}: schedule": partial(check_schedules, method, name)
    for name, method in SCHEDULED.items()
}
