"""Packed attention gives the hidden states and gradients of each model family's own attention."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import DogeConfig, PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from grupo.kernels.packing import hf_attention
from grupo.kernels.packing.hf_attention import PackedAttentionError
from grupo.kernels.packing.prefix_trie import pack
from grupo.kernels.packing.tree_attention import TreeAttention
from grupo.models.loading import enable_gradient_checkpointing
from tests.helpers.attention_models import SUPPORTED, UNSUPPORTED
from tests.helpers.fast_cases import fast_cases
from tests.helpers.packed_rows import padded
from tests.helpers.recurrent_model import RECURRENT, random_model
from tests.helpers.tiny_lm import ENDS, WIDE

Forward = Callable[[Any], Tensor]
EXACT = ("gpt2", "gpt_neox")  # the norms of the others round to float32 in every dtype
EXPERTS = ("mixtral", "deepseek_v3", "gpt_oss")  # rounding may choose another expert


def rows() -> tuple[Tensor, Tensor]:
    """Two prompts, one with a second turn, with answers; and a row without shared tokens."""
    torch.manual_seed(3)
    prompt, other, turn = (torch.randint(1, 95, (n,)).tolist() for n in (9, 12, 7))
    answers = [torch.randint(1, 95, (n,)).tolist() for n in (6, 1, 9, 3, 5, 8, 4)]
    deep = [[*prompt, *turn, *answers[0]], [*prompt, *turn, *answers[1]], [*prompt, *answers[2]]]
    shallow = [[*prompt, *answers[3]], *([*other, *x] for x in answers[4:6])]
    return padded([*deep, *shallow, answers[6]])


TOKEN, LENGTH = rows()
REAL = torch.arange(TOKEN.shape[1]) < LENGTH[:, None]


def own(model: Any) -> Tensor:
    """Hidden states of all tokens by the model's own attention."""
    return model.base_model(input_ids=TOKEN, use_cache=False).last_hidden_state[REAL]


def packed(model: Any) -> Tensor:
    """Hidden states of all tokens by packed attention."""
    one = pack(TOKEN, LENGTH, min_saved=1)
    assert len(one.token) < 0.7 * LENGTH.sum()
    return hf_attention.forward_packed(model, one.token, one.position, TreeAttention(one))[
        one.token_index
    ][REAL]


def gradients(model: nn.Module, hidden: Tensor) -> list[Tensor]:
    """Gradients of all parameters for a random weighting of the hidden states."""
    model.zero_grad()
    weight = torch.randn(hidden.shape, generator=torch.Generator().manual_seed(1))
    (hidden * weight.to(hidden)).sum().backward()
    return [p.grad for p in model.parameters() if p.grad is not None]


def relative_error(actual: Tensor, expected: Tensor) -> float:
    """Largest difference, relative to the largest number."""
    return ((actual - expected).abs().max() / expected.abs().max()).item()


def with_packed_attention(model: PreTrainedModel) -> PreTrainedModel:
    """The same model, switched to packed attention."""
    hf_attention.use_packed_attention(model)
    assert model.config._attn_implementation == hf_attention.ATTENTION_NAME
    return model


def hidden_and_grads(model: PreTrainedModel, forward: Forward) -> list[Tensor]:
    """Hidden states of the rows, and the gradients of all parameters."""
    hidden = forward(model)
    return [hidden.detach(), *gradients(model, hidden)]


def both(family: str, dtype: torch.dtype, **options: Any) -> Iterator[tuple[Tensor, Tensor]]:
    """Hidden states, then gradients: by packed attention, and by the model's own."""
    one, other = (random_model(SUPPORTED[family](**options)).to(dtype) for _ in range(2))
    actual = hidden_and_grads(with_packed_attention(one), packed)
    return zip(actual, hidden_and_grads(other, own), strict=True)


@pytest.mark.parametrize("family", SUPPORTED)
def test_hidden_states_and_gradients_match_the_models_own_attention(family):
    for actual, expected in both(family, torch.float32):
        assert relative_error(actual, expected) < 1e-5


@pytest.mark.parametrize("family", EXACT)
def test_float64_models_match_to_ten_digits(family):
    for actual, expected in both(family, torch.float64):
        assert relative_error(actual, expected) < 1e-10


@pytest.mark.parametrize("family", SUPPORTED)
def test_rows_are_longer_than_the_sliding_windows(family):
    config = SUPPORTED[family]()
    assert LENGTH.max() > (getattr(config, "sliding_window", None) or 0)


