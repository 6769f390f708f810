"""Several policies trained together: each acts in its own role, and learns from that alone."""

import asyncio
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM

from grupo.algo.losses import KL, Clip
from grupo.config.validate import check_recipe
from grupo.core.errors import ConfigError
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.types import Group, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.models.aux_models import AuxModel
from grupo.models.causal_lm import CausalLM
from grupo.models.loading import Lora
from grupo.models.multi_policy_spec import MultiPolicy, RolePolicy
from grupo.recipe import Recipe
from grupo.rewards import ExactMatch
from grupo.rollouts.samplers import GroupSampler, WithSelfHint
from grupo.tasks import FromFunction
from grupo.training.collate import collate
from grupo.training.update import accumulate_gradients, add_signals
from tests.helpers import tiny_lm

HINTER = Rollout(role="hinter")
ASKED = "What is 2+2?"


@pytest.fixture
def spec(folders) -> MultiPolicy:
    """Two of different families."""
    first, other = (CausalLM(folders[name], max_new_tokens=8) for name in ("llama", "gpt2"))
    return MultiPolicy(first, (RolePolicy("hinter", other),))


def spoken(policy, count=3, key=7):
    """As many rollouts of each role, a first and a hinter's in turn, all asked together."""

    async def everyone():
        act = policy.actor(key)
        starts = [Rollout() if i % 2 else HINTER for i in range(2 * count)]
        said = (act.fork(i)(start, ASKED) for i, start in enumerate(starts))
        return [
            s.append_turn(ASKED, a)
            for s, a in zip(starts, await asyncio.gather(*said), strict=True)
        ]

    return asyncio.run(everyone())


def batch_of(policy, rollouts, reward=None):
    named = (
        [replace(r, reward=float(i)) for i, r in enumerate(rollouts)]
        if not reward
        else [replace(r, reward=x) for r, x in zip(rollouts, reward, strict=True)]
    )
    batch = collate([Group(Task("0", ""), tuple(named))], policy.encode)
    return replace(batch, inputs={**batch.inputs, "row": torch.arange(len(batch.mask))})


def gradients(policy):
    """By role, the norm of the gradient."""
    found = {}
    for role, own in policy.by_role.items():
        some = [p.grad for p in own.parameters() if p.grad is not None]
        found[role] = sum(float(grad.norm()) for grad in some)
    return found


def test_in_each_rollout_its_own_policy_acts_and_knows_it_again(spec):
    policy = spec.build()
    rollouts = spoken(policy)
    batch = batch_of(policy, rollouts)
    again = policy.signals(batch, ["logp", "entropy"])
    torch.testing.assert_close(
        again.logp[batch.mask], batch.old_logp[batch.mask], atol=2e-5, rtol=0
    )
    for role, mine in (("", rollouts[1::2]), ("hinter", rollouts[::2])):
        own = policy.by_role[role]
        alone = tiny_lm.batch_of(own, mine)
        width = alone.mask.shape[1]
        rows = torch.tensor([i for i, r in enumerate(rollouts) if r.role == role])
        theirs = own.signals(alone, ["entropy"]).entropy
        assert torch.equal(again.entropy[rows][:, :width], theirs)
        other = policy.by_role["hinter" if role == "" else ""]
        assert not torch.allclose(other.signals(alone, ["entropy"]).entropy, theirs)


def test_the_first_says_what_it_says_alone_and_has_every_role_that_is_nobodys(spec):
    def said(policy, start):
        return asyncio.run(policy.actor(7).fork(0)(start, ASKED))

    both, alone = spec.build(), spec.main_policy.build()
    for start in (Rollout(), Rollout(role="judge")):
        assert said(both, start) == said(alone, start)
    assert said(both, HINTER) != said(alone, HINTER)


def test_each_learns_from_its_own_rows_alone(spec):
    policy, method = spec.build(), Method(loss=Clip())
    rollouts = spoken(policy)
    for taught, others in (("", "hinter"), ("hinter", "")):
        worth = [float(i) if r.role == taught else 0.0 for i, r in enumerate(rollouts, 1)]
        accumulate_gradients(policy, method, batch_of(policy, rollouts, worth))
        norms = gradients(policy)
        assert norms[taught] > 0
        assert norms[others] == 0
        for p in policy.parameters():
            p.grad = None


