"""A game of sticks for two, and ways to play it."""

import asyncio
import time

from grupo.core.rng import make_rng
from grupo.core.types import Task
from grupo.envs import MultiplayerEnv, StepResult
from grupo.rollouts.samplers import SelfPlay
from tests.helpers.scripted_play import Saying

TASK = Task("sticks", "Take the last stick.", 3)


class Sticks:
    """Who takes the last stick is paid 1 by the other; "again" keeps the turn, for a tenth."""

    opened = 0

    def reset(self, task):
        Sticks.opened += 1
        self.left, self.turn = task.answer, 0
        return self._told()

    def step(self, text):
        if text == "again":
            return self._told()._replace(pays=self._to(self.turn, -0.1), counts={"again": 1.0})
        if text == "hang":
            time.sleep(1)
        self.left -= int(text)
        if self.left <= 0:
            win, lose = self._to(self.turn, 1.0), self._to(1 - self.turn, -1.0)
            return StepResult(
                "", done=True, player_rewards=tuple(map(sum, zip(win, lose, strict=True)))
            )
        self.turn = 1 - self.turn
        return self._told()

    def _told(self):
        return StepResult(f"{self.left} for {self.turn}", next_player=self.turn)

    def _to(self, player, paid):
        return tuple(paid * (seat == player) for seat in range(2))


class Players:
    """Says for each game what its two players say, and keeps what they were told."""

    def __init__(self, *games):
        self.decode_seconds = [[Saying(*texts) for texts in game] for game in games]

    def fork(self, game, seat):
        return self.decode_seconds[game][seat]

    def chance(self, *label):
        return make_rng(0, *label)

    @property
    def heard(self):
        return [[one.heard for one in game] for game in self.decode_seconds]


def played(*games, world=Sticks, task=TASK, players=2, **fields):
    """The rollouts of games in which these texts are said, two players a game; what they heard."""
    act, Sticks.opened = Players(*games), 0
    sampler = SelfPlay(len(games), players)
    return asyncio.run(sampler(task, MultiplayerEnv(world, **fields), act)).rollouts, act.heard