@pytest.mark.parametrize("family", [name for name in SUPPORTED if name not in EXPERTS])
def test_bfloat16_is_as_exact_as_with_the_models_own_attention(family):
    rounded = random_model(SUPPORTED[family]()).bfloat16()
    exact = hidden_and_grads(copy.deepcopy(rounded).float(), own)
    reference = hidden_and_grads(rounded, own)
    actual = hidden_and_grads(with_packed_attention(rounded), packed)
    assert {x.dtype for x in actual} == {torch.bfloat16}
    for part in (slice(0, 1), slice(1, None)):  # hidden states, gradients
        a, b, c = (
            torch.cat([x.flatten() for x in numbers[part]])
            for numbers in (actual, reference, exact)
        )
        assert 0 < (a - c).norm() < 1.2 * (b - c).norm()


@pytest.mark.parametrize("family", [name for name in SUPPORTED if name not in EXPERTS])
def test_autocast_gradients_are_as_exact_as_with_the_models_own_attention(family):
    exact = hidden_and_grads(random_model(SUPPORTED[family]()), own)[1:]
    one = with_packed_attention(random_model(SUPPORTED[family]()))
    other = random_model(SUPPORTED[family]())
    with torch.autocast("cpu", torch.bfloat16):
        packed_hidden, own_hidden = packed(one), own(other)
    a, b, c = (
        torch.cat([x.flatten() for x in numbers])
        for numbers in (gradients(one, packed_hidden), gradients(other, own_hidden), exact)
    )
    assert 0 < (a - c).norm() < 1.2 * (b - c).norm()


@pytest.mark.parametrize("family", SUPPORTED)
def test_gradient_checkpointing_recomputes_layers_and_keeps_gradients(family):
    model, calls = with_packed_attention(random_model(SUPPORTED[family]())), []
    plain = gradients(model, packed(model))
    enable_gradient_checkpointing(model)
    for dropout in (x for x in model.modules() if isinstance(x, nn.Dropout)):
        dropout.p = 0.0
    layers = [x for x in model.modules() if isinstance(x, GradientCheckpointingLayer)]
    for layer in layers:
        next(layer.children()).register_forward_pre_hook(lambda *_: calls.append(1))
    recomputed = gradients(model, packed(model.train()))
    assert len(calls) == 2 * len(layers) > 0
    assert all(x < 1e-6 for x in map(relative_error, recomputed, plain))


@pytest.mark.parametrize("family", [*UNSUPPORTED, *RECURRENT])
def test_unsupported_models_keep_their_own_attention(family):
    model = random_model({**UNSUPPORTED, **RECURRENT}[family]())
    before, hidden = model.config._attn_implementation, own(model)
    with pytest.raises(PackedAttentionError):
        hf_attention.use_packed_attention(model)
    assert model.config._attn_implementation == before
    assert torch.equal(own(model), hidden)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_model_with_attention_of_another_kind_states_by_how_much_it_differs(dtype):
    model = random_model(DogeConfig(**WIDE, **ENDS))
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.A.normal_()  # of a term that its attention adds to the scores
    model = model.to(dtype)
    with pytest.raises(PackedAttentionError, match=r"^differs by 0\.\d+ \(allowed 0\.\d+\)$"):
        hf_attention.use_packed_attention(model)


def test_a_model_that_cannot_compute_packed_attention_states_its_error():
    model = random_model(SUPPORTED["llama"]())
    del model.model.layers[1].self_attn.layer_idx  # some implementations have none
    before = model.config._attn_implementation
    with pytest.raises(PackedAttentionError, match=r"^raises AttributeError: .*layer_idx"):
        hf_attention.use_packed_attention(model)
    assert model.config._attn_implementation == before


def test_a_model_with_other_layers_than_attention_names_their_type():
    with pytest.raises(PackedAttentionError, match=r"^does not compute layers of type 'conv'$"):
        hf_attention.use_packed_attention(random_model(RECURRENT["lfm2"]()))


@pytest.mark.slow
@pytest.mark.parametrize("family", fast_cases(1, ["llama", "qwen3"]))
def test_a_model_whose_layers_amplify_rounding_is_packed_in_bfloat16(family):
    model = random_model(SUPPORTED[family](num_hidden_layers=64)).bfloat16()
    both_rounded = [own(model), packed(with_packed_attention(model))]
    assert relative_error(*both_rounded) > 0.05
    exact = own(random_model(SUPPORTED[family](num_hidden_layers=64)).bfloat16().float())
    errors = [relative_error(hidden, exact) for hidden in both_rounded]
    assert max(errors) < 1.5 * min(errors)


def test_scale_of_the_model_is_used():
    (actual, expected), *_ = both("gemma2", torch.float32, query_pre_attn_scalar=3)
    (_, without), *_ = both("gemma2", torch.float32)
    assert relative_error(actual, expected) < 1e-5
    assert relative_error(expected, without) > 1e-2
