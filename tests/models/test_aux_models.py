"""References, teachers, other contexts, helpers: whom a policy is held against."""

import asyncio
from dataclasses import replace
from functools import partial
from math import log

import pytest
import torch

from grupo.core.aux_heads import LearnedScalar, LinearHead
from grupo.core.batch import Batch
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.types import Action, Group, Rollout, Task
from grupo.inference.sampling_params import Sampling
from grupo.models.aux_models import AuxModel
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.loading import Lora
from grupo.models.token_statistics import token_signals
from grupo.training.collate import collate
from grupo.training.update import add_signals
from tests.helpers.tiny_lm import PROMPTS, answers, built, dense, plant, spoken

FULL = ("reverse_kl@teacher", "forward_kl@teacher", "jsd@teacher")


@pytest.fixture(scope="module")
def teacher(tmp_path_factory) -> CausalLM:
    """Another model of the same vocabulary."""
    return CausalLM(str(plant(tmp_path_factory.mktemp("teacher"), "qwen3")), max_new_tokens=16)


def logits(policy: CausalPolicy, batch: Batch) -> torch.Tensor:
    """Log-probabilities of everything at every action, by the model's own forward, (N, T, V)."""
    token, start = batch.inputs["token"], batch.inputs["start"]
    with dense(policy) as plain:
        said = plain(token).logits.log_softmax(-1)
    place = (start[:, None] - 1 + torch.arange(batch.mask.shape[1])).clamp(max=token.shape[1] - 1)
    return torch.stack([said[row, where] for row, where in enumerate(place)])


def test_comparisons_are_those_of_whole_distributions(llama, teacher):
    policy = llama.build()
    batch = answers(policy)
    made = policy.attach_aux_models(FULL, ReferenceUpdate(), [AuxModel("teacher", teacher)])
    said = policy.signals(batch, FULL)
    p, q = logits(policy, batch), logits(made.scorers["teacher"], batch)
    middle = ((p.exp() + q.exp()) / 2).log()
    wanted = {
        "reverse_kl@teacher": (p.exp() * (p - q)).sum(-1),
        "forward_kl@teacher": (q.exp() * (q - p)).sum(-1),
        "jsd@teacher": ((p.exp() * (p - middle)).sum(-1) + (q.exp() * (q - middle)).sum(-1)) / 2,
    }
    for name, value in wanted.items():
        torch.testing.assert_close(said[name][batch.mask], value[batch.mask], rtol=1e-4, atol=1e-5)
        assert (said[name][~batch.mask] == 0).all()


def test_the_gradient_of_a_comparison_is_the_policy_s_alone(llama, teacher):
    policy = llama.build()
    made = policy.attach_aux_models(FULL, ReferenceUpdate(), [AuxModel("teacher", teacher)])
    policy.signals(answers(policy), FULL)["jsd@teacher"].sum().backward()
    assert all(p.grad is not None for p in policy.parameters())
    assert all(p.grad is None for p in made.scorers["teacher"].module.parameters())


def test_a_policy_compared_with_itself_differs_by_nothing(llama):
    policy = llama.build()
    names = ("reverse_kl@ref", "forward_kl@ref", "jsd@ref")
    policy.attach_aux_models(names, ReferenceUpdate(), [])
    said = policy.signals(answers(policy), names)
    assert all(said[name].abs().max() < 1e-6 for name in names)


def test_the_policy_at_another_temperature_is_what_it_would_draw_from(llama):
    policy = llama.build()
    batch = answers(policy)
    made = policy.attach_aux_models(["logp@t=1.3"], ReferenceUpdate(), [])
    hot = built(replace(llama, sampling=Sampling(temperature=1.3)))
    with torch.no_grad():  # else what was sampled is not read again, and rounded otherwise
        both = made.scorers["t=1.3"].signals(batch).logp, hot.signals(batch).logp
    torch.testing.assert_close(*both, rtol=0, atol=1e-6)


def hint(group: Group, rollout: Rollout) -> str | None:
    return f"Hint! {group.task.prompt}" if group.task.key == "1" else None


def test_a_view_reads_something_else_before_the_same_actions(llama):
    policy = llama.build()
    said = spoken(policy)
    groups = [
        Group(Task(str(i), prompt), tuple(Rollout(((prompt, a),), reward=0.0) for a in actions))
        for i, (prompt, actions) in enumerate(zip(PROMPTS, said, strict=True))
    ]
    batch = collate(groups, policy.encode)
    made = policy.attach_aux_models(
        ["logp@hinted"], ReferenceUpdate(), [AuxModel("hinted", prompt_override=hint)]
    )
    batch = replace(batch, inputs={**batch.inputs, **made.encode_reprompted(policy, groups)})
    viewed = made.scorers["hinted"].signals(batch).logp
    own = policy.signals(batch).logp
    hinted = [
        Rollout((("", Action(a.items, a.logp, policy.read(Rollout(), f"Hint! {PROMPTS[1]}"))),))
        for a in said[1]
    ]
    wanted = policy.signals(collate([Group(Task("1", ""), tuple(hinted))], policy.encode)).logp
    here = batch.row_group == 1
    width = wanted.shape[1]
    torch.testing.assert_close(viewed[here][:, :width], wanted, rtol=0, atol=1e-5)
    torch.testing.assert_close(viewed[~here], own[~here], rtol=0, atol=1e-5)
    assert (viewed[here] - own[here]).abs().max() > 0.01
    rows = torch.tensor([5, 3])
    torch.testing.assert_close(
        made.scorers["hinted"].signals(batch.select_rows(rows)).logp,
        viewed[rows],
        rtol=0,
        atol=2e-5,
    )


