"""Prompts with random pictures and sounds, and rollouts of a policy that reads them."""

import asyncio
from collections.abc import Sequence

import numpy as np

from grupo.core.media import Audio, Image, Media
from grupo.core.types import Observation, Rollout
from grupo.models.vision_lm import VisionPolicy
from grupo.util.event_loop import run_coroutine

RATE = 16_000


def random_media(kind: str, seed: int) -> Media:
    """A picture of 48 x 40 pixels, or a sound of half a second and a bit more for each seed."""
    rng = np.random.default_rng(seed)
    if kind == "image":
        return Image.from_pixels(rng.integers(0, 256, (48, 40, 3), dtype=np.uint8))
    return Audio.from_samples(rng.uniform(-1.0, 1.0, RATE // 2 + 500 * seed), RATE)


def prompt(kind: str, seeds: Sequence[int], text: str = "What is it?") -> Observation:
    """A message of the user that begins with pictures or sounds."""
    media = [{"type": kind, kind: random_media(kind, seed)} for seed in seeds]
    return ({"role": "user", "content": [*media, {"type": "text", "text": text}]},)


def mixed_prompts(kind: str) -> list[Observation]:
    """Prompts with one, two and no pictures, of which two are equal."""
    plain = ({"role": "user", "content": "Without any"},)
    return [prompt(kind, [0]), prompt(kind, [1, 2], "Which of both?"), plain, prompt(kind, [0])]


def answers(
    policy: VisionPolicy, prompts: Sequence[Observation], attempts: int = 2
) -> list[Rollout]:
    """Rollouts of every prompt, generated in one batch."""

    async def answer(number: int, attempt: int) -> Rollout:
        actor = policy.actor(7).fork(number, attempt)
        observation = prompts[number]
        return Rollout().append_turn(observation, await actor(Rollout(), observation))

    async def answer_all() -> list[Rollout]:
        pairs = ((number, i) for number in range(len(prompts)) for i in range(attempts))
        return await asyncio.gather(*(answer(*pair) for pair in pairs))

    return run_coroutine(answer_all())
