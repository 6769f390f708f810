"""Measurements of what must be equal: a resumed run, an exported model, runs of two processes."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from benchmarks.real_runs.commands import PROGRAM, execute, steps_of, train, train_as_typed
from benchmarks.real_runs.section import Result
from grupo.core.batch import Batch
from grupo.core.types import Group, Rollout, Task
from grupo.evidence.survey import FamilyTasks
from grupo.models.causal_policy import CausalPolicy
from grupo.training.resume.load_run import LAST, find_checkpoint, load_policy
from grupo.training.resume.run_folder import RunFolder
from grupo.training.update.collate import collate
from grupo.util.event_loop import run_coroutine

STATE = ("weights.safetensors", "optimizer.safetensors")
JOURNALS = ("rollouts.jsonl", "responses.jsonl")
POLL = 0.05  # seconds
EXPORTED_ANSWERS = 20


@dataclass(frozen=True)
class KilledAndResumed:
    """A run that is killed and resumed, against one that is not.

    Args:
        arguments: Arguments of `grupo train`, without the folder of the run.
        killed_after: The step after which the process is killed.
    """

    arguments: tuple[str, ...]
    killed_after: int

    @property
    def commands(self) -> tuple[str, ...]:
        return train_as_typed(self.arguments), "grupo resume RUN"

    def measure(self, folder: Path) -> Result:
        whole, killed = folder / "whole", folder / "killed"
        train(self.arguments, whole)
        with (folder / "killed.log").open("w") as log:
            command = [*PROGRAM, "train", *self.arguments, "--run", str(killed)]
            process = subprocess.Popen(command, stdout=log, stderr=log)
            self._kill(process, killed / "metrics.jsonl")
        steps = len(steps_of(killed))
        execute(["resume", str(killed)], folder / "resumed.log")
        return {
            "killed_after": steps,
            "steps": len(steps_of(killed)),
            "equal_state": state_of(whole) == state_of(killed),
            "equal_journals": all(
                (whole / name).read_bytes() == (killed / name).read_bytes() for name in JOURNALS
            ),
        }

    def _kill(self, process: subprocess.Popen[bytes], metrics: Path) -> None:
        while not metrics.exists() or metrics.read_bytes().count(b"\n") < self.killed_after:
            if process.poll() is not None:
                raise RuntimeError(f"the run ended before it was killed: {process.returncode}")
            time.sleep(POLL)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def state_of(run: Path) -> list[str]:
    """SHA-256 of the weights and of the optimizer's state in the newest checkpoint."""
    _, hashes = find_checkpoint(run, RunFolder.open(run).recipe, LAST)
    return [hashes[name] for name in STATE]


@dataclass(frozen=True)
class Exported:
    """The log-probabilities of an exported model in transformers, and those of the run's policy.

    Args:
        arguments: Arguments of `grupo train`, without the folder of the run.
    """

    arguments: tuple[str, ...]

    @property
    def commands(self) -> tuple[str, ...]:
        return train_as_typed(self.arguments), "grupo export RUN MODEL"

    def measure(self, folder: Path) -> Result:
        run, model = folder / "run", folder / "model"
        train(self.arguments, run)
        execute(["export", str(run), str(model)], folder / "export.log")
        policy, recipe = load_policy(run)
        assert isinstance(policy, CausalPolicy)
        assert isinstance(recipe.eval_tasks, FamilyTasks)
        rollouts = answers(policy, recipe.eval_tasks.load()[:EXPORTED_ANSWERS])
        batch = collate([Group(Task("0", ""), tuple(rollouts))], policy.encode)
        with torch.no_grad():
            logp = policy.signals(batch)["logp"][batch.mask]
            expected = transformers_logp(model, batch)
        sampled = torch.tensor(
            [x for r in rollouts for _, response in r.turns for x in response.logp]
        )
        return {
            "answers": len(rollouts),
            "tokens": len(expected),
            "largest": float((logp - expected).abs().max()),
            "largest_of_sampler": float((sampled - expected).abs().max()),
        }


def answers(policy: CausalPolicy, tasks: Sequence[Task]) -> list[Rollout]:
    """A sampled answer to each task."""
    actor = policy.actor(0)

    async def roll_out(task: Task) -> Rollout:
        response = await actor.fork(task.key)(Rollout(), task.prompt)
        return Rollout().append_turn(task.prompt, response)

    async def roll_out_all() -> list[Rollout]:
        return await asyncio.gather(*map(roll_out, tasks))

    return run_coroutine(roll_out_all())


def transformers_logp(model: Path, batch: Batch) -> torch.Tensor:
    """Log-probabilities of all answers by the plain forward pass, row by row."""
    loaded = AutoModelForCausalLM.from_pretrained(
        model, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    rows = []
    for row in range(len(batch.inputs["token"])):
        start, length = int(batch.inputs["start"][row]), int(batch.inputs["length"][row])
        token = batch.inputs["token"][row, :length]
        logp = loaded(token[None]).logits[0, start - 1 : -1].log_softmax(-1)
        rows.append(logp.gather(1, token[start:, None])[:, 0])
    return torch.cat(rows)
