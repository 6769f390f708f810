"""Whether a training step of a method differs from GRPO's, and in which part."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from grupo.algo.minibatches import SingleUpdate
from grupo.core.component import to_code
from grupo.core.paper import MATCHED_ENGINE, ONE_UPDATE, SAME_POLICY
from grupo.core.types import Group, Response, Rollout, Task
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.grpo_gradient import GRPO, TWO_UPDATES, grpo_counterpart, has_equal_gradients
from grupo.testing.smoke.echo_samplers import GROUP_SIZE
from grupo.testing.smoke.run import echo_recipe
from grupo.training.learner import Learner
from grupo.util.errors import suggest

STEPS = 3  # of the comparison of generated groups: a curriculum may act on earlier rewards
SHIFTS = (0, 1)  # 1: another digit than the policy's is correct, and whole groups are wrong
GROUP_REWARDS = (
    (0.0, 0.0, 0.0, 0.0),
    (1.0, 1.0, 1.0, 1.0),
    (0.0, 1.0, 0.0, 1.0),
    (0.0, 0.25, 0.5, 1.0),
    (-1.0, 1.0, 1.0, 1.0),
)


def gradient_differs_from_grpo(method: Method, equals_grpo_when: str = "") -> None:
    """A training step differs from GRPO's under the method's own update plan.

    GRPO has the same update plan, group size, KL divergence and mean over tokens. A method that
    declares `Paper.equals_grpo_when` has GRPO's gradient exactly under that condition instead.

    Args:
        method: The method to check.
        equals_grpo_when: The declared condition, a key of `CONDITIONS`; "" if there is none.

    Raises:
        AssertionError: No part of the method acts, or the declaration is false.
    """
    if equals_grpo_when:
        return _check_declaration(method, equals_grpo_when)
    plan = to_code(method.updates)
    assert next(acting_parts(method), None), (
        f"a step with {plan} is GRPO's: no part of the method acts. Set the update plan of the"
        " paper, or declare Paper.equals_grpo_when"
    )


def acting_parts(method: Method) -> Iterator[str]:
    """The parts in which a training step of the method differs from GRPO's."""
    return (name for name, acts in PARTS.items() if acts(method))


def gradient_acts(method: Method) -> bool:
    """True if the gradient of some update of a step differs from GRPO's."""
    return not has_equal_gradients(method, grpo_counterpart(method))


def filter_acts(method: Method) -> bool:
    """True if the filter changes some of a few groups with equal and with different rewards."""
    if method.filter == GRPO.filter:
        return False
    groups = _scored_groups(sorted(method.requires.reward_terms))
    return list(method.filter(groups)) != groups


def reference_acts(method: Method) -> bool:
    """True if the reference policy is updated and read."""
    return method.reference.rate > 0 and any(s.endswith("@ref") for s in method.requires.signals)


def generation_acts(method: Method) -> bool:
    """True if curriculum and sampler generate other rollouts, or of other tasks, than GRPO's."""
    plain = method.replace(sampler=GroupSampler(GROUP_SIZE), curriculum=GRPO.curriculum)
    own = echo_recipe(method, max_steps=STEPS).method
    if (own.sampler, own.curriculum) == (plain.sampler, plain.curriculum):
        return False
    return any(_generated(method, shift) != _generated(plain, shift) for shift in SHIFTS)


def replay_acts(method: Method) -> bool:
    """True if rollouts of earlier steps join the batch in the first steps of a run in Echo."""
    if method.replay == GRPO.replay:
        return False
    learners = [Learner(echo_recipe(method, max_steps=STEPS, shift=shift)) for shift in SHIFTS]
    return any(x.step().metrics["replay/drawn"] > 0 for x in learners for _ in range(STEPS))


PARTS: Mapping[str, Callable[[Method], bool]] = {
    "gradient": gradient_acts,
    "filter": filter_acts,
    "reference": reference_acts,
    "replay": replay_acts,
    "curriculum or sampler": generation_acts,
}


def _check_declaration(method: Method, condition: str) -> None:
    """Fail unless the gradient is GRPO's under the condition, and another one otherwise."""
    assert condition in CONDITIONS, (
        f"Paper.equals_grpo_when: {condition!r} cannot be checked. {suggest(condition, CONDITIONS)}"
    )
    problem = CONDITIONS[condition](method)
    assert not problem, (
        f"it is declared that the gradient equals GRPO's when {condition}; {problem}"
    )


def _when_one_update(method: Method, *, matched_engine: bool = False) -> str:
    single = method.replace(updates=SingleUpdate())
    several = method.replace(updates=TWO_UPDATES)
    if not _is_grpo(single, matched_engine):
        return "it differs with SingleUpdate()"
    if _is_grpo(several, matched_engine):
        return f"it is also GRPO's with {TWO_UPDATES!r}: the method never acts"
    return ""


def _when_one_update_and_matched_engine(method: Method) -> str:
    return _when_one_update(method, matched_engine=True)


def _when_same_policy(method: Method) -> str:
    several = method.replace(updates=TWO_UPDATES)
    differing = [m for m in (method, several) if not _is_grpo(m)]
    return "".join(f"it differs with {to_code(m.updates)}" for m in differing[:1])


def _is_grpo(method: Method, matched_engine: bool = False) -> bool:
    return has_equal_gradients(method, grpo_counterpart(method), matched_engine=matched_engine)


# the problem with a declaration, "" if it is true
CONDITIONS: Mapping[str, Callable[[Method], str]] = {
    ONE_UPDATE: _when_one_update,
    MATCHED_ENGINE: _when_one_update_and_matched_engine,
    SAME_POLICY: _when_same_policy,
}


def _scored_groups(terms: Sequence[str]) -> list[Group]:
    """Groups of rollouts of different lengths; every reward term is the reward."""
    return [
        Group(Task(f"t{i}", "?", replays=_rollouts((0.0, 1.0), terms)), _rollouts(rewards, terms))
        for i, rewards in enumerate(GROUP_REWARDS)
    ]


def _rollouts(rewards: Sequence[float], terms: Sequence[str]) -> tuple[Rollout, ...]:
    responses = [Response((1,) * n, (-0.5,) * n) for n in range(1, len(rewards) + 1)]
    rollouts = (Rollout((("?", response),)) for response in responses)
    return tuple(
        replace(rollout, reward=reward, reward_terms=dict.fromkeys(terms, reward))
        for rollout, reward in zip(rollouts, rewards, strict=True)
    )


def _generated(method: Method, shift: int) -> list[tuple]:
    """Tasks and turns of the groups that the first steps of a run in Echo generate."""
    learner = Learner(echo_recipe(method, max_steps=STEPS, shift=shift))
    groups = [group for _ in range(STEPS) for group in learner.step().collected.sampled_groups]
    return [(group.task.key, tuple(r.turns for r in group.rollouts)) for group in groups]
