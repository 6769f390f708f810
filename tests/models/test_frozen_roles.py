"""Frozen policies of several: no gradient, no optimizer state, and no rollouts in groups."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from grupo.algo.losses import KL, Clip
from grupo.config.validate import check_recipe
from grupo.core.aux_heads import LinearHead
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.types import Group, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.models.aux_heads import head_parameters
from grupo.models.causal_lm import CausalLM
from grupo.models.lora import Lora
from grupo.models.multi_policy_spec import MultiPolicy, RolePolicy
from grupo.recipe import Recipe
from grupo.rewards import FunctionReward
from grupo.rollouts.samplers import (
    GroupSampler,
    ReviewPairs,
    SelfPlay,
    TeacherFeedback,
    with_self_hints,
)
from grupo.tasks import InMemoryTasks
from grupo.training.learner import Learner
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine

TASKS = [Task(str(i), f"What is {i} + 2?", "4") for i in range(4)]
REVIEWS = ReviewPairs(4, "[{answer}", "[{review}")


@pytest.fixture
def spec(folders) -> MultiPolicy:
    """A frozen main policy and a trained reviewer, of different families."""
    main_policy, reviewer = (CausalLM(folders[n], max_new_tokens=4) for n in ("llama", "gpt2"))
    return MultiPolicy(main_policy, (RolePolicy("reviewer", reviewer),), main_trained=False)


def with_roles(spec: MultiPolicy, *names: str, trained: bool = False) -> MultiPolicy:
    """The same policies with a trained main policy and other roles."""
    policy = spec.roles[0].policy
    roles = tuple(RolePolicy(name, policy, trained) for name in names)
    return replace(spec, roles=roles, main_trained=True)


def varied(task, rollout) -> float:
    """A reward of seven values, so that no group has equal rewards."""
    return sum(map(ord, rollout.text)) % 7 / 6


def recipe(policy, sampler=REVIEWS) -> Recipe:
    return Recipe(
        policy=policy,
        env=SingleTurn((RewardTerm("varied", FunctionReward(varied)),)),
        tasks=InMemoryTasks(TASKS),
        eval_tasks=0,
        method=Method(sampler=sampler, loss=Clip() + 0.1 * KL()),
        max_steps=2,
        prompts_per_step=2,
        learning_rate=1e-2,
    )


def test_only_the_trained_policy_changes_and_has_optimizer_state(spec):
    learner = Learner(recipe(spec))
    policy: Any = learner.policy
    before = {
        role: {name: x.clone() for name, x in own.module.state_dict().items()}
        for role, own in policy.by_role.items()
    }
    for _ in range(2):
        learner.step()
    after = {role: own.module.state_dict() for role, own in policy.by_role.items()}
    assert all(torch.equal(after[""][name], x) for name, x in before[""].items())
    assert any(not torch.equal(after["reviewer"][n], x) for n, x in before["reviewer"].items())
    trained = list(policy.by_role["reviewer"].parameters())
    (optimizer,) = learner.state.optimizers.values()
    held = [p for group in optimizer.param_groups for p in group["params"]]
    assert {id(p) for p in held} == {id(p) for p in policy.parameters()} == {*map(id, trained)}
    assert all(p.grad is None for p in policy.by_role[""].module.parameters())


def test_checkpoints_hold_the_trained_policies_alone(spec):
    policy = spec.build()
    assert {name.partition("/")[0] for name in policy.weights()} == {"reviewer"}


def test_a_frozen_policy_generates_as_a_trained_one(spec):
    def answers(policy):
        async def both():
            actor = policy.actor(7)
            roles = (Rollout(), Rollout(role="reviewer"))
            return [(await actor.fork(0)(start, TASKS[0].prompt)).items for start in roles]

        return run_coroutine(both())

    assert answers(spec.build()) == answers(replace(spec, main_trained=True).build())


def test_a_frozen_policy_has_neither_a_reference_nor_heads(spec):
    policy = spec.build()
    loaded = policy.attach_aux_models({"logp@ref"}, ReferenceUpdate(0.5, 1), ())
    assert loaded.signal_models["ref"].signal_models.keys() == {"reviewer"}
    assert {name.partition("/")[0] for name in loaded.reference_weights} == {"reviewer"}
    heads = policy.attach_heads((LinearHead("value"),))
    alone = policy.by_role["reviewer"].attach_heads((LinearHead("value"),))
    assert len(head_parameters(heads)) == len(head_parameters(alone)) > 0


def test_rollouts_of_a_frozen_policy_are_never_trained(spec):
    group = Group(TASKS[0], (Rollout(),))
    with pytest.raises(ConfigError, match=r"of the main policy, which is frozen\. Allowed: roll"):
        spec.build().encode(group.rollouts)
    frozen = with_roles(spec, "reviewer").build()
    with pytest.raises(ConfigError, match=r"of the policy of the role 'reviewer', which is frozen"):
        frozen.encode([Rollout(role="reviewer")])


def test_a_run_without_a_trained_policy_is_refused(spec):
    frozen = replace(spec.roles[0], trained=False)
    message = r"policy.main_trained: False, and no policy of policy.roles is trained\. Allowed: at"
    for roles in ((frozen,), ()):
        with pytest.raises(ConfigError, match=message):
            replace(spec, roles=roles).check()


def test_new_adapters_of_a_frozen_policy_are_refused(spec):
    adapted = replace(spec, main_policy=replace(spec.main_policy, lora=Lora(4)))
    with pytest.raises(
        ConfigError, match=r"policy.main_policy.lora: Lora\(rank=4.*Allowed with a fro"
    ):
        adapted.check()
    frozen = RolePolicy("reviewer", adapted.main_policy, trained=False)
    with pytest.raises(ConfigError, match=r"policy.roles\[0\].policy.lora: Lora\(rank=4"):
        replace(spec, roles=(frozen,), main_trained=True).check()


@pytest.mark.parametrize(
    ("sampler", "role"),
    [
        (TeacherFeedback(2), "teacher"),
        (with_self_hints(GroupSampler(2)), "hinter"),
        (SelfPlay(2, roles=("", "rival")), "rival"),
    ],
)
def test_a_frozen_main_policy_whose_rollouts_are_in_groups_is_refused(spec, sampler, role):
    policy = replace(with_roles(spec, role, trained=True), main_trained=False)
    with pytest.raises(ConfigError, match=r"policy.main_trained: False, and the groups of method"):
        check_recipe(recipe(policy, sampler))


@pytest.mark.parametrize(
    ("sampler", "role", "is_trained"),
    [
        (REVIEWS, "reviewer", True),
        (with_self_hints(GroupSampler(2)), "hinter", True),
        (SelfPlay(2, roles=("", "rival")), "rival", True),
        (SelfPlay(2, roles=("", "rival"), frozen=("rival",)), "rival", False),
        (TeacherFeedback(2), "teacher", False),
    ],
)
def test_a_role_may_be_frozen_if_its_rollouts_are_in_no_group(spec, sampler, role, is_trained):
    frozen = recipe(with_roles(spec, role), sampler)
    if not is_trained:
        check_recipe(frozen)
        return
    with pytest.raises(ConfigError, match=r"policy.roles\[0\].trained: False, and the groups of"):
        check_recipe(frozen)
    check_recipe(recipe(with_roles(spec, role, trained=True), sampler))


def test_a_role_without_a_policy_of_its_own_belongs_to_the_main_policy(spec):
    both = SelfPlay(2, players=3, roles=("", "rival", "friend"), frozen=("",))
    policy = replace(with_roles(spec, "rival", trained=True), main_trained=False)
    with pytest.raises(
        ConfigError, match=r"of this policy \(role='friend'\), which the loss would"
    ):
        check_recipe(recipe(policy, both))
