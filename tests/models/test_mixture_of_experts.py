"""Mixtures of experts equal transformers' models; recorded experts are used again in the update."""

from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM

from grupo.core.batch import Batch
from grupo.core.signal_names import EXPERT_COST, ROUTER_LOSS
from grupo.core.types import Rollout
from grupo.inference.routes import decode_routes
from grupo.kernels.routing import OWN_CHOICE
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.evaluator import PackedEvaluator
from grupo.models.policy_routers import ROUTES
from grupo.util.errors import ConfigError
from tests.helpers.moe_models import MOE, save_moe
from tests.helpers.tiny_lm import batch_of, build_cached, generate, two_turn_rollouts

PROMPTS = ("A question of many words, which rows share: 2+2?", "A question of many", "Hi")


@pytest.fixture(scope="session")
def moe(tmp_path_factory):
    """Folder of a model of each family."""
    root = tmp_path_factory.mktemp("moe")
    return {family: save_moe(root / family, family) for family in MOE}


def answers(policy: CausalPolicy, attempts: int = 3) -> Batch:
    groups = generate(policy, PROMPTS, attempts)
    return batch_of(policy, [Rollout((("", x),)) for group in groups for x in group])


def own_logp(model, batch: Batch) -> torch.Tensor:
    """Log-probabilities of the actions, row by row, without packing and padding."""
    token, start, length = (batch.inputs[name] for name in ("token", "start", "length"))
    rows = []
    for i, mask in enumerate(batch.mask):
        logp = model(token[i : i + 1, : length[i]]).logits[0].log_softmax(-1)
        column = start[i] + mask.nonzero()[:, 0]
        rows.append(logp[column - 1, token[i, column]])
    return torch.cat(rows)


def relative_error(actual: torch.Tensor, expected: torch.Tensor) -> float:
    return ((actual - expected).norm() / expected.norm()).item()


@pytest.mark.parametrize("family", MOE)
def test_logp_and_gradients_equal_those_of_transformers(moe, family):
    policy = CausalLM(moe[family], max_new_tokens=12).build()
    assert isinstance(policy.evaluator, PackedEvaluator)
    batch = answers(policy)
    logp = policy.signals(batch).logp[batch.mask]
    weight = torch.randn(len(logp), generator=torch.Generator().manual_seed(2))
    (logp * weight).sum().backward()
    model = AutoModelForCausalLM.from_pretrained(moe[family], attn_implementation="eager")
    expected = own_logp(model, batch)
    (expected * weight).sum().backward()
    assert relative_error(logp, expected) < 1e-5
    assert relative_error(logp, batch.old_logp[batch.mask]) < 1e-5
    own = dict(policy.hf_model.named_parameters())
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and parameter.grad.norm() > 0:
            assert relative_error(own[name].grad, parameter.grad) < 1e-4, name


@pytest.mark.parametrize("family", MOE)
def test_recorded_experts_are_those_of_a_forward_pass_over_the_row(moe, family):
    policy = build_cached(CausalLM(moe[family], max_new_tokens=12, router_replay=True))
    batch = answers(policy)
    token, length, routes = (batch.inputs[name] for name in ("token", "length", ROUTES))
    policy.hf_model.set_attn_implementation("grupo")
    free = build_cached(CausalLM(moe[family], max_new_tokens=12))
    assert free.routers
    for i in range(len(token)):
        routing = free.routers.row_routing({})
        row = torch.zeros(1, dtype=torch.long)
        with torch.no_grad():
            one = token[i : i + 1], length[i : i + 1], row, length[i : i + 1] - 2
            free.evaluator.hidden_states(*one, routing)
        expected = routing.router_pass.routes().sort(-1).values
        assert torch.equal(routes[i, : length[i] - 1].sort(-1).values, expected)
        assert (routes[i, length[i] - 1 :] == OWN_CHOICE).all()


@pytest.mark.parametrize("family", MOE)
def test_the_first_ratio_is_one_in_a_second_turn_with_replayed_experts(moe, family):
    policy = build_cached(CausalLM(moe[family], max_new_tokens=12, router_replay=True))
    ratio = first_ratio(policy)
    torch.testing.assert_close(ratio, torch.ones_like(ratio), rtol=0, atol=2e-5)


