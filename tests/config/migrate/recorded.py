"""Updates that other libraries computed by their own code; `recorded/*.json`.

A file has its source, batches, and for each update the options, advantages, the loss and its
gradient in the log-probabilities. Advantages and gradients have a number for each action.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from grupo.method import Method
from tests.reference.assembled.comparison import Step, loss_and_gradients
from tests.reference.assembled_numpy.case import Case

FOLDER = Path(__file__).parent / "recorded"
RELATIVE, ABSOLUTE = 1e-6, 1e-7
Rows = Sequence[Sequence[float]]


@dataclass(frozen=True)
class RecordedUpdate:
    """An update of another library.

    Args:
        case: The batch.
        options: The options, by the names of `peer_files.py`.
        advantage: Advantage of each action.
        loss: The loss; NaN if only the advantages are compared.
        gradient: Its gradient in the log-probability of each action.
        scale: Factor that converts our advantages to the recorded ones.
        named: Options that the migration names as different.
    """

    case: Case
    options: Mapping[str, Any]
    advantage: Rows
    loss: float = math.nan
    gradient: Rows = ()
    scale: float = 1.0
    named: Sequence[str] = ()


def load_updates(library: str) -> list[RecordedUpdate]:
    """The updates of a library's file."""
    data = json.loads((FOLDER / f"{library}.json").read_text())
    cases = {name: _case(batch) for name, batch in data["batches"].items()}
    return [RecordedUpdate(cases[x.pop("batch")], **x) for x in data["updates"]]


def _case(batch: Mapping[str, Any]) -> Case:
    mask = np.array(batch["mask"], bool)
    is_gap = ~mask[:, :-1] & mask[:, 1:]
    reward = np.array(batch["reward"])
    return Case(
        reward=reward,
        group=np.array(batch["group"]),
        mask=mask,
        turn=np.pad(is_gap.cumsum(1), ((0, 0), (1, 0))),
        old_logp=np.array(batch["old_logp"]),
        signals={name: np.array(x) for name, x in batch["signals"].items()}
        | {"sampled": mask * 1.0, "off_context": mask * 0.0},
        terms={"correct": reward, "greedy": np.array(batch["greedy"])},
        history=[[] for _ in set(batch["group"])],
        pi={name: np.array(batch[name]) for name in ("logp", "entropy")},
    )


def assert_advantages_are_recorded(method: Method, recorded: RecordedUpdate) -> None:
    """Fail unless the method has the recorded advantages, up to their scale."""
    batch = Step.of(method, recorded.case, progress=0.0).batch
    assert not batch.advantage[~batch.mask].any()
    _equal(recorded.scale * batch.advantage.numpy()[recorded.case.mask], recorded.advantage)


def assert_loss_is_recorded(method: Method, recorded: RecordedUpdate) -> None:
    """Fail unless with the recorded advantages the loss and its gradient are the recorded ones."""
    case = recorded.case
    step = Step.of(method, case, progress=0.0)
    advantage = torch.zeros_like(step.batch.old_logp)
    advantage[step.batch.mask] = torch.tensor(np.concatenate(recorded.advantage))
    (minibatch,) = replace(step, batch=replace(step.batch, advantage=advantage)).minibatches()
    rows = minibatch.inputs.numpy()
    loss, gradients = loss_and_gradients(method, minibatch, case.pi, rows)
    assert loss == pytest.approx(recorded.loss, rel=RELATIVE, abs=ABSOLUTE)
    _equal(gradients["logp"][np.argsort(rows)][case.mask], recorded.gradient)


def _equal(found: np.ndarray, recorded: Rows) -> None:
    np.testing.assert_allclose(found, np.concatenate(recorded), RELATIVE, ABSOLUTE)
