"""A run's folder: its recipe, its journals, its checkpoints, its summary."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from grupo.batch import Batch
from grupo.errors import Refused
from grupo.piece import parts, show
from grupo.recipe import Recipe
from grupo.rollout import Group
from grupo.spelling import from_data, to_data
from grupo.storage import checkpoint, plain
from grupo.storage.files import Journal, make_folder, sweep, write_atomically


@dataclass(frozen=True)
class Run:
    """One run on disk."""

    folder: Path

    @staticmethod
    def vacant(folder: Path) -> None:
        """Refuse a folder that holds anything, but for what a killed beginning left."""
        held = (
            [p for p in folder.iterdir() if not p.name.startswith("tmp.")]
            if folder.is_dir()
            else []
        )
        if held or folder.is_file():
            raise Refused(
                f"run: {str(folder)!r} exists. Name another folder, or go on with"
                f" `grupo resume {folder}`."
            )

    @classmethod
    def create(cls, folder: Path, recipe: Recipe) -> "Run":
        """A folder for a new run."""
        cls.vacant(folder)
        run = cls(folder)
        make_folder(folder)
        sweep(folder)
        data = to_data(recipe)
        text = json.dumps({"fingerprint": fingerprint(recipe), "recipe": data}, indent=1)
        write_atomically(folder / "recipe.json", text)
        return run

    @classmethod
    def open(cls, folder: Path) -> "Run":
        """The folder of a run that was begun."""
        if not (folder / "recipe.json").is_file():
            raise Refused(f"run: {str(folder)!r} holds no run: it has no recipe.json.")
        sweep(folder)
        return cls(folder)

    @property
    def recipe(self) -> Recipe:
        """The recipe the run was begun with; refuses one that was edited since."""
        data = json.loads((self.folder / "recipe.json").read_text())
        recipe = from_data(data["recipe"])
        if fingerprint(recipe) != data["fingerprint"]:
            raise Refused(f"run: {self.folder / 'recipe.json'} was edited since the run began.")
        return recipe

    def check_same(self, recipe: Recipe) -> None:
        """Refuse to go on with another recipe than the one the run was begun with."""
        mine, other = parts(self.recipe), parts(recipe)
        for name, value in other.items():
            if mine[name] != value:
                raise Refused(
                    f"run: {str(self.folder)!r} was begun with {name} = {show(mine[name])}, not"
                    f" {show(value)}. Resume it as it is, or train in another folder."
                )

    @property
    def metrics(self) -> Journal:
        """One line for each step."""
        return Journal(self.folder / "metrics.jsonl")

    @property
    def rollouts(self) -> Journal:
        """One line for each rollout."""
        return Journal(self.folder / "rollouts.jsonl")

    def log(self, step: int, metrics: Mapping[str, float], rollouts: Sequence[Any]) -> None:
        """Append a step."""
        self.rollouts.append(*rollouts)
        self.metrics.append({"step": step, **metrics})

    def save(
        self, step: int, tensors: Mapping[str, Mapping[str, Tensor]], data: Mapping[str, Any]
    ) -> None:
        """A checkpoint after `step` steps, the journals' lengths in it."""
        for journal in (self.metrics, self.rollouts):
            journal.fsync()
        lengths = {"metrics": self.metrics.length(), "rollouts": self.rollouts.length()}
        mark = {"lengths": lengths, "fingerprint": fingerprint(self.recipe)}
        checkpoint.save(self.folder / "checkpoints", step, tensors, {**data, **mark})

    def load(self) -> checkpoint.Checkpoint:
        """The newest whole checkpoint, the journals cut back to where they were then.

        Raises `checkpoint.NoCheckpoint` where the run never got to save one.
        """
        found = checkpoint.load(self.folder / "checkpoints")
        if found.data["fingerprint"] != fingerprint(self.recipe):
            raise Refused(f"run: the checkpoints in {self.folder} belong to another recipe.")
        self.cut(found.data["lengths"])
        return found

    def cut(self, lengths: Mapping[str, int]) -> None:
        """Take the journals back to the lengths they once had."""
        for journal, name in ((self.metrics, "metrics"), (self.rollouts, "rollouts")):
            Journal.cut(journal.path, lengths[name])

    def summarise(self, summary: Mapping[str, Any]) -> None:
        """Write `summary.json`."""
        write_atomically(self.folder / "summary.json", plain.text(summary))


def fingerprint(recipe: Recipe) -> str:
    """A recipe's hash: equal for equal recipes."""
    return hashlib.sha256(json.dumps(to_data(recipe), sort_keys=True).encode()).hexdigest()


def lines(step: int, sampled: Sequence[Group], kept: Sequence[Group], batch: Batch) -> list[Any]:
    """What the journal holds of a step, one record for each rollout that was sampled.

    `advantage` is the mean over a rollout's actions, null for one that was not learned from.
    """
    learned = [rollout for group in kept for rollout in group.rollouts]
    advantage = dict(zip(map(id, learned), _mean_advantage(batch), strict=True))
    return [
        {
            "step": step,
            "task": group.task.key,
            "prompt": group.task.prompt,
            "text": rollout.text,
            "reward": rollout.reward,
            "parts": rollout.parts,
            "advantage": advantage.get(id(rollout)),
            "length": rollout.length,
            "truncated": rollout.truncated,
            "failed": rollout.failed,
        }
        for group in sampled
        for rollout in group.rollouts
    ]


def _mean_advantage(batch: Batch) -> list[float]:
    total = batch.reward.new_zeros(len(batch.reward))
    total = total.index_add(0, batch.rollout, (batch.advantage * batch.mask).sum(1).to(total))
    return (total / batch.lengths.clamp(min=1)).tolist()
