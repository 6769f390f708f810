"""A flow model as a policy: what it draws it says again, whatever it draws beside."""

import asyncio
from dataclasses import replace

import pytest
import torch

from grupo.core.aux_heads import LearnedScalar, LinearHead
from grupo.core.batch import Batch
from grupo.core.errors import ConfigError
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.types import Group, Rollout, Task
from grupo.models import loading
from grupo.models.aux_models import AuxModel
from grupo.models.flow import Flow
from grupo.models.loading import Lora
from grupo.storage import tensor_text
from tests.helpers import tiny_flow


def latents(rollout):
    return torch.stack([tensor_text.decode_tensor(x) for _, a in rollout.turns for x in a.parts])


def moved(policy, by=0.01):
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(by * torch.randn_like(parameter))
    return policy


WAYS = [
    {},
    {"guidance": 3.0},
    {"window": (1, 2)},
    {"window": (0, 3)},
    {"noise": 0.2},
    {"lora": Lora(rank=2)},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_what_was_drawn_is_as_likely_as_when_it_was(flow, way):
    policy = replace(flow, **way).build()
    batch = tiny_flow.batch_of(policy, tiny_flow.drawn(policy.actor(1)))
    said = policy.signals(batch)
    assert (said.logp - batch.old_logp)[batch.mask].abs().max() < 1e-5
    assert said.logp[batch.mask].requires_grad
    assert (said.logp[~batch.mask] == 0).all()


def test_a_policy_that_moved_says_other_log_probabilities(flow):
    policy = flow.build()
    batch = tiny_flow.batch_of(policy, tiny_flow.drawn(policy.actor(1)))
    off = moved(policy).signals(batch).logp - batch.old_logp
    assert off.abs().min() > 1e-5


def test_the_steps_of_the_window_are_trained_and_the_others_are_there(flow):
    policy = replace(flow, sde_window=(1, 2)).build()
    (rollout, *_) = tiny_flow.drawn(policy.actor(1))
    assert [(len(a.items), a.in_loss, a.finish_reason) for _, a in rollout.turns] == [
        (1, False, "length"),
        (2, True, "length"),
        (1, False, "end"),
    ]
    batch = tiny_flow.batch_of(policy, [rollout])
    assert batch.mask.tolist() == [[False, True, True, False]]
    assert rollout.length == 4
    assert not rollout.truncated


def test_greedy_steps_have_no_noise_and_are_not_trained(flow):
    policy = flow.build()
    once, again = (tiny_flow.drawn(policy.actor(1).at(top_k=1), ["red"])[0] for _ in "ab")
    assert once == again
    ((_, action),) = once.turns
    assert not action.in_loss
    assert action.logp == (0.0,) * 4
    x, v = tensor_text.decode_tensor(action.observation[1])[None], policy.velocity_field
    told = policy.backbone.read(["red"])
    with torch.no_grad():
        for i in range(4):  # Euler's steps of a quarter each
            x = x - 0.25 * v(x, torch.tensor([1 - i / 4]), told)
    assert torch.allclose(x[0], latents(once)[-1], atol=1e-5)


def test_temperature_scales_the_noise(flow):
    policy = flow.build()
    cold, warm = (
        tiny_flow.drawn(policy.actor(1).at(temperature).until(max_new_tokens=1), ["red"])[0]
        for temperature in (1e-4, 1.0)
    )
    (greedy,) = tiny_flow.drawn(policy.actor(1).at(top_k=1), ["red"])
    assert torch.allclose(latents(cold)[0], latents(greedy)[0], atol=1e-3)
    assert not torch.allclose(latents(warm)[0], latents(greedy)[0], atol=1e-1)


def test_a_latent_is_the_same_whoever_else_is_drawn(flow):
    policy = flow.build()
    together = tiny_flow.drawn(policy.actor(1))
    alone = tiny_flow.drawn(policy.actor(1), tiny_flow.PROMPTS[:1])
    assert torch.allclose(latents(together[0]), latents(alone[0]), atol=1e-5)
    assert not torch.allclose(latents(together[0]), latents(together[1]), atol=1e-1)


def test_drawing_in_stretches_is_drawing_at_once(flow):
    act = flow.build().actor(1)
    (whole,) = tiny_flow.drawn(act, ["red"])
    (parts,) = tiny_flow.drawn(act.until(max_new_tokens=1), ["red"])
    assert len(parts.turns) == 4
    assert torch.equal(latents(whole), latents(parts))
    assert parts.turns[-1][1].image == whole.turns[-1][1].image != ""


def test_a_fork_goes_on_from_the_same_latent_with_other_noise(flow):
    act = flow.build().actor(1)

    async def branch():
        start = Rollout()
        trunk = start.append_turn("red", await act.until(max_new_tokens=2)(start, "red"))
        return [trunk.append_turn("", await act.fork(i)(trunk, "")) for i in range(2)]

    one, other = asyncio.run(branch())
    assert torch.equal(latents(one)[:2], latents(other)[:2])
    assert not torch.allclose(latents(one)[2], latents(other)[2], atol=1e-2)


def test_a_drawing_cut_short_goes_on_from_there(flow):
    act = flow.build().actor(1)
    (whole,) = tiny_flow.drawn(act, ["red"])
    for parts in (0, 2):
        cut = act.cut(whole, parts)
        assert (cut.length, cut.truncated, cut.turns[-1][1].image) == (parts, True, "")
        again = cut.then("", asyncio.run(act.fork(0)(cut, "")))
        assert torch.equal(latents(again), latents(whole))
        assert again.turns[-1][1].image == whole.turns[-1][1].image


def test_choices_are_of_the_streams_own(flow):
    act = flow.build().actor(1)
    one, again, other = (a.chance("which").random() for a in (act, act, act.fork(1)))
    assert one == again != other


def test_only_rows_that_fit_the_budget_are_together(flow):
    policy = replace(flow, tokens_per_microbatch=8).build()
    batch = tiny_flow.batch_of(policy, tiny_flow.drawn(policy.actor(1)))
    assert [rows.tolist() for rows in policy.micro(batch)] == [[0, 1], [2]]
    assert policy.halve_microbatch().endswith("hold 4 denoising steps from now on.")
    assert [rows.tolist() for rows in policy.micro(batch)] == [[0], [1], [2]]
    assert policy.halve_microbatch() == ""


@pytest.mark.parametrize("lora", [None, Lora(rank=2)], ids=["copy", "adapters"])
@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_the_reference_is_the_policy_as_it_was(flow, lora, rate):
    policy = replace(flow, lora=lora).build()
    needs = {"logp@ref", "reverse_kl@ref"}
    company = policy.attach_aux_models(needs, ReferenceUpdate(rate), ())
    batch = tiny_flow.batch_of(policy, tiny_flow.drawn(policy.actor(1)))
    moved(policy)
    said = company.scorers["ref"].signals(batch).logp
    assert (said - batch.old_logp).abs().max() < 1e-5
    kl = policy.signals(batch, needs - {"logp@ref"})["reverse_kl@ref"]
    assert (kl > 0).all()
    assert kl.requires_grad


def test_what_it_was_at_collation_is_remembered(flow):
    policy = flow.build()
    policy.attach_aux_models({"reverse_kl@old"}, ReferenceUpdate(), ())
    batch = tiny_flow.batch_of(policy, tiny_flow.drawn(policy.actor(1)))
    own = policy.signals(batch, ["reverse_kl@old"])
    assert own["reverse_kl@old"].max() < 1e-9
    other = moved(policy).signals(batch, ["reverse_kl@old"])
    assert (other["reverse_kl@old"] > 1e-7).all()
    assert policy.others["old"].signals(batch).logp == pytest.approx(batch.old_logp, abs=1e-5)


def test_another_prompt_before_the_same_latents_is_a_view(flow):
    policy = flow.build()
    other = AuxModel("told", prompt_override=lambda group, rollout: "a blue circle")
    company = policy.attach_aux_models({"logp@told"}, ReferenceUpdate(), (other,))
    rollouts = tiny_flow.drawn(policy.actor(1), ["red", "a blue circle"])
    batch = tiny_flow.batch_of(policy, rollouts)
    views = company.encode_reprompted(policy, [Group(Task("k", "a"), tuple(rollouts))])
    viewed = replace(batch, inputs={**batch.inputs, **views})
    off = (company.scorers["told"].signals(viewed).logp - batch.old_logp).abs()
    assert off[0].max() > 1e-4
    assert off[1].max() < 1e-5


def test_weights_go_out_and_back_and_into_a_folder(flow, tmp_path):
    policy = replace(flow, lora=Lora(rank=2)).build()
    moved(policy)
    saved = {name: x.clone() for name, x in policy.weights().items()}
    policy.export(tmp_path / "merged")
    (mine,) = tiny_flow.drawn(policy.actor(1).at(top_k=1), ["red"])
    loaded = Flow(str(tmp_path / "merged"), num_steps=4).build()
    (theirs,) = tiny_flow.drawn(loaded.actor(1).with_sampling(top_k=1), ["red"])
    assert torch.allclose(latents(mine), latents(theirs), atol=1e-5)
    moved(policy)
    policy.load(saved)
    (again,) = tiny_flow.drawn(policy.actor(1).at(top_k=1), ["red"])
    assert torch.equal(latents(mine), latents(again))


def test_a_voice_of_its_own_draws_with_what_it_was_given(flow):
    policy = flow.build()
    policy.detach_sampler()
    (before,) = tiny_flow.drawn(policy.actor(1), ["red"])
    moved(policy)
    (still,) = tiny_flow.drawn(policy.actor(1), ["red"])
    assert torch.equal(latents(before), latents(still))
    policy.sync_weights(policy.weight_sync.take(), 1)
    (now,) = tiny_flow.drawn(policy.actor(1), ["red"])
    assert not torch.allclose(latents(before), latents(now))
    assert now.turns[0][1].policy_version == 1


def test_a_helper_that_is_a_number_is_learned_and_one_of_features_refused(flow):
    policy = flow.build()
    policy.attach_heads([LearnedScalar("z", 0.5)])
    batch = tiny_flow.batch_of(policy, tiny_flow.drawn(policy.actor(1)))
    assert (policy.signals(batch, ["logp", "z"])["z"] == 0.5).all()
    with pytest.raises(ConfigError, match="reads features"):
        policy.attach_heads([LinearHead("value")])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"steps": 0}, "steps: 0. Allowed: 1 or more"),
        ({"window": (4,)}, r"window: \(4,\). Allowed: numbers of steps, 0 to 3"),
        ({"noise": 0.0}, "noise: 0.0. Allowed: above 0"),
        ({"model": "/nowhere"}, "'/nowhere' has neither"),
        ({"lora": Lora(targets=("none",))}, "Allowed: all-linear, .*film"),
    ],
)
def test_what_cannot_be_is_refused(flow, change, said):
    with pytest.raises(ConfigError, match=said):
        replace(flow, **change).build()


