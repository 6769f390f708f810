"""How consistent the thoughts and the answers of a policy are."""

from collections.abc import Sequence
from statistics import fmean

from grupo.core.interfaces import EnvSpec
from grupo.core.types import Task
from grupo.rollouts.evaluate import HasActor, run_rollouts
from grupo.util.rng import derive_key


def answer_consistency(
    policy: HasActor, env: EnvSpec, tasks: Sequence[Task], *, attempts: int, seed: int
) -> dict[str, float]:
    """Shares of the answers to held-out questions, and their mean length in tokens.

    `inconsistent` are those that their thoughts contradict, `sound` those that are right after
    thoughts that lead to them.

    Args:
        policy: Generates the answers.
        env: Has the reward terms `accuracy` and `consistent`, a `ConclusionMatch`.
        tasks: The questions.
        attempts: Answers to each question.
        seed: Seed of the answers.
    """
    groups = run_rollouts(policy.actor(derive_key(seed, "clips")), env, tasks, attempts)
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    terms = [rollout.reward_terms for rollout in rollouts]
    return {
        "inconsistent": fmean(x["consistent/contradicts"] for x in terms),
        "accuracy": fmean(x["accuracy"] for x in terms),
        "sound": fmean(x["accuracy"] * x["consistent"] for x in terms),
        "length": fmean(rollout.length for rollout in rollouts),
    }
