"""Flow policies: generated steps are evaluated alike, alone or batched with others."""

from dataclasses import replace

import pytest
import torch

from grupo.core.aux_heads import LearnedScalar, LinearHead
from grupo.core.batch import Batch
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.types import Group, Rollout, Task
from grupo.models import devices
from grupo.models.base import AuxModel
from grupo.models.flow import Flow
from grupo.models.lora import Lora
from grupo.storage import tensor_text
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers import tiny_flow


def latents(rollout):
    return torch.stack([tensor_text.decode_tensor(x) for _, a in rollout.turns for x in a.items])


def perturb(policy, by=0.01):
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(by * torch.randn_like(parameter))
    return policy


SPEC_CHANGES = [
    {},
    {"guidance_scale": 3.0},
    {"sde_window": (1, 2)},
    {"sde_window": (0, 3)},
    {"noise_level": 0.2},
    {"lora": Lora(rank=2)},
]


@pytest.mark.parametrize("changes", SPEC_CHANGES, ids=str)
def test_evaluated_logp_matches_generation(flow, changes):
    policy = replace(flow, **changes).build()
    batch = tiny_flow.batch_of(policy, tiny_flow.generate(policy.actor(1)))
    signals = policy.signals(batch)
    assert (signals.logp - batch.old_logp)[batch.mask].abs().max() < 1e-5
    assert signals.logp[batch.mask].requires_grad
    assert (signals.logp[~batch.mask] == 0).all()


def test_logp_changes_with_the_weights(flow):
    policy = flow.build()
    batch = tiny_flow.batch_of(policy, tiny_flow.generate(policy.actor(1)))
    off = perturb(policy).signals(batch).logp - batch.old_logp
    assert off.abs().min() > 1e-5


def test_only_steps_of_the_sde_window_are_in_the_loss(flow):
    policy = replace(flow, sde_window=(1, 2)).build()
    (rollout, *_) = tiny_flow.generate(policy.actor(1))
    assert [(len(a.items), a.in_loss, a.finish_reason) for _, a in rollout.turns] == [
        (1, False, "length"),
        (2, True, "length"),
        (1, False, "end"),
    ]
    batch = tiny_flow.batch_of(policy, [rollout])
    assert batch.mask.tolist() == [[False, True, True, False]]
    assert rollout.length == 4
    assert not rollout.truncated


def test_greedy_steps_follow_the_ode_and_are_not_in_the_loss(flow):
    policy = flow.build()
    first, second = (
        tiny_flow.generate(policy.actor(1).with_sampling(top_k=1), ["red"])[0] for _ in "ab"
    )
    assert first == second
    ((_, response),) = first.turns
    assert not response.in_loss
    assert response.logp == (0.0,) * 4
    x = tensor_text.decode_tensor(response.observation[1])[None]
    velocity = policy.velocity_field
    condition = policy.backbone.encode_prompts(["red"])
    with torch.no_grad():
        for i in range(4):  # Euler steps of length 1/4
            x = x - 0.25 * velocity(x, torch.tensor([1 - i / 4]), condition)
    assert torch.allclose(x[0], latents(first)[-1], atol=1e-5)


def test_temperature_scales_the_noise(flow):
    policy = flow.build()
    cold, warm = (
        tiny_flow.generate(
            policy.actor(1).with_sampling(temperature).with_stop(max_new_tokens=1), ["red"]
        )[0]
        for temperature in (1e-4, 1.0)
    )
    (greedy,) = tiny_flow.generate(policy.actor(1).with_sampling(top_k=1), ["red"])
    assert torch.allclose(latents(cold)[0], latents(greedy)[0], atol=1e-3)
    assert not torch.allclose(latents(warm)[0], latents(greedy)[0], atol=1e-1)


def test_latents_do_not_depend_on_the_batch(flow):
    policy = flow.build()
    together = tiny_flow.generate(policy.actor(1))
    alone = tiny_flow.generate(policy.actor(1), tiny_flow.PROMPTS[:1])
    assert torch.allclose(latents(together[0]), latents(alone[0]), atol=1e-5)
    assert not torch.allclose(latents(together[0]), latents(together[1]), atol=1e-1)


