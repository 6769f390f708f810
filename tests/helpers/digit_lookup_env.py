"""An environment in which a digit can be looked up before it is the answer."""

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
    """Reveals the digit if the first turn is 0 or 1; the second turn ends it."""

    def reset(self, task):
        self.digit, self.observation = task.reference_answer, ""
        return "=="

    def step(self, text):
        if self.observation:
            return "=", 0.0, True
        looked_up = text[-1:] in ("0", "1")
        self.observation = f"={self.digit}" if looked_up else "=="
        return self.observation, 0.0, False, {"asked": float(looked_up)}


def right(task: Task, rollout: Rollout) -> float:
    """1 if the last turn is the digit."""
    return float(len(rollout.turns) == 2 and rollout.turns[1][1].text[-1:] == task.reference_answer)


def gain(
    method: Method,
    reward_term: str,
    reward: Callable[..., float] | None = right,
    steps: int = STEPS,
) -> float:
    """The rise of the mean of a reward term in so many training steps."""
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

    def accuracy() -> float:
        score = evaluate(
            learner.policy,
            env,
            learner.tasks,
            num_attempts=8,
            success=SuccessCriterion(reward_term),
            key=5,
        )
        return score.sampled.value

    before = accuracy()
    for _ in range(steps):
        learner.step()
    return accuracy() - before