@pytest.mark.parametrize("family", MOE)
def test_the_first_ratio_is_one_within_1e_6_at_the_deviation_of_the_family(tmp_path, family):
    """Only rounding is left: weights of a deviation 20 times as large amplify it to 1e-5."""
    folder = save_moe(tmp_path, family, deviation=0.02)
    ratio = first_ratio(CausalLM(folder, max_new_tokens=12, router_replay=True).build())
    torch.testing.assert_close(ratio, torch.ones_like(ratio), rtol=0, atol=1e-6)


def first_ratio(policy: CausalPolicy) -> torch.Tensor:
    """The ratios of all actions of rollouts of two turns, whose experts are all replayed."""
    batch = batch_of(policy, two_turn_rollouts(policy, PROMPTS))
    with torch.no_grad():
        logp = policy.signals(batch).logp
    assert policy.routers
    sums = policy.routers.last_sums
    assert sums
    assert sums.given == sums.tokens > 0
    return (logp - batch.old_logp)[batch.mask].exp()


@pytest.mark.parametrize("family", MOE)
def test_other_experts_are_taken_and_weighted_by_the_router(moe, family):
    policy = build_cached(CausalLM(moe[family], max_new_tokens=12, router_replay=True))
    batch = answers(policy, attempts=1)
    before = policy.signals(batch).logp
    assert policy.routers
    routes = batch.inputs[ROUTES]
    others = torch.where(routes < 0, routes, (routes + 1) % policy.routers.sizes.experts)
    changed = replace(batch, inputs={**batch.inputs, ROUTES: others})
    logp = policy.signals(changed).logp
    assert (logp - before).abs().max() > 0.01
    chosen = policy.routers.last_sums.chosen
    valid = others[others[:, :, 0] >= 0].long().unflatten(1, (policy.routers.sizes.layers, -1))
    for layer, counts in enumerate(chosen):
        experts = valid[:, layer].reshape(-1)
        assert torch.equal(counts, torch.bincount(experts, minlength=len(counts)).double())
    policy.module.zero_grad()
    logp.sum().backward()
    parameters = policy.hf_model.named_parameters()
    gates = [p for n, p in parameters if n.endswith(("gate.weight", "router.weight"))]
    assert gates
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in gates)
    policy.module.zero_grad()


def test_responses_without_a_record_leave_the_choice_to_the_router(moe):
    policy = build_cached(CausalLM(moe["olmoe"], max_new_tokens=12, router_replay=True))
    (response,), *_ = generate(policy, PROMPTS[:1], 1)
    recorded = batch_of(policy, [Rollout((("", response),))])
    bare = batch_of(policy, [Rollout((("", replace(response, routes="")),))])
    assert (bare.inputs[ROUTES] == OWN_CHOICE).all()
    with torch.no_grad():
        a, b = (policy.signals(batch).logp for batch in (recorded, bare))
    torch.testing.assert_close(a, b, rtol=0, atol=2e-5)
    assert policy.routers
    assert policy.routers.last_sums
    assert policy.routers.last_sums.given == 0


def test_a_record_has_the_tokens_that_a_turn_evaluated(moe):
    policy = build_cached(CausalLM(moe["mixtral"], max_new_tokens=12, router_replay=True))
    rollout = two_turn_rollouts(policy, PROMPTS[2:])[0]
    first, second = (response for _, response in rollout.turns)
    lengths = [len(decode_routes(x.routes)) for x in (first, second)]
    assert lengths[0] == len(first.observation) + len(first.items) - 1
    assert lengths[1] == len(second.observation) + len(second.items)


def test_a_copy_of_the_weights_records_the_same_experts(moe):
    spec = CausalLM(moe["olmoe"], max_new_tokens=12, router_replay=True)
    expected = generate(build_cached(spec), PROMPTS[:1], 1)[0][0]
    policy = spec.build()
    policy.use_weight_copy_for_generation()
    policy.sync_weights(policy.weight_sync.snapshot(), 1)
    response = generate(policy, PROMPTS[:1], 1)[0][0]
    assert response.items == expected.items
    assert response.routes == expected.routes != ""


def padded_policy(policy: CausalPolicy) -> CausalPolicy:
    """A policy of the same model whose rows are padded."""
    from grupo.models.evaluator import PaddedEvaluator

    other = policy.load_frozen_copy()
    other.hf_model.set_attn_implementation("eager")
    other.evaluator = PaddedEvaluator(other.hf_model)
    return other


