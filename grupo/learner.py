"""One step of learning: sample, judge, credit, update. It knows neither disk nor screen."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from grupo import metrics
from grupo.batch import Batch
from grupo.border import check_columns, check_lengths
from grupo.collate import collate
from grupo.evaluation import Score, evaluate
from grupo.gather import Gathered, gather
from grupo.method import Method
from grupo.optimize import descend
from grupo.policies.company import company
from grupo.randomness import derive, generator, seed_torch
from grupo.recipe import Recipe
from grupo.schedules import at
from grupo.state import State
from grupo.storage.faults import point
from grupo.tasks import split
from grupo.update import accumulate, observe, whole

Metrics = dict[str, float]
NOTHING = Batch.of(  # what a step learns from whose groups were all dropped
    torch.zeros(0, dtype=torch.float64),
    torch.zeros(0, dtype=torch.long),
    rollout=torch.zeros(0, dtype=torch.long),
    mask=torch.zeros(0, 0, dtype=torch.bool),
    old_logp=torch.zeros(0, 0),
)


@dataclass(frozen=True)
class Learned:
    """What a step sampled, what was learned from, and its numbers."""

    gathered: Gathered
    batch: Batch
    numbers: Metrics


class Learner:
    """What a recipe makes of a state: the next one."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.tasks, self.held_out = split(recipe.tasks, recipe.held_out, recipe.seed)
        seed_torch(recipe.seed, "build")  # adapters are born at random
        self.policy = recipe.policy.build()
        check_lengths(self.policy, self.held_out, self.tasks)
        check_columns(recipe.method, self.tasks)
        method, helpers = recipe.method, self.policy.helped(recipe.method.helpers)
        self.company = company(self.policy, method.needs, method.reference, recipe.others)
        optimizers = {"optimizer": recipe.optimizer(self.policy.parameters())}
        if method.helpers:
            optimizers["helping"] = recipe.helper_optimizer(list(helpers.parameters()))
        self.state = State(self.policy, optimizers, self.company)

    def step(self) -> Learned:
        """Sample and learn once."""
        began, step, recipe = time.perf_counter(), self.state.step, self.recipe
        point("step/begin")
        seed_torch(recipe.seed, "step", step)
        measured = self.state.history.measured
        choices = (recipe.method, recipe.lr, recipe.helper_lr)
        method, *rates = at(choices, (step + 0.5) / recipe.steps, measured)
        gathered = asyncio.run(self._gather(method))
        sampled = time.perf_counter()
        batch = self._batch(method, gathered)
        seen = self._learn(method, batch, rates) if gathered.kept else {}
        numbers = metrics.of_groups(gathered, batch) | seen
        numbers |= _times(began, sampled, numbers["tokens/sampled"]) | {"lr": rates[0]}
        self.state.record(gathered.sampled, numbers, recipe.method)
        point("step/recorded")
        return Learned(gathered, batch, numbers)

    def evaluate(self, when: str) -> Score:
        """Attempt the held-out tasks, and note how it went under `when`."""
        began, choice = time.perf_counter(), self.recipe.evaluation
        score = evaluate(
            self.policy,
            self.recipe.env,
            self.held_out,
            attempts=choice.attempts,
            solved=choice.solved,
            key=derive(self.recipe.seed, "held-out"),
        )
        self.state.scores[when] = score.to_data()
        self.state.seconds += time.perf_counter() - began
        point("run/evaluated")
        return score

    async def _gather(self, method: Method) -> Gathered:
        recipe, state = self.recipe, self.state
        return await gather(
            method,
            recipe.env,
            self.policy.act(derive(recipe.seed, "sample", state.step)),
            self.tasks,
            state.history,
            prompts=recipe.prompts,
            seed=recipe.seed,
        )

    def _batch(self, method: Method, gathered: Gathered) -> Batch:
        if not gathered.kept:
            return NOTHING
        batch = collate(gathered.kept, self.policy.encode, self.state.history.of)
        point("step/collated")
        if self.recipe.rescore:
            old = whole(self.policy, self.policy, batch, ["logp"])["logp"]
            batch = replace(batch, old_logp=torch.where(batch.seen["sampled"] > 0, old, 0.0))
        views = self.company.seen_otherwise(self.policy, gathered.kept)
        batch = replace(batch, inputs={**batch.inputs, **views})
        batch = observe(self.policy, self.company.speakers, batch, method.measured)
        point("step/observed")
        batch = batch.credited(method.credit)
        point("step/credited")
        return batch

    def _learn(self, method: Method, batch: Batch, rates: Sequence[float]) -> Metrics:
        rng = generator(self.recipe.seed, "plan", self.state.step)
        seen = []
        for minibatch in method.plan(batch, rng):
            watched = accumulate(self.policy, method, minibatch)
            point("step/accumulated")
            for optimizer, lr in zip(self.state.optimizers.values(), rates, strict=False):
                watched = descend(optimizer, lr, self.recipe.max_norm) | watched
            seen.append(watched)
            point("step/updated")
        return metrics.of_pieces(method, batch) | metrics.mean_of(seen)


def _times(began: float, sampled: float, tokens: float) -> Metrics:
    now = time.perf_counter()
    return {
        "time/sample": sampled - began,
        "time/update": now - sampled,
        "time/step": now - began,
        "speed/tokens": tokens / (sampled - began),
    }
