"""One step of learning: sample, judge, credit, update. It knows neither disk nor screen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import torch

from grupo.algo.optimizer import descend
from grupo.config.validate import check_admitted, check_columns, check_tasks
from grupo.core.batch import NOTHING, Batch
from grupo.core.event_loop import run
from grupo.core.rng import derive, generator, seed_torch
from grupo.core.schedules import at
from grupo.core.timing import Stopwatch
from grupo.method import Method
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import Score, evaluate
from grupo.storage.fault_injection import point
from grupo.tasks import split
from grupo.training import metrics
from grupo.training.async_rollouts import Sampled, corrected
from grupo.training.collate import collate
from grupo.training.collect import Gathered, gather
from grupo.training.oom_retry import frugally
from grupo.training.state import State
from grupo.training.token_records import Trace
from grupo.training.update import accumulate, observe, whole

Metrics = dict[str, float]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Learned:
    """What a step sampled, what was learned from, its numbers, and what else is to be said.

    `trace` is what the policy said of the actions it learned from.
    """

    gathered: Gathered
    batch: Batch
    numbers: Metrics
    trace: Trace
    notes: tuple[str, ...] = ()


class Learner:
    """What a recipe makes of a state: the next one."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.tasks, self.held_out = split(recipe.tasks, recipe.held_out, recipe.seed)
        seed_torch(recipe.seed, "build")  # adapters are born at random
        self.policy = recipe.policy.build()
        check_tasks(self.policy, self.held_out, self.tasks)
        check_columns(recipe.method, self.tasks)
        check_admitted(recipe.env, self.held_out, self.tasks)
        method, helpers = recipe.method, self.policy.helped(recipe.method.helpers)
        self.company = self.policy.accompanied(method.needs, method.reference, recipe.others)
        optimizers = {"optimizer": recipe.optimizer(self.policy.parameters())}
        if method.helpers:
            optimizers["helping"] = recipe.helper_optimizer(list(helpers.parameters()))
        self.state = State(self.policy, optimizers, self.company, self.tasks)
        self.watch, self.notes, self.ahead = Stopwatch(), list[str](), self.state.ahead
        if recipe.staleness:
            self.policy.speak_apart()

    def step(self) -> Learned:
        """Sample and learn once."""
        self.watch, self.notes, step, recipe = Stopwatch(), [], self.state.step, self.recipe
        point("step/begin")
        seed_torch(recipe.seed, "step", step)
        measured = self.state.history.measured
        choices = (recipe.method, recipe.lr, recipe.helper_lr)
        progress = recipe.progress(step, self.state.tokens, self.state.trained)
        method, *rates = at(choices, progress, measured)
        method = corrected(method) if recipe.staleness else method
        gathered = self._ahead(method) if recipe.staleness else self._sample(method)
        batch = self._batch(method, gathered)
        trace = Trace()
        seen = self._learn(method, batch, rates, trace) if gathered.kept else {}
        numbers = metrics.of_groups(gathered, batch) | seen
        numbers |= metrics.of_time(self.watch, numbers) | {"lr": rates[0]}
        numbers["staleness"] = metrics.staleness(gathered, step)
        numbers["budget"] = float(self.policy.budget)
        self.state.record(gathered.sampled, numbers, recipe.method)
        point("step/recorded")
        return Learned(gathered, batch, numbers, trace, tuple(self.notes))

    def evaluate(self, when: str) -> Score:
        """Attempt the held-out tasks, and note how it went under `when`."""
        watch, choice = Stopwatch(), self.recipe.evaluation
        self.ahead.all()  # the voice is theirs until then
        self.policy.speak(self.policy.voice.take(), self.state.step)
        score = evaluate(
            self.policy,
            self.recipe.env,
            self.held_out,
            attempts=choice.attempts,
            solved=choice.solved,
            turn=choice.turn,
            key=derive(self.recipe.seed, "held-out"),
        )
        self.state.scores[when] = score.to_data()
        self.state.seconds += watch.passed
        point("run/evaluated")
        return score

    def _sample(self, method: Method) -> Gathered:
        spoken = self.policy.seconds
        with self.watch.lap("judge"):
            sampled = self._sampling(method, self.state.step)(self.state.history.asked)
        # the policy speaks while others are judged: what it does not speak is waited for
        spoken = self.policy.seconds - spoken
        self.watch.seconds["sample"] += spoken
        self.watch.seconds["judge"] -= spoken
        return self._taken(sampled)

    def _ahead(self, method: Method) -> Gathered:
        """What was sampled for this step, while later ones go on being sampled."""
        last = min(self.state.step + self.recipe.staleness, self.recipe.steps - 1)
        for step in range(self.state.step + len(self.ahead.waiting), last + 1):
            self.ahead.ask(self._sampling(method, step), self.state.history.asked)
        with self.watch.lap("sample"):
            return self._taken(self.ahead.next())

    def _taken(self, sampled: Sampled) -> Gathered:
        self.state.history.asked = sampled.asked
        return sampled.gathered

    def _sampling(self, method: Method, step: int) -> Callable[[int], Sampled]:
        """How to sample for a step with the weights and the history as they are now."""
        recipe, history, version = self.recipe, self.state.history.copy(), self.state.step
        weights = self.policy.voice.take()

        def sample(asked: int) -> Sampled:
            self.policy.speak(weights, version)
            history.asked = asked
            act = self.policy.act(derive(recipe.seed, "sample", step))
            given = (method, recipe.env, act, self.tasks, history)
            found = gather(*given, prompts=recipe.prompts, seed=recipe.seed)
            return Sampled(run(found), history.asked)

        return sample

    def _batch(self, method: Method, gathered: Gathered) -> Batch:
        if not gathered.kept:
            return NOTHING
        batch = collate(gathered.kept, self.policy.encode, self.state.history.of)
        point("step/collated")
        views = self.company.seen_otherwise(self.policy, gathered.kept)
        row = torch.arange(len(batch.rollout))
        batch = replace(batch, inputs={**batch.inputs, **views, "row": row})
        with self.watch.lap("observe"):
            batch = self._frugally(partial(self._observe, method, batch))
        point("step/observed")
        batch = batch.credited(method.credit)
        point("step/credited")
        return batch

    def _observe(self, method: Method, batch: Batch) -> Batch:
        if self.recipe.staleness or not self.state.mismatch <= self.recipe.tolerance:
            old = whole(self.policy, self.policy, batch, ["logp"])["logp"]
            own = (batch.seen["sampled"] > 0) & (batch.seen["moved"] == 0)
            batch = replace(batch, old_logp=torch.where(own, old, batch.old_logp))
        return observe(self.policy, self.company.speakers, batch, method.measured)

    def _frugally(self, work: Callable[[], Result]) -> Result:
        """The gradients of an update that is begun again are forgotten."""
        optimizers = self.state.optimizers.values()

        def undo() -> None:
            for optimizer in optimizers:
                optimizer.zero_grad()

        return frugally(work, self.policy, undo, self.notes.append)

    def _learn(self, method: Method, batch: Batch, rates: Sequence[float], trace: Trace) -> Metrics:
        rng = generator(self.recipe.seed, "plan", self.state.step)
        seen = []
        for minibatch in method.plan(batch, rng):
            with self.watch.lap("update"):
                watched = self._frugally(partial(accumulate, self.policy, method, minibatch, trace))
            point("step/accumulated")
            with self.watch.lap("update"):
                for optimizer, lr in zip(self.state.optimizers.values(), rates, strict=False):
                    watched = descend(optimizer, lr, self.recipe.max_norm) | watched
            seen.append(watched)
            point("step/updated")
        return metrics.of_pieces(method, batch) | metrics.mean_of(seen)