def moved(policy: CausalPolicy) -> None:
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(torch.linspace(-0.1, 0.1, parameter.numel()).view_as(parameter))


@pytest.mark.parametrize("lora", [None, Lora(2, 4.0)], ids=["full", "lora"])
def test_a_reference_follows_by_its_rate_when_it_is_time_to(llama, lora):
    policy = replace(llama, lora=lora).build()
    batch = answers(policy)
    made = policy.attach_aux_models(["logp@ref"], ReferenceUpdate(rate=0.25, every=2), [])
    start = {name: x.clone() for name, x in policy.weights().items()}
    before = policy.signals(batch).logp
    moved(policy)
    made.after(1, policy)
    torch.testing.assert_close(made.scorers["ref"].signals(batch).logp, before)
    made.after(2, policy)
    for name, x in policy.weights().items():
        torch.testing.assert_close(made.following[name], start[name] + 0.25 * (x - start[name]))
    now = {name: x.clone() for name, x in policy.weights().items()}
    policy.load(made.following)
    wanted = policy.signals(batch).logp
    policy.load(now)
    torch.testing.assert_close(made.scorers["ref"].signals(batch).logp, wanted)
    assert (wanted - before).abs().max() > 1e-4
    assert all(torch.equal(x, now[name]) for name, x in policy.weights().items())


@pytest.mark.parametrize("lora", [None, Lora(2, 4.0)], ids=["full", "lora"])
def test_a_reference_that_does_not_follow_stays(llama, lora):
    policy = replace(llama, lora=lora).build()
    batch = answers(policy)
    made = policy.attach_aux_models(["logp@ref"], ReferenceUpdate(), [])
    before = policy.signals(batch).logp
    moved(policy)
    made.after(1, policy)
    torch.testing.assert_close(made.scorers["ref"].signals(batch).logp, before)


def test_helpers_say_where_they_start_and_learn_alone(llama):
    policy = llama.build()
    batch = answers(policy)
    helpers = policy.attach_heads([LinearHead("value", 0.5), LearnedScalar("lambda", 2.0)])
    said = policy.signals(batch, ["value", "lambda"])
    assert (said["value"][batch.mask] == 0.5).all()
    assert (said["lambda"][batch.mask] == 2.0).all()
    ((said["value"] - 1) ** 2 + said["lambda"]).sum().backward()
    assert all(p.grad is None for p in policy.parameters())
    assert {name for name, p in helpers.named_parameters() if p.grad is not None} == {
        "heads.value.weight",
        "heads.value.bias",
        "scalars.lambda",
    }


def test_an_answer_may_be_drawn_otherwise_beside_the_others(llama):
    policy = llama.build()

    async def both() -> list[Action]:
        act = policy.actor(3)
        forks = [act.fork(i) for i in range(3)]
        acts = [forks[0], forks[1].at(top_k=1), forks[2].at(temperature_factor=0.01), forks[0].at()]
        return await asyncio.gather(*(a(Rollout(), "Hi") for a in acts))

    plain, greedy, cold, again = asyncio.run(both())
    assert set(greedy.logp) == {0.0}  # it could have said nothing else
    assert greedy.items == cold.items
    assert plain.items == again.items != greedy.items


def test_disagreement_is_the_spread_of_a_group_s_distributions_place_by_place(llama):
    policy = llama.build()
    batch = answers(policy)
    rows = torch.tensor([0, 1, 2])
    group = batch.select_rows(rows)
    said = policy.signals(group, ["disagreement"])["disagreement"]
    logp = logits(policy, group).detach()
    uniform = torch.full_like(logp, -log(logp.shape[-1]))
    every = torch.where(group.mask[..., None], logp, uniform)
    off = (every.mean(0) - every).clamp(-11, 11)
    wanted = (off.exp() - off - 1).sum(-1).mean(0)
    for row in range(3):
        here = group.mask[row]
        torch.testing.assert_close(said[row][here], wanted[here], rtol=1e-4, atol=1e-4)
    assert (said[group.mask] > 0).any()


def test_what_only_a_group_can_say_does_not_depend_on_the_micro_batch(llama):
    policy = replace(llama, tokens_per_microbatch=1).build()
    batch = answers(policy)
    two = replace(batch, group=torch.arange(len(batch.reward)) % 2)
    seen = add_signals(policy, {}, two, ["disagreement"]).signals["disagreement"]
    for group in (0, 1):
        rows = (two.row_group == group).nonzero()[:, 0]
        alone = policy.signals(two.select_rows(rows), ["disagreement"])["disagreement"]
        torch.testing.assert_close(seen[rows], alone, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("chunk", [1 << 24, 1 << 9], ids=["whole", "in chunks"])
def test_a_policy_may_be_compared_with_its_own_adapters_of_before(llama, monkeypatch, chunk):
    monkeypatch.setattr(
        "grupo.models.causal_policy.measure", partial(token_signals, chunk_size=chunk)
    )
    policy = replace(llama, lora=Lora(2, 4.0)).build()
    twin = replace(llama, lora=Lora(2, 4.0)).build()
    twin.load(policy.weights())
    batch = answers(policy)
    policy.attach_aux_models(["reverse_kl@ref"], ReferenceUpdate(rate=0.5), [])
    twin.others = {"ref": twin.copy()}  # adapters that do nothing yet
    for one in (policy, twin):
        moved(one)
        one.signals(batch, ["reverse_kl@ref"])["reverse_kl@ref"].sum().backward()
    for mine, other in zip(policy.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-4, atol=1e-6)
    assert any(p.grad.abs().max() > 1e-4 for p in policy.parameters())
