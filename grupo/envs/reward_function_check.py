"""One call of each reward function of the user on a made-up answer, before anything is generated.

A wrong reward function is found at once, and not after the first evaluation and a whole step.
"""

import inspect
import re
from collections.abc import Iterator

from grupo.core.component import walk
from grupo.core.types import Response, Rollout, Task
from grupo.envs.reward_term import RewardTerm
from grupo.envs.scoring import score_rollouts
from grupo.rewards import (
    FunctionReward,
    PerRolloutReward,
    Reward,
    TRLReward,
    VerlBatchReward,
    VerlReward,
)
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine

TIME_LIMIT = 10.0  # seconds of a call
# errors of a function that does not fit its arguments, and values that are no numbers; others may
# come from the made-up answer, such as the error of a search which finds nothing
WRONG_FUNCTION = re.compile(
    r"returned (?!nan|inf|-inf)|raised (?!.*'NoneType' object)(NameError|ImportError"
    r"|ModuleNotFoundError|TypeError|AttributeError|KeyError|grupo\.util\.errors\.ConfigError)\b",
    re.DOTALL,
)


def check_reward_functions(env: object, task: Task) -> Iterator[str]:
    """Call each reward function that is the user's own once; yield a note on each that fails.

    The answer is the task's reference answer, or "1" without one. Only environments whose rewards
    read text should be tried.

    Args:
        env: The environment; reward terms are looked for at any depth.
        task: The task of the made-up answer.

    Raises:
        ConfigError: A function returned no number, or raised an error that does not depend on the
            answer, such as a `NameError`.
    """
    for term in [part for part in walk(env) if isinstance(part, RewardTerm)]:
        if not _is_function(term.reward):
            continue
        # a function of a group gets two, so that one number for all of them is found
        rollouts = [_made_up(task)] * (1 if isinstance(term.reward, PerRolloutReward) else 2)
        result, *_ = run_coroutine(score_rollouts((term,), task, rollouts, TIME_LIMIT))
        error = result.error.removeprefix(f"reward {term.name!r} ")
        if WRONG_FUNCTION.match(error):
            raise ConfigError(
                f"reward: {term.name!r} {error}. It was called once, on a made-up answer, before"
                " anything is generated. Mend the function."
            )
        if error and not error.startswith("no reward applies"):
            yield f"reward: {term.name!r} fails on a made-up answer: it {error}."


def _is_function(reward: Reward) -> bool:
    """Whether a reward is a function of the user, and no component, which calls a judge perhaps."""
    kinds = (FunctionReward, TRLReward, VerlReward, VerlBatchReward)
    return isinstance(reward, kinds) or inspect.isfunction(reward)


def _made_up(task: Task) -> Rollout:
    """A rollout of one answer, with a token for each of its bytes."""
    answer = task.reference_answer
    text = str(answer) if isinstance(answer, str | int | float) else "1"
    items = tuple(text.encode(errors="replace"))
    response = Response(items, (-1.0,) * len(items), text=text, finish_reason="end")
    return Rollout(((task.prompt, response),))