def test_the_gradient_of_each_is_the_one_it_has_alone(spec):
    policy, method = spec.build(), Method(loss=Clip())
    rollouts = spoken(policy)
    accumulate_gradients(policy, method, batch_of(policy, rollouts))
    for role in policy.roles:
        own = policy.by_role[role]
        together = {n: p.grad.clone() for n, p in own.module.named_parameters()}
        for p in own.parameters():
            p.grad = None
        mine = [replace(r, reward=float(i)) for i, r in enumerate(rollouts) if r.role == role]
        accumulate_gradients(own, method, tiny_lm.batch_of(own, mine))
        for name, p in own.module.named_parameters():
            # each weighs 1 / 6 of six rows, alone 1 / 3 of three
            torch.testing.assert_close(together[name], p.grad / 2, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("budget", [20, 1 << 20])
def test_rows_that_are_worked_on_together_are_of_one_policy(spec, budget):
    policy = spec.build()
    batch = batch_of(policy, spoken(policy))
    policy.tokens_per_microbatch = budget
    parts = list(policy.micro(batch))
    assert sorted(torch.cat(parts).tolist()) == list(range(6))
    assert all(len(batch.inputs["policy_index"][rows].unique()) == 1 for rows in parts)
    assert (len(parts) > 2) == (budget == 20)


def test_a_batch_that_takes_rows_keeps_whose_they_are(spec):
    policy = spec.build()
    batch = batch_of(policy, spoken(policy))
    whole = policy.signals(batch).logp
    for rows in (torch.tensor([5, 0, 2]), torch.tensor([4]), torch.tensor([3, 1])):
        some = policy.signals(batch.select_rows(rows)).logp
        torch.testing.assert_close(some, whole[rows], atol=2e-5, rtol=0)


def louder(group, rollout):
    return None if rollout.role else ASKED.upper()


@pytest.mark.parametrize("lora", [None, Lora(4)], ids=["full", "adapters"])
def test_each_is_compared_with_itself_as_it_was_and_in_other_views(spec, lora):
    policy = replace(spec, main_policy=replace(spec.main_policy, lora=lora)).build()
    needs = {"logp@ref", "logp@loud"}
    company = policy.attach_aux_models(
        needs, ReferenceUpdate(0.5, 1), [AuxModel("loud", "policy", louder)]
    )
    rollouts = spoken(policy)
    groups = [Group(Task("0", ASKED), tuple(rollouts))]
    batch = batch_of(policy, rollouts)
    views = company.encode_reprompted(policy, groups)
    batch = replace(batch, inputs={**batch.inputs, **views})
    with torch.no_grad():
        before = add_signals(policy, company.scorers, batch, needs).signals
        for p in policy.parameters():
            p.add_(0.05 * torch.ones_like(p))
        moved = add_signals(policy, company.scorers, batch, {"logp@ref"}).signals["logp@ref"]
        torch.testing.assert_close(moved, before["logp@ref"])
        company.after(1, policy)
        follows = add_signals(policy, company.scorers, batch, {"logp@ref"}).signals["logp@ref"]
    theirs = batch.inputs["policy_index"] == 1
    torch.testing.assert_close(before["logp@ref"], batch.old_logp, atol=2e-5, rtol=0)
    loud = before["logp@loud"] - batch.old_logp
    assert loud[theirs].abs().max() < 2e-5  # a hinter reads what it read
    assert loud[~theirs].abs().max() > 0.01
    for rows in (theirs, ~theirs):
        assert not torch.allclose(follows[rows], moved[rows])


def test_weights_go_out_and_back_and_each_into_a_folder_of_its_own(spec, tmp_path):
    policy, other = spec.build(), spec.build()
    with torch.no_grad():
        for p in policy.parameters():
            p.add_(0.1 * torch.randn_like(p))
    names = set(policy.weights())
    assert {name.partition("/")[0] for name in names if "/" in name} == {"hinter"}
    assert len(names) == len(policy.parameters())
    other.load(policy.weights())
    assert spoken(other) == spoken(policy)
    policy.export(tmp_path)
    for role, folder in (("", tmp_path), ("hinter", tmp_path / "hinter")):
        model = AutoModelForCausalLM.from_pretrained(folder)
        ours = policy.by_role[role].weights()
        assert type(model).__name__ == type(policy.by_role[role].plain).__name__
        assert all(torch.equal(p, ours[name]) for name, p in model.named_parameters())


def test_one_budget_is_halved_for_all(spec):
    hinter = replace(spec.roles[0].policy, tokens_per_microbatch=64)
    policy = replace(spec, roles=(RolePolicy("hinter", hinter),)).build()
    assert policy.tokens_per_microbatch == 64
    list(policy.micro(batch_of(policy, spoken(policy))))
    assert "32 tokens" in policy.halve_microbatch()
    assert [own.budget for own in policy.all] == [32, 32]


def tasks():
    yield from (Task(str(i), ASKED, "4") for i in range(8))


def recipe(policy, sample) -> Recipe:
    return Recipe(
        policy=policy,
        env=SingleTurn((RewardTerm("right", ExactMatch()),)),
        tasks=FromFunction(tasks),
        eval_tasks=0,
        method=Method(sampler=sample, loss=Clip() + 0.1 * KL()),
    )


def misspelled(spec, name):
    return replace(spec, roles=(RolePolicy(name, spec.roles[0].policy),))


def test_a_role_that_nobody_gives_is_refused_before_anything_is_loaded(spec):
    check_recipe(recipe(spec, WithSelfHint(GroupSampler(2))))
    message = (
        r"policy.roles\[0\].name: 'hintr' is no role of the method."
        r" Did you mean 'hinter'\? Allowed: hinter."
    )
    with pytest.raises(ConfigError, match=message):
        check_recipe(recipe(misspelled(spec, "hintr"), WithSelfHint(GroupSampler(2))))
    with pytest.raises(
        ConfigError, match=r"'hinter' is no role of the method\. There is nothing to"
    ):
        check_recipe(recipe(spec, GroupSampler(2)))


@pytest.mark.parametrize("names", [("",), ("a/b",), ("hinter", "hinter")])
def test_roles_that_cannot_be_told_apart_are_refused(spec, names):
    roles = tuple(RolePolicy(name, spec.main_policy) for name in names)
    with pytest.raises(
        ConfigError, match=r"policy.roles\[\d\].name: .*Allowed: a name that no other"
    ):
        replace(spec, roles=roles).check()