def test_generation_in_segments_matches_generation_at_once(flow):
    act = flow.build().actor(1)
    (whole,) = tiny_flow.generate(act, ["red"])
    (segments,) = tiny_flow.generate(act.with_stop(max_new_tokens=1), ["red"])
    assert len(segments.turns) == 4
    assert torch.equal(latents(whole), latents(segments))
    assert segments.last_response.image == whole.last_response.image != ""


def test_forks_continue_from_the_same_latent_with_other_noise(flow):
    act = flow.build().actor(1)

    async def branch():
        start = Rollout()
        trunk = start.append_turn("red", await act.with_stop(max_new_tokens=2)(start, "red"))
        return [trunk.append_turn("", await act.fork(i)(trunk, "")) for i in range(2)]

    one, other = run_coroutine(branch())
    assert torch.equal(latents(one)[:2], latents(other)[:2])
    assert not torch.allclose(latents(one)[2], latents(other)[2], atol=1e-2)


@pytest.mark.slow
def test_truncated_rollouts_continue_from_their_last_latent(flow):
    act = flow.build().actor(1)
    (whole,) = tiny_flow.generate(act, ["red"])
    for num_items in (0, 2):
        cut = act.truncate(whole, num_items)
        assert (cut.length, cut.truncated, cut.last_response.image) == (num_items, True, "")
        again = cut.append_turn("", run_coroutine(act.fork(0)(cut, "")))
        assert torch.equal(latents(again), latents(whole))
        assert again.last_response.image == whole.last_response.image


def test_rng_belongs_to_the_actors_stream(flow):
    act = flow.build().actor(1)
    one, again, other = (a.rng("which").random() for a in (act, act, act.fork(1)))
    assert one == again != other


def test_microbatches_hold_the_rows_that_fit(flow):
    policy = replace(flow, tokens_per_microbatch=8).build()
    batch = tiny_flow.batch_of(policy, tiny_flow.generate(policy.actor(1)))
    assert [rows.tolist() for rows in policy.microbatches(batch)] == [[0, 1], [2]]
    assert policy.halve_microbatch().endswith("hold 4 denoising steps from now on.")
    assert [rows.tolist() for rows in policy.microbatches(batch)] == [[0], [1], [2]]
    assert policy.halve_microbatch() == ""


@pytest.mark.parametrize("lora", [None, Lora(rank=2)], ids=["copy", "adapters"])
@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_reference_has_the_initial_weights(flow, lora, rate):
    policy = replace(flow, lora=lora).build()
    required = {"logp@ref", "reverse_kl@ref"}
    aux_models = policy.attach_aux_models(required, ReferenceUpdate(rate), ())
    batch = tiny_flow.batch_of(policy, tiny_flow.generate(policy.actor(1)))
    perturb(policy)
    signals = aux_models.signal_models["ref"].signals(batch).logp
    assert (signals - batch.old_logp).abs().max() < 1e-5
    kl = policy.signals(batch, required - {"logp@ref"})["reverse_kl@ref"]
    assert (kl > 0).all()
    assert kl.requires_grad


def test_old_policy_has_the_weights_at_collation(flow):
    policy = flow.build()
    policy.attach_aux_models({"reverse_kl@old"}, ReferenceUpdate(), ())
    batch = tiny_flow.batch_of(policy, tiny_flow.generate(policy.actor(1)))
    own = policy.signals(batch, ["reverse_kl@old"])
    assert own["reverse_kl@old"].max() < 1e-9
    other = perturb(policy).signals(batch, ["reverse_kl@old"])
    assert (other["reverse_kl@old"] > 1e-7).all()
    assert policy.signal_models["old"].signals(batch).logp == pytest.approx(
        batch.old_logp, abs=1e-5
    )


def test_prompt_override_evaluates_the_same_latents_under_another_prompt(flow):
    policy = flow.build()
    aux_model = AuxModel("blue", prompt_override=lambda group, rollout: "a blue circle")
    aux_models = policy.attach_aux_models({"logp@blue"}, ReferenceUpdate(), (aux_model,))
    rollouts = tiny_flow.generate(policy.actor(1), ["red", "a blue circle"])
    batch = tiny_flow.batch_of(policy, rollouts)
    reprompted = aux_models.encode_own_prompts(policy, [Group(Task("k", "a"), tuple(rollouts))])
    batch_reprompted = replace(batch, inputs={**batch.inputs, **reprompted})
    off = (aux_models.signal_models["blue"].signals(batch_reprompted).logp - batch.old_logp).abs()
    assert off[0].max() > 1e-4
    assert off[1].max() < 1e-5


