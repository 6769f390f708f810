"""A world in which a digit can be looked up before it is to be said."""

from collections.abc import Callable

from grupo.core.types import Rollout, Task
from grupo.envs import ManyTurns, Part
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import Solved, evaluate
from grupo.testing.smoke.echo_env import LIMIT, Digits
from grupo.testing.smoke.tiny_model import BEGINNER, model
from grupo.training.learner import Learner

STEPS = 30


class Lookup:
    """Shows the digit to who asks by saying 0 or 1, and nothing to others; then it is over."""

    def reset(self, task):
        self.digit, self.told = task.answer, ""
        return "=="

    def step(self, text):
        if self.told:
            return "=", 0.0, True
        asked = text[-1:] in ("0", "1")
        self.told = f"={self.digit}" if asked else "=="
        return self.told, 0.0, False, {"asked": float(asked)}


def right(task: Task, rollout: Rollout) -> float:
    """Is the digit what it says in the end?"""
    return float(len(rollout.turns) == 2 and rollout.turns[1][1].text[-1:] == task.answer)


def gain(
    method: Method, part: str, reward: Callable[..., float] | None = right, steps: int = STEPS
) -> float:
    """By how much the share of rollouts that have `part` rises in so many steps."""
    env = ManyTurns(Lookup, (Part("right", reward),) if reward else (), turns=2)
    recipe = Recipe(
        policy=CausalLM(model(BEGINNER), limit=LIMIT),
        env=env,
        tasks=Digits(),
        held_out=0,
        method=method,
        steps=steps,
        prompts=8,
        lr=3e-3,
        seed=3,
    )
    learner = Learner(recipe)

    def share() -> float:
        score = evaluate(learner.policy, env, learner.tasks, attempts=8, solved=Solved(part), key=5)
        return score.sampled.value

    before = share()
    for _ in range(steps):
        learner.step()
    return share() - before
