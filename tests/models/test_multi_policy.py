"""Several policies trained together: each acts in its role and learns from its rollouts."""

import asyncio
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM

from grupo.algo.losses import KL, Clip
from grupo.config.validate import check_recipe
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.types import Group, Rollout, Task
from grupo.envs import MultiplayerEnv, RewardTerm, SingleTurn, StepResult
from grupo.method import Method
from grupo.models.base import AuxModel
from grupo.models.causal_lm import CausalLM
from grupo.models.lora import Lora
from grupo.models.multi_policy_spec import MultiPolicy, RolePolicy
from grupo.recipe import Recipe
from grupo.rewards import ExactMatch
from grupo.rollouts.samplers import GroupSampler, SelfPlay, with_self_hints
from grupo.rollouts.turns import FreshContext
from grupo.tasks import FromFunction
from grupo.training.update.collate import collate
from grupo.training.update.gradients import accumulate_gradients
from grupo.training.update.signals import add_signals
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers import tiny_lm

HINTER = Rollout(role="hinter")
QUESTION = "What is 2+2?"


@pytest.fixture
def spec(folders) -> MultiPolicy:
    """Two policies of different families."""
    main_policy, hinter = (CausalLM(folders[name], max_new_tokens=8) for name in ("llama", "gpt2"))
    return MultiPolicy(main_policy, (RolePolicy("hinter", hinter),))


def generate(policy, count=3, key=7):
    """`count` rollouts of the hinter and of the main policy, alternating, in one batch."""

    async def generate_all():
        actor = policy.actor(key)
        starts = [Rollout() if i % 2 else HINTER for i in range(2 * count)]
        pending = (actor.fork(i)(start, QUESTION) for i, start in enumerate(starts))
        actions = await asyncio.gather(*pending)
        return [s.append_turn(QUESTION, a) for s, a in zip(starts, actions, strict=True)]

    return run_coroutine(generate_all())


def batch_of(policy, rollouts, rewards=None):
    rewards = rewards or [float(i) for i in range(len(rollouts))]
    scored = [replace(r, reward=x) for r, x in zip(rollouts, rewards, strict=True)]
    batch = collate([Group(Task("0", ""), tuple(scored))], policy.encode)
    return replace(batch, inputs={**batch.inputs, "row": torch.arange(len(batch.mask))})


def gradient_norms(policy):
    """Sum of the gradient norms of each policy, by role."""
    norms = {}
    for role, own in policy.by_role.items():
        grads = [p.grad for p in own.parameters() if p.grad is not None]
        norms[role] = sum(float(grad.norm()) for grad in grads)
    return norms


def test_policy_of_a_rollouts_role_generates_and_evaluates_it(spec):
    policy = spec.build()
    rollouts = generate(policy)
    batch = batch_of(policy, rollouts)
    signals = policy.signals(batch, ["logp", "entropy"])
    torch.testing.assert_close(
        signals.logp[batch.mask], batch.old_logp[batch.mask], atol=2e-5, rtol=0
    )
    for role, own_rollouts in (("", rollouts[1::2]), ("hinter", rollouts[::2])):
        own = policy.by_role[role]
        alone = tiny_lm.batch_of(own, own_rollouts)
        width = alone.mask.shape[1]
        rows = torch.tensor([i for i, r in enumerate(rollouts) if r.role == role])
        expected = own.signals(alone, ["entropy"]).entropy
        assert torch.equal(signals.entropy[rows][:, :width], expected)
        other = policy.by_role["hinter" if role == "" else ""]
        assert not torch.allclose(other.signals(alone, ["entropy"]).entropy, expected)


def test_main_policy_generates_as_alone_and_has_every_other_role(spec):
    def answer(policy, start):
        return run_coroutine(policy.actor(7).fork(0)(start, QUESTION))

    both, alone = spec.build(), spec.main_policy.build()
    for start in (Rollout(), Rollout(role="judge")):
        assert answer(both, start) == answer(alone, start)
    assert answer(both, HINTER) != answer(alone, HINTER)


