"""A game that adds up numbers, and an actor that plays scripted texts in it."""

import asyncio
import time

from grupo.core.interfaces import open_env, run_rollout, score_group
from grupo.core.types import Group, Response, Task
from grupo.envs import MultiTurn

TASK = Task("key", "Say numbers that make 3.", 3)


class SumGame:
    """Observes the running sum; the reward is 0.01 for a step, and 1 where it equals the answer.

    The class counts its resets and steps.
    """

    resets = steps = 0

    def reset(self, task):
        type(self).resets += 1
        self.total, self.target = 0, task.reference_answer
        return "total 0"

    def step(self, text):
        type(self).steps += 1
        if text == "hang":
            time.sleep(1)
        self.total += int(text)
        solved = self.total == self.target
        return f"total {self.total}", 0.01 + solved, solved, {"digits": len(text)}


class UncopyableSumGame(SumGame):
    """A game that cannot be copied."""

    def __deepcopy__(self, memo):
        raise TypeError("I hold a socket")


class TextActor:
    """Answers with these texts in turn, one token per letter, and records the observations."""

    def __init__(self, *texts):
        self.texts, self.observations = list(texts), []

    async def __call__(self, rollout, observation):
        self.observations.append(observation)
        return response(self.texts.pop(0))


def response(text, observation_length=1, **fields):
    tokens = (7,) * len(text)
    return Response(
        tokens,
        (-1.0,) * len(text),
        observation=(0,) * observation_length,
        text=text,
        **fields,
    )


def play(env, *texts_by_rollout, task=TASK):
    """The scored rollouts of actors with these texts in one environment, one after another."""

    async def score() -> Group:
        opened = open_env(env)
        actors = [TextActor(*texts) for texts in texts_by_rollout]
        rollouts = [await run_rollout(task, opened, actor) for actor in actors]
        return await score_group(task, opened, rollouts)

    return asyncio.run(score()).rollouts


def sum_env(game=SumGame, **fields):
    """The environment of a sum game, with the game's counters set to 0."""
    game.resets = game.steps = 0
    return MultiTurn(game, **fields)
