"""Small Gymnasium environments: a counter, a lever, and two that fail."""

import time

import numpy as np
from gymnasium import Env, register, registry
from gymnasium.spaces import Box, Discrete

COUNTER = "tests.helpers.gym_envs:Counter-v0"
LEVER = "tests.helpers.gym_envs:Lever-v0"
FRAGILE = "tests.helpers.gym_envs:Fragile-v0"


class Counter(Env):
    """Starts at its seed and adds the action, which is also the reward; ends at 7."""

    action_space = Discrete(3)
    observation_space = Box(0, 99, (1,))

    def reset(self, *, seed=None, options=None):
        self.total = float(seed)
        return self._observe(), {}

    def step(self, action):
        self.total += action
        return self._observe(), float(action), self.total >= 7, False, {}

    def _observe(self):
        return np.array([self.total], dtype=np.float32)


class Lever(Counter):
    """The reward of a continuous action is its first number."""

    action_space = Box(-1, 1, (2,))

    def step(self, action):
        return self._observe(), float(action[0]), False, False, {}


class Fragile(Counter):
    """The action 1 raises, and 2 hangs."""

    def step(self, action):
        if action == 1:
            raise RuntimeError("the lever broke")
        if action == 2:
            time.sleep(1)
        return super().step(action)


class Stuck(Counter):
    """The reset hangs."""

    def reset(self, *, seed=None, options=None):
        time.sleep(1)
        return super().reset(seed=seed)


if "Counter-v0" not in registry:  # the module may be imported under two names
    register("Counter-v0", Counter, max_episode_steps=5)
    register("Lever-v0", Lever, max_episode_steps=5)
    register("Fragile-v0", Fragile)
    register("Stuck-v0", Stuck)
