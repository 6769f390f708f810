"""DRPO: rollouts that start inside a demonstration, on a lock of six digits.

The policy is a table: logits of ten digits at each of six places. The samplers, the advantage, the
loss and the update are those of the library.

Named before the first run of all seeds: after training, the policy opens the lock from the first
digit more often than with GRPO, and with GRPO it opens it in less than 1 % of the attempts.

python recipes/guidance/drpo_reset.py FOLDER [FIRST_SEED END]
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

import torch
from torch import Tensor

from grupo.core.batch import Batch, Signals
from grupo.core.component import component
from grupo.core.types import Group, Observation, Response, RewardResult, Rollout, Task
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import stored_runs
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.rollouts.samplers import GroupSampler, Reset
from grupo.training.update.collate import collate
from grupo.util.rng import derive_key, make_rng

SEEDS = 8
COMBINATION = (7, 2, 9, 4, 1, 6)
STEPS = 150
GROUPS = 8  # a step
LEARNING_RATE = 0.1


@component
class CombinationLock:
    """A lock that takes one digit a turn, with reward 1 at the end if all of them are right."""

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        """The place of the next digit, whether the digits so far are right or not."""
        place = len(rollout.turns)
        return f"digit {place + 1}: " if place < len(COMBINATION) else None

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        """1 for the combination, 0 for everything else."""
        opens = "".join(map(str, COMBINATION))
        return [RewardResult(float(rollout.text == opens)) for rollout in rollouts]


TASK = Task("lock", "digit 1: ", columns={"solution": tuple(map(str, COMBINATION))})


@dataclass(frozen=True)
class TableActor:
    """Samples the digit of a place from a table of log-probabilities; an answer is one item."""

    logp: Sequence[Sequence[float]]
    key: int

    async def __call__(self, rollout: Rollout, observation: Observation) -> Response:
        logp = self.logp[len(rollout.turns)]
        weights = torch.tensor(logp).exp().tolist()
        rng = make_rng(self.key, "digit", len(rollout.turns))
        (digit,) = rng.choices(range(len(logp)), weights)
        return Response((digit,), (logp[digit],), (observation,), str(digit), rng_key=self.key)

    async def append_unsampled(
        self, rollout: Rollout, observation: Observation, text: str
    ) -> Response:
        """The response of a given digit."""
        return Response((int(text),), (0.0,), (observation,), text, sampled=False)

    def fork(self, *label: object) -> "TableActor":
        """The same policy with a random stream of its own."""
        return replace(self, key=derive_key(self.key, *label))

    def rng(self, *label: object) -> Random:
        """A random generator for the sampler."""
        return make_rng(self.key, *label)


def train(method: Method, seed: int, steps: int = STEPS) -> dict[str, float]:
    """Probability that the policy opens the lock, and tokens generated."""
    table = torch.zeros(len(COMBINATION), 10, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([table], lr=LEARNING_RATE)
    generated = 0
    for step in range(steps):
        logp = table.log_softmax(1)
        actor = TableActor(logp.tolist(), derive_key(seed, "step", step))
        groups = asyncio.run(_sample(method, actor))
        batch = collate(groups, len).with_advantage(method.advantage)
        generated += int(batch.mask.sum())
        loss = method.aggregation(batch) * method.loss(_signals(logp, batch), batch)
        optimizer.zero_grad()
        loss.sum().backward()
        optimizer.step()
    opened = table.log_softmax(1)[range(len(COMBINATION)), COMBINATION].sum().exp()
    return {"opened": opened.item(), "tokens": float(generated)}


async def _sample(method: Method, actor: TableActor) -> Sequence[Group]:
    return await asyncio.gather(
        *(method.sampler(TASK, CombinationLock(), actor.fork(i)) for i in range(GROUPS))
    )


def _signals(logp: Tensor, batch: Batch) -> Signals:
    """Log-probabilities of the digits of a batch; observations have one item and lie between."""
    digit = batch.signals["step/item"].long()
    place = torch.arange(digit.shape[1]) // 2  # a digit and an observation
    return Signals(logp=logp[place.expand_as(digit), digit])


METHODS = {
    "GRPO": grpo(kl_coef=0.0).replace(sampler=GroupSampler(8)),
    "DRPO": grpo(kl_coef=0.0).replace(sampler=Reset(8)),
}


def main(folder: Path, seeds: Sequence[int]) -> None:
    """Train what is missing in the folder and print the table."""
    beginner = partial(train, METHODS["GRPO"], steps=0)
    arms = {"beginner": beginner, **{name: partial(train, m) for name, m in METHODS.items()}}
    runs = stored_runs(folder / "runs.jsonl", arms, seeds)
    if len(seeds) > 1:
        print(paired_table(runs, ["opened", "tokens"], "GRPO"))


if __name__ == "__main__":
    bounds = [int(text) for text in sys.argv[2:4]] or [0, SEEDS]
    main(Path(sys.argv[1]), range(*bounds))