def test_each_policy_learns_from_its_rows_only(spec):
    policy, method = spec.build(), Method(loss=Clip())
    rollouts = generate(policy)
    for trained, other in (("", "hinter"), ("hinter", "")):
        rewards = [float(i) if r.role == trained else 0.0 for i, r in enumerate(rollouts, 1)]
        accumulate_gradients(policy, method, batch_of(policy, rollouts, rewards))
        norms = gradient_norms(policy)
        assert norms[trained] > 0
        assert norms[other] == 0
        for p in policy.parameters():
            p.grad = None


class Alternating:
    """A game of four moves for two players in turn."""

    def reset(self, task):
        self.moves = 0
        return StepResult("0")

    def step(self, text):
        self.moves += 1
        done = self.moves == 4
        return StepResult(str(self.moves), done=done, next_player=self.moves % 2)


def test_a_frozen_role_plays_its_seat_and_gets_no_gradient(spec):
    policy = spec.build()
    actor = policy.actor(3)
    roles = {"roles": ("", "hinter"), "frozen": ("hinter",)}
    sampler = SelfPlay(2, turn_strategy=FreshContext(), **roles)
    group = run_coroutine(sampler(Task("t", ""), MultiplayerEnv(Alternating).open(), actor))
    assert [rollout.role for rollout in group.rollouts] == ["", ""]
    assert [len(rollout.contexts) for rollout in group.rollouts] == [2, 2]
    assert actor.generated_tokens["hinter"] > 0
    rollouts = [context for rollout in group.rollouts for context in rollout.contexts]
    accumulate_gradients(policy, Method(loss=Clip()), batch_of(policy, rollouts))
    norms = gradient_norms(policy)
    assert norms[""] > 0
    assert norms["hinter"] == 0