def test_prompts_that_it_cannot_read_are_refused(flow):
    policy = flow.build()
    with pytest.raises(ConfigError, match="'dog', which the model never read"):
        policy.validate_tasks([Task("k", "a red dog")])
    with pytest.raises(ConfigError, match="made of messages"):
        policy.validate_tasks([Task("k", ({"role": "user", "content": "red"},))])
    with pytest.raises(ConfigError, match="to be recited"):
        asyncio.run(policy.actor(1).append_unsampled(Rollout(), "red", "words"))


def test_a_batch_without_actions_says_nothing(flow):
    policy = flow.build()
    batch: Batch = tiny_flow.batch_of(policy, tiny_flow.drawn(policy.actor(1).at(top_k=1)))
    assert not batch.mask.any()
    assert (policy.signals(batch).logp == 0).all()


def test_a_processor_that_would_imitate_bfloat16_computes_in_float32(flow, monkeypatch):
    monkeypatch.setattr(loading, "has_bfloat16", lambda device: False)
    policy = replace(flow, dtype="bfloat16").build()
    assert (policy.dtype, policy.warnings) == (torch.float32, [loading.BFLOAT16_WARNING])


@pytest.mark.usefixtures("bfloat16_here")
def test_a_device_that_has_bfloat16_computes_in_it(flow):
    policy = replace(flow, dtype="bfloat16").build()
    assert (policy.dtype, policy.warnings) == (torch.bfloat16, ())
