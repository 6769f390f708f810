"""A world in which a digit can be looked up before it is to be said."""

from collections.abc import Callable

from grupo.core.types import Rollout, Task
from grupo.envs import MultiTurn, RewardTerm
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import SuccessCriterion, evaluate
from grupo.testing.smoke.echo_env import MAX_NEW_TOKENS, EchoTasks
from grupo.testing.smoke.tiny_model import STUDENT_STEPS, trained_model
from grupo.training.learner import Learner

STEPS = 30


class Lookup:
    """Shows the digit to who asks by saying 0 or 1, and nothing to others; then it is over."""

    def reset(self, task):
        self.digit, self.told = task.reference_answer, ""
        return "=="

    def step(self, text):
        if self.told:
            return "=", 0.0, True
        asked = text[-1:] in ("0", "1")
        self.told = f"={self.digit}" if asked else "=="
        return self.told, 0.0, False, {"asked": float(asked)}


def right(task: Task, rollout: Rollout) -> float:
    """Is the digit what it says in the end?"""
    return float(len(rollout.turns) == 2 and rollout.turns[1][1].text[-1:] == task.reference_answer)


def gain(
    method: Method, part: str, reward: Callable[..., float] | None = right, steps: int = STEPS
) -> float:
    """By how much the share of rollouts that have `part` rises in so many steps."""
    env = MultiTurn(Lookup, (RewardTerm("right", reward),) if reward else (), max_turns=2)
    recipe = Recipe(
        policy=CausalLM(trained_model(STUDENT_STEPS), max_new_tokens=MAX_NEW_TOKENS),
        env=env,
        tasks=EchoTasks(),
        eval_tasks=0,
        method=method,
        max_steps=steps,
        prompts_per_step=8,
        learning_rate=3e-3,
        seed=3,
    )
    learner = Learner(recipe)

    def share() -> float:
        score = evaluate(
            learner.policy, env, learner.tasks, attempts=8, success=SuccessCriterion(part), key=5
        )
        return score.sampled.value

    before = share()
    for _ in range(steps):
        learner.step()
    return share() - before