def test_sums_are_those_of_packed_and_of_padded_rows(moe):
    policy = CausalLM(moe["qwen3_moe"], max_new_tokens=12, router_aux_loss=1.0).build()
    batch = answers(policy)
    packed = policy.router_sums(batch)
    padded = padded_policy(policy).router_sums(batch)
    assert packed.tokens == batch.inputs["length"].sum() - len(batch.mask)
    assert torch.equal(packed.chosen, padded.chosen)
    torch.testing.assert_close(packed.probability, padded.probability, rtol=1e-5, atol=1e-4)


def test_the_loss_is_that_of_transformers(moe):
    from transformers.models.qwen3_moe.modeling_qwen3_moe import load_balancing_loss_func

    policy = CausalLM(moe["qwen3_moe"], max_new_tokens=12, router_aux_loss=0.5).build()
    batch = answers(policy)
    loss = policy.signals(batch, ("logp", ROUTER_LOSS))[ROUTER_LOSS].sum()
    policy.module.zero_grad()
    loss.backward()
    model = AutoModelForCausalLM.from_pretrained(moe["qwen3_moe"], attn_implementation="eager")
    mask = torch.arange(batch.inputs["token"].shape[1]) < batch.inputs["length"][:, None] - 1
    logits = model(batch.inputs["token"], output_router_logits=True).router_logits
    expected = 0.5 * load_balancing_loss_func(logits, 8, 2, mask.long())
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    own = dict(policy.hf_model.named_parameters())
    compared = 0
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and parameter.grad.norm() > 1e-6:
            compared += 1
            assert relative_error(own[name].grad, parameter.grad) < 1e-4, name
    assert compared > 5


def test_the_loss_of_parts_is_that_of_the_whole(moe):
    policy = CausalLM(moe["olmoe"], max_new_tokens=12, router_aux_loss=0.5).build()
    batch = answers(policy)
    names = ("logp", ROUTER_LOSS)
    with torch.no_grad():
        whole = policy.signals(batch, names)[ROUTER_LOSS]
        cost = policy.router_sums(batch).expert_cost.expand(len(batch.mask), -1)
        batch = replace(batch, inputs={**batch.inputs, EXPERT_COST: cost})
        rows = torch.arange(len(batch.mask)).split(2)
        parts = [policy.signals(batch.select_rows(x), names)[ROUTER_LOSS] for x in rows]
    torch.testing.assert_close(torch.cat(parts), whole, rtol=1e-5, atol=1e-7)


def test_gradient_checkpointing_replays_the_experts_and_keeps_the_loss(moe):
    grads = []
    for checkpointed in (False, True):
        spec = CausalLM(
            moe["olmoe"],
            max_new_tokens=12,
            router_aux_loss=0.5,
            router_replay=True,
            gradient_checkpointing=checkpointed,
        )
        policy = spec.build()
        batch = answers(policy, attempts=2)
        assert policy.routers
        routes = batch.inputs[ROUTES]
        others = torch.where(routes < 0, routes, (routes + 1) % 8)
        batch = replace(batch, inputs={**batch.inputs, ROUTES: others})
        signals = policy.signals(batch, ("logp", ROUTER_LOSS))
        (signals.logp.sum() + signals[ROUTER_LOSS].sum()).backward()
        grads.append([p.grad for p in policy.parameters() if p.grad is not None])
    assert all(relative_error(a, b) < 1e-5 for a, b in zip(*grads, strict=True) if b.norm() > 0)


@pytest.mark.parametrize(("field", "value"), [("router_aux_loss", 0.01), ("router_replay", True)])
def test_a_dense_model_has_no_routers(folders, field, value):
    with pytest.raises(ConfigError, match=f"{field}: {value}, and LlamaForCausalLM has no routers"):
        CausalLM(folders["llama"], max_new_tokens=4, **{field: value}).build()


def test_replay_needs_packed_attention(tmp_path):
    folder = save_moe(tmp_path, "qwen3_next")
    with pytest.raises(ConfigError, match="router_replay: True, and transformers generates"):
        CausalLM(folder, max_new_tokens=4, router_replay=True).build()
