"""The one trainer."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from grupo import metrics
from grupo.batch import Batch
from grupo.border import check, check_lengths, check_names
from grupo.evaluate import Score, evaluate
from grupo.gather import Gathered, gather
from grupo.history import History
from grupo.method import Method
from grupo.optimize import descend, restore, state_of
from grupo.policies.causal_lm import CausalPolicy
from grupo.randomness import derive, generator, seed_torch
from grupo.recipe import Recipe
from grupo.rollout import collate
from grupo.run import Run, lines
from grupo.schedules import at
from grupo.storage import checkpoint
from grupo.storage.checkpoint import NoCheckpoint
from grupo.storage.faults import point
from grupo.tasks import split
from grupo.update import Speaks, accumulate, observe, whole
from grupo.watch import Silent, Watcher

Metrics = dict[str, float]


def train(recipe: Recipe, run: str | Path, watcher: Watcher = Silent()) -> dict[str, Any]:
    """Train as the recipe says, in the new folder `run`; return what `summary.json` holds.

    Raises `Refused`, before any work starts, for what cannot be used.
    """
    return begin(recipe, Path(run), watcher)()


def resume(run: str | Path, watcher: Watcher = Silent()) -> dict[str, Any]:
    """Go on with a run that was stopped at any moment, by anything: it ends with the same bits."""
    trainer = reopen(Path(run), watcher)
    trainer.restore()
    return trainer()


def begin(recipe: Recipe, run: Path, watcher: Watcher = Silent()) -> "Trainer":
    """A run about to start in a new folder."""
    check(recipe)
    Run.vacant(run)
    trainer = Trainer(recipe, watcher)
    trainer.run = Run.create(run, recipe)
    return trainer


def reopen(run: Path, watcher: Watcher = Silent()) -> "Trainer":
    """A run that was begun before, at its start until `restore` is called."""
    opened = Run.open(run)
    trainer = Trainer(opened.recipe, watcher)
    trainer.run = opened
    return trainer


def policy_of(run: Path) -> tuple[CausalPolicy, Recipe]:
    """The policy of a run as its newest whole checkpoint has it."""
    opened = Run.open(run)
    policy = opened.recipe.policy.build()
    policy.load(checkpoint.load(run / "checkpoints").tensors["weights"])
    return policy, opened.recipe


class Trainer:
    """A run under way: what it holds is what a checkpoint holds."""

    run: Run

    def __init__(self, recipe: Recipe, watcher: Watcher) -> None:
        self.recipe, self.watcher = recipe, watcher
        self.tasks, self.held_out = split(recipe.tasks, recipe.held_out, recipe.seed)
        self.policy = recipe.policy.build()
        needs = {need for need in recipe.method.needs if not need.endswith("@sampler")}
        check_names(needs, ("ref",))
        check_lengths(self.policy, self.held_out, self.tasks)
        referred = any(need.endswith("@ref") for need in needs)
        self.others: dict[str, Speaks] = {"ref": self.policy.reference()} if referred else {}
        self.optimizer = recipe.optimizer(self.policy.parameters())
        self.history, self.step = History(), 0
        self.seconds, self.totals = 0.0, dict.fromkeys(("tokens", "failed"), 0.0)
        self.scores: dict[str, Any] = {}

    def __call__(self) -> dict[str, Any]:
        """Go on to the end."""
        point("run/begin")
        self.watcher.begun(self.recipe, self.step)
        try:
            self._evaluate("before")
            while self.step < self.recipe.steps and not self._reached():
                self._step()
            self._evaluate("after")
            self._save()
            summary = self.summary()
            self.run.summarise(summary)
            point("run/ended")
            return summary
        finally:
            self.watcher.ended()

    def restore(self) -> None:
        """Take over the newest whole checkpoint, if there is one."""
        try:
            found = self.run.load()
        except NoCheckpoint:
            return self.run.cut({"metrics": 0, "rollouts": 0})
        for note in found.notes:
            self.watcher.said(note)
        self.policy.load(found.tensors["weights"])
        restore(self.optimizer, found.tensors["optimizer"])
        self.history, self.step = History.from_data(found.data["history"]), found.step
        self.seconds, self.totals = found.data["seconds"], dict(found.data["totals"])
        self.scores = dict(found.data["scores"])

    def summary(self) -> dict[str, Any]:
        """What a run came to."""
        return {
            "method": repr(self.recipe.method),
            "model": self.recipe.policy.model,
            "steps": self.step,
            "seconds": round(self.seconds, 2),
            "tokens": int(self.totals["tokens"]),
            "failed_rollouts": int(self.totals["failed"]),
            "held_out": self.scores,
        }

    def _step(self) -> None:
        began, step, recipe = time.perf_counter(), self.step, self.recipe
        point("step/begin")
        seed_torch(recipe.seed, "step", step)
        method, lr = at((recipe.method, recipe.lr), (step + 0.5) / recipe.steps)
        gathered = asyncio.run(self._gather(method))
        sampled = time.perf_counter()
        batch = self._batch(method, gathered)
        seen = self._update(method, batch, lr) if gathered.kept else {}
        numbers = metrics.of_groups(gathered, batch) | seen | {"lr": lr}
        numbers |= _times(began, sampled, numbers["tokens/sampled"])
        self.step += 1
        self._record(step, gathered, batch, numbers)

    async def _gather(self, method: Method) -> Gathered:
        recipe = self.recipe
        act = self.policy.act(derive(recipe.seed, "sample", self.step))
        return await gather(
            method,
            recipe.env,
            act,
            self.tasks,
            self.history,
            prompts=recipe.prompts,
            seed=recipe.seed,
        )

    def _batch(self, method: Method, gathered: Gathered) -> Batch:
        batch = collate(gathered.kept, self.policy.encode, self.history.of)
        point("step/collated")
        if self.recipe.rescore and gathered.kept:
            old = whole(self.policy, self.policy, batch, ["logp"])["logp"]
            batch = replace(batch, old_logp=torch.where(batch.seen["sampled"] > 0, old, 0.0))
        batch = observe(self.policy, self.others, batch, method.measured)
        point("step/observed")
        batch = batch.credited(method.credit) if gathered.kept else batch
        point("step/credited")
        return batch

    def _update(self, method: Method, batch: Batch, lr: float) -> Metrics:
        rng = generator(self.recipe.seed, "plan", self.step)
        seen = []
        for minibatch in method.plan(batch, rng):
            watched = accumulate(self.policy, method, minibatch)
            point("step/accumulated")
            seen.append(watched | descend(self.optimizer, lr, self.recipe.max_norm))
            point("step/updated")
        return metrics.mean_of(seen)

    def _record(self, step: int, gathered: Gathered, batch: Batch, numbers: Metrics) -> None:
        self.history.record(step, (g for g in gathered.sampled if g.rollouts))
        self.totals["tokens"] += numbers["tokens/sampled"]
        self.totals["failed"] += numbers["rollouts/failed"]
        self.seconds += numbers["time/step"]
        point("step/recorded")
        every = self.recipe.evaluation.every
        if every and self.step % every == 0 and self.step < self.recipe.steps:
            self._evaluate(f"step {self.step}")
        self.run.log(step, numbers, lines(step, gathered.sampled, gathered.kept, batch))
        point("step/logged")
        self.watcher.stepped(step, numbers)
        if self.step % self.recipe.save_every == 0:
            self._save()
        point("step/saved")

    def _evaluate(self, when: str) -> None:
        if not self.held_out or when in self.scores:
            return
        began, choice = time.perf_counter(), self.recipe.evaluation
        score: Score = evaluate(
            self.policy,
            self.recipe.env,
            self.held_out,
            attempts=choice.attempts,
            solved=choice.solved,
            key=derive(self.recipe.seed, "held-out"),
        )
        self.scores[when] = score.to_data()
        self.seconds += time.perf_counter() - began
        point("run/evaluated")
        self.watcher.evaluated(when, score)

    def _reached(self) -> bool:
        last = list(self.scores.values())[-1:]
        return any(score["sampled"] >= self.recipe.until.sampled for score in last)

    def _save(self) -> None:
        tensors = {"weights": self.policy.weights(), "optimizer": state_of(self.optimizer)}
        data = {
            "history": self.history.to_data(),
            "seconds": self.seconds,
            "totals": self.totals,
            "scores": self.scores,
        }
        self.run.save(self.step, tensors, data)


def _times(began: float, sampled: float, tokens: float) -> Metrics:
    now = time.perf_counter()
    return {
        "time/sample": sampled - began,
        "time/update": now - sampled,
        "time/step": now - began,
        "speed/tokens": tokens / (sampled - began),
    }