def test_weights_are_loaded_and_exported_unchanged(flow, tmp_path):
    policy = replace(flow, lora=Lora(rank=2)).build()
    perturb(policy)
    saved = {name: x.clone() for name, x in policy.weights().items()}
    policy.export(tmp_path / "merged")
    (exported,) = tiny_flow.generate(policy.actor(1).with_sampling(top_k=1), ["red"])
    loaded = Flow(str(tmp_path / "merged"), num_steps=4).build()
    (reloaded,) = tiny_flow.generate(loaded.actor(1).with_sampling(top_k=1), ["red"])
    assert torch.allclose(latents(exported), latents(reloaded), atol=1e-5)
    perturb(policy)
    policy.load(saved)
    (restored,) = tiny_flow.generate(policy.actor(1).with_sampling(top_k=1), ["red"])
    assert torch.equal(latents(exported), latents(restored))


def test_detached_sampler_generates_with_synced_weights(flow):
    policy = flow.build()
    policy.use_weight_copy_for_generation()
    (before,) = tiny_flow.generate(policy.actor(1), ["red"])
    perturb(policy)
    (still,) = tiny_flow.generate(policy.actor(1), ["red"])
    assert torch.equal(latents(before), latents(still))
    policy.sync_weights(policy.weight_sync.snapshot(), 1)
    (now,) = tiny_flow.generate(policy.actor(1), ["red"])
    assert not torch.allclose(latents(before), latents(now))
    assert now.turns[0][1].policy_version == 1


def test_flows_accept_learned_scalars_and_reject_linear_heads(flow):
    policy = flow.build()
    policy.attach_heads([LearnedScalar("z", 0.5)])
    batch = tiny_flow.batch_of(policy, tiny_flow.generate(policy.actor(1)))
    assert (policy.signals(batch, ["logp", "z"])["z"] == 0.5).all()
    with pytest.raises(ConfigError, match="needs hidden states"):
        policy.attach_heads([LinearHead("value")])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_steps": 0}, "num_steps: 0. Allowed: 1 or more"),
        ({"sde_window": (4,)}, r"sde_window: \(4,\). Allowed: indices of steps, 0 to 3"),
        ({"noise_level": 0.0}, "noise_level: 0.0. Allowed: above 0"),
        ({"model": "/nowhere"}, "'/nowhere' has neither"),
        ({"lora": Lora(targets=("none",))}, "Allowed: all-linear, .*film"),
    ],
)
def test_invalid_specs_raise_config_errors(flow, change, message):
    with pytest.raises(ConfigError, match=message):
        replace(flow, **change).build()


def test_unsupported_prompts_and_text_raise_config_errors(flow):
    policy = flow.build()
    with pytest.raises(ConfigError, match="'dog', which is not in the vocabulary"):
        policy.validate_tasks([Task("k", "a red dog")])
    with pytest.raises(ConfigError, match="consists of messages"):
        policy.validate_tasks([Task("k", ({"role": "user", "content": "red"},))])
    with pytest.raises(ConfigError, match="inserts the text 'words'"):
        run_coroutine(policy.actor(1).append_unsampled(Rollout(), "red", "words"))


def test_batch_without_trained_steps_has_zero_logp(flow):
    policy = flow.build()
    batch: Batch = tiny_flow.batch_of(
        policy, tiny_flow.generate(policy.actor(1).with_sampling(top_k=1))
    )
    assert not batch.mask.any()
    assert (policy.signals(batch).logp == 0).all()


def test_bfloat16_falls_back_to_float32_where_it_is_emulated(flow, monkeypatch):
    monkeypatch.setattr(devices, "has_bfloat16", lambda device: False)
    policy = replace(flow, dtype="bfloat16").build()
    assert (policy.dtype, policy.warnings) == (torch.float32, [devices.BFLOAT16_WARNING])


@pytest.mark.usefixtures("bfloat16_here")
def test_bfloat16_is_used_where_the_device_has_it(flow):
    policy = replace(flow, dtype="bfloat16").build()
    assert (policy.dtype, policy.warnings) == (torch.bfloat16, ())