def test_gradient_of_each_policy_is_the_one_it_has_alone(spec):
    policy, method = spec.build(), Method(loss=Clip())
    rollouts = generate(policy)
    accumulate_gradients(policy, method, batch_of(policy, rollouts))
    for role in policy.roles:
        own = policy.by_role[role]
        together = {n: p.grad.clone() for n, p in own.module.named_parameters()}
        for p in own.parameters():
            p.grad = None
        own_rollouts = [
            replace(r, reward=float(i)) for i, r in enumerate(rollouts) if r.role == role
        ]
        accumulate_gradients(own, method, tiny_lm.batch_of(own, own_rollouts))
        for name, p in own.module.named_parameters():
            # the weight of a row is 1 / 6 of six rows, alone 1 / 3 of three
            torch.testing.assert_close(together[name], p.grad / 2, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("max_tokens", [20, 1 << 20])
def test_microbatches_hold_rows_of_one_policy(spec, max_tokens):
    policy = spec.build()
    batch = batch_of(policy, generate(policy))
    policy.tokens_per_microbatch = max_tokens
    microbatches = list(policy.microbatches(batch))
    assert sorted(torch.cat(microbatches).tolist()) == list(range(6))
    assert all(len(batch.inputs["policy_index"][rows].unique()) == 1 for rows in microbatches)
    assert (len(microbatches) > 2) == (max_tokens == 20)


def test_selected_rows_keep_their_policy(spec):
    policy = spec.build()
    batch = batch_of(policy, generate(policy))
    whole = policy.signals(batch).logp
    for rows in (torch.tensor([5, 0, 2]), torch.tensor([4]), torch.tensor([3, 1])):
        logp = policy.signals(batch.select_rows(rows)).logp
        torch.testing.assert_close(logp, whole[rows], atol=2e-5, rtol=0)


def uppercase_prompt(group, rollout):
    return None if rollout.role else QUESTION.upper()


@pytest.mark.parametrize("lora", [None, Lora(4)], ids=["full", "adapters"])
def test_each_policy_has_its_reference_and_prompt_override(spec, lora):
    policy = replace(spec, main_policy=replace(spec.main_policy, lora=lora)).build()
    required = {"logp@ref", "logp@loud"}
    aux_models = policy.attach_aux_models(
        required, ReferenceUpdate(0.5, 1), [AuxModel("loud", "policy", uppercase_prompt)]
    )
    rollouts = generate(policy)
    groups = [Group(Task("0", QUESTION), tuple(rollouts))]
    batch = batch_of(policy, rollouts)
    reprompted = aux_models.encode_own_prompts(policy, groups)
    batch = replace(batch, inputs={**batch.inputs, **reprompted})
    with torch.no_grad():
        before = add_signals(policy, aux_models.signal_models, batch, required).signals
        for p in policy.parameters():
            p.add_(0.05 * torch.ones_like(p))
        kept = add_signals(policy, aux_models.signal_models, batch, {"logp@ref"}).signals[
            "logp@ref"
        ]
        torch.testing.assert_close(kept, before["logp@ref"])
        aux_models.update_reference(1, policy)
        updated = add_signals(policy, aux_models.signal_models, batch, {"logp@ref"}).signals[
            "logp@ref"
        ]
    is_hinter = batch.inputs["policy_index"] == 1
    torch.testing.assert_close(before["logp@ref"], batch.old_logp, atol=2e-5, rtol=0)
    loud = before["logp@loud"] - batch.old_logp
    assert loud[is_hinter].abs().max() < 2e-5  # the hinter keeps its prompt
    assert loud[~is_hinter].abs().max() > 0.01
    for rows in (is_hinter, ~is_hinter):
        assert not torch.allclose(updated[rows], kept[rows])


def test_weights_are_loaded_and_exported_by_role(spec, tmp_path):
    policy, other = spec.build(), spec.build()
    with torch.no_grad():
        for p in policy.parameters():
            p.add_(0.1 * torch.randn_like(p))
    names = set(policy.weights())
    assert {name.partition("/")[0] for name in names if "/" in name} == {"hinter"}
    assert len(names) == len(policy.parameters())
    other.load(policy.weights())
    assert generate(other) == generate(policy)
    policy.export(tmp_path)
    for role, folder in (("", tmp_path), ("hinter", tmp_path / "hinter")):
        model = AutoModelForCausalLM.from_pretrained(folder)
        weights = policy.by_role[role].weights()
        assert type(model).__name__ == type(policy.by_role[role].hf_model).__name__
        assert all(torch.equal(p, weights[name]) for name, p in model.named_parameters())


def test_halving_applies_to_all_policies(spec):
    hinter = replace(spec.roles[0].policy, tokens_per_microbatch=64)
    policy = replace(spec, roles=(RolePolicy("hinter", hinter),)).build()
    assert policy.tokens_per_microbatch == 64
    list(policy.microbatches(batch_of(policy, generate(policy))))
    assert "32 tokens" in policy.halve_microbatch()
    assert [own.tokens_per_microbatch for own in policy.policies] == [32, 32]


def tasks():
    yield from (Task(str(i), QUESTION, "4") for i in range(8))


def recipe(policy, sampler) -> Recipe:
    return Recipe(
        policy=policy,
        env=SingleTurn((RewardTerm("right", ExactMatch()),)),
        tasks=FromFunction(tasks),
        eval_tasks=0,
        method=Method(sampler=sampler, loss=Clip() + 0.1 * KL()),
    )


def with_role_name(spec, name):
    return replace(spec, roles=(RolePolicy(name, spec.roles[0].policy),))


def test_role_unknown_to_the_method_raises_before_loading(spec):
    check_recipe(recipe(spec, with_self_hints(GroupSampler(2))))
    message = (
        r"policy.roles\[0\].name: 'hintr' is no role of the method."
        r" Did you mean 'hinter'\? Allowed: hinter."
    )
    with pytest.raises(ConfigError, match=message):
        check_recipe(recipe(with_role_name(spec, "hintr"), with_self_hints(GroupSampler(2))))
    with pytest.raises(
        ConfigError, match=r"'hinter' is no role of the method\. There is nothing to"
    ):
        check_recipe(recipe(spec, GroupSampler(2)))


@pytest.mark.parametrize("names", [("",), ("a/b",), ("hinter", "hinter")])
def test_invalid_role_names_raise_config_errors(spec, names):
    roles = tuple(RolePolicy(name, spec.main_policy) for name in names)
    with pytest.raises(
        ConfigError, match=r"policy.roles\[\d\].name: .*Allowed: a name that no other"
    ):
        replace(spec, roles=roles).check()
