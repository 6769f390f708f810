"""Flow models of a few thousand random weights, and rollouts of theirs."""

import asyncio
from dataclasses import replace
from pathlib import Path

import torch

from grupo.core.interfaces import run_rollout
from grupo.core.types import Group, Rollout, Task
from grupo.envs.image_generation import ImageGeneration
from grupo.envs.single_turn import RewardTerm
from grupo.models.flow_matching.unet import SmallFlow
from grupo.rewards.image_shapes import rollout_image
from grupo.training.collate import collate

WORDS = ("a", "red", "blue", "square", "circle")
PROMPTS = ("a red square", "a blue circle", "red")


def brightness(task, rollouts):
    return [0.0 for _ in rollouts]


WORLD = ImageGeneration((RewardTerm("none", brightness),))


def plant(folder: Path, seed: int = 0) -> str:
    torch.manual_seed(seed)
    model = SmallFlow(WORDS, size=8, width=8)
    torch.nn.init.normal_(model.conv_out.weight, std=0.1)
    model.save_pretrained(folder)
    return str(folder)


def drawn(act, prompts=PROMPTS, world=WORLD):
    """A rollout for each prompt."""

    async def together():
        plays = (run_rollout(Task(p, p), world, act.fork(i)) for i, p in enumerate(prompts))
        return await asyncio.gather(*plays)

    return [replace(r, reward=float(i)) for i, r in enumerate(asyncio.run(together()))]


def batch_of(policy, rollouts: list[Rollout]):
    return collate([Group(Task("k", "a"), tuple(rollouts))], policy.encode)


def redness(task, rollout):
    """Red less what else is there, the mean over pixels."""
    red, green, blue = rollout_image(rollout).flatten(1).mean(1).tolist()
    return red - (green + blue) / 2


def turned(x, batch):
    return -x
