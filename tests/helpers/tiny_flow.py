"""Tiny flow models with random weights, and their rollouts."""

import asyncio
from dataclasses import replace
from pathlib import Path

import torch

from grupo.core.interfaces import run_rollout
from grupo.core.types import Group, Rollout, Task
from grupo.envs.image_generation import ImageGeneration
from grupo.envs.reward_term import RewardTerm
from grupo.models.flow_matching.unet import SmallFlow
from grupo.rewards.image_shapes import rollout_image
from grupo.training.update.collate import collate
from grupo.util.event_loop import run_coroutine

WORDS = ("a", "red", "blue", "square", "circle")
PROMPTS = ("a red square", "a blue circle", "red")


def brightness(task, rollouts):
    return [0.0 for _ in rollouts]


ENV = ImageGeneration((RewardTerm("none", brightness),))


def save_model(folder: Path, seed: int = 0) -> str:
    torch.manual_seed(seed)
    model = SmallFlow(WORDS, size=8, width=8)
    torch.nn.init.normal_(model.conv_out.weight, std=0.1)
    model.save_pretrained(folder)
    return str(folder)


def generate(actor, prompts=PROMPTS, env=ENV):
    """A rollout for each prompt."""

    async def run_all():
        rollouts = (run_rollout(Task(p, p), env, actor.fork(i)) for i, p in enumerate(prompts))
        return await asyncio.gather(*rollouts)

    return [replace(r, reward=float(i)) for i, r in enumerate(run_coroutine(run_all()))]


def batch_of(policy, rollouts: list[Rollout]):
    return collate([Group(Task("k", "a"), tuple(rollouts))], policy.encode)


def redness(task, rollout):
    """Red less the mean of green and blue, averaged over pixels."""
    red, green, blue = rollout_image(rollout).flatten(1).mean(1).tolist()
    return red - (green + blue) / 2


def negate(x, batch):
    return -x
