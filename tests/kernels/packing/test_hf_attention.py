"""Every family says the same by our attention as by its own, and learns the same from it."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from grupo.kernels.packing import hf_attention
from grupo.kernels.packing.prefix_trie import pack
from grupo.kernels.packing.tree_attention import TreeAttention
from grupo.models.loading import enable_gradient_checkpointing
from tests.helpers.attention_models import REFUSED, TAKEN
from tests.helpers.packed_rows import padded
from tests.helpers.recurrent_model import RECURRENT, grown

Reading = Callable[[Any], Tensor]
EXACT = ("gpt2", "gpt_neox")  # norms of the others round to float32, whatever they are given
EXPERTS = ("mixtral", "deepseek_v3")  # rounding may choose another expert


def rows() -> tuple[Tensor, Tensor]:
    """Two questions, one with two turns that go on from it, answers to all; and a lone row."""
    torch.manual_seed(3)
    one, other, turn = (torch.randint(1, 95, (n,)).tolist() for n in (9, 12, 7))
    said = [torch.randint(1, 95, (n,)).tolist() for n in (6, 1, 9, 3, 5, 8, 4)]
    deep = [[*one, *turn, *said[0]], [*one, *turn, *said[1]], [*one, *said[2]]]
    return padded([*deep, [*one, *said[3]], *([*other, *x] for x in said[4:6]), said[6]])


TOKEN, LENGTH = rows()
REAL = torch.arange(TOKEN.shape[1]) < LENGTH[:, None]


def own(model: Any) -> Tensor:
    """The hidden states of every token of the rows, as transformers works them out."""
    return model.base_model(input_ids=TOKEN, use_cache=False).last_hidden_state[REAL]


def packed(model: Any) -> Tensor:
    """The same by what rows share once."""
    one = pack(TOKEN, LENGTH, min_saved=1)
    assert len(one.token) < 0.7 * LENGTH.sum()
    return hf_attention.forward_packed(model, one.token, one.position, TreeAttention(one))[
        one.token_index
    ][REAL]


def learned(model: nn.Module, hidden: Tensor) -> list[Tensor]:
    """The gradients of all parameters for a loss that weighs everything said differently."""
    model.zero_grad()
    weight = torch.randn(hidden.shape, generator=torch.Generator().manual_seed(1))
    (hidden * weight.to(hidden)).sum().backward()
    return [p.grad for p in model.parameters() if p.grad is not None]


def off(ours: Tensor, theirs: Tensor) -> float:
    """How far apart they are, for the largest number among them."""
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


def ours(model: PreTrainedModel) -> PreTrainedModel:
    """The same model, told to use our attention."""
    assert hf_attention.try_packed_attention(model)
    assert model.config._attn_implementation == hf_attention.ATTENTION_NAME
    return model


def taught(model: PreTrainedModel, read: Reading) -> list[Tensor]:
    """What a model says of the rows, and what each parameter learns from them."""
    hidden = read(model)
    return [hidden.detach(), *learned(model, hidden)]


def both(family: str, dtype: torch.dtype, **more: Any) -> Iterator[tuple[Tensor, Tensor]]:
    """What is said, then what is learned: by our attention, and by its own."""
    one, other = (grown(TAKEN[family](**more)).to(dtype) for _ in range(2))
    return zip(taught(ours(one), packed), taught(other, own), strict=True)


@pytest.mark.parametrize("family", TAKEN)
def test_hidden_states_and_gradients_are_those_of_its_own_attention(family):
    for mine, its in both(family, torch.float32):
        assert off(mine, its) < 1e-5


@pytest.mark.parametrize("family", EXACT)
def test_where_all_is_in_float64_they_are_so_to_the_tenth_digit(family):
    for mine, its in both(family, torch.float64):
        assert off(mine, its) < 1e-10


@pytest.mark.parametrize("family", TAKEN)
def test_rows_are_longer_than_the_windows_that_families_have(family):
    config = TAKEN[family]()
    assert LENGTH.max() > (getattr(config, "sliding_window", None) or 0)


@pytest.mark.parametrize("family", [name for name in TAKEN if name not in EXPERTS])
def test_in_bfloat16_it_is_as_near_to_the_exact_as_its_own_attention(family):
    rounded = grown(TAKEN[family]()).bfloat16()
    exact = taught(copy.deepcopy(rounded).float(), own)
    theirs, mine = taught(rounded, own), taught(ours(rounded), packed)
    assert {x.dtype for x in mine} == {torch.bfloat16}
    for said in (slice(0, 1), slice(1, None)):  # hidden states, gradients
        a, b, c = (torch.cat([x.flatten() for x in found[said]]) for found in (mine, theirs, exact))
        assert 0 < (a - c).norm() < 1.2 * (b - c).norm()


@pytest.mark.parametrize("family", [name for name in TAKEN if name not in EXPERTS])
def test_under_autocast_it_learns_as_nearly_the_same_as_by_its_own_attention(family):
    exact = taught(grown(TAKEN[family]()), own)[1:]
    one, other = ours(grown(TAKEN[family]())), grown(TAKEN[family]())
    with torch.autocast("cpu", torch.bfloat16):
        said, its = packed(one), own(other)
    mine, theirs, exact = (
        torch.cat([x.flatten() for x in found])
        for found in (learned(one, said), learned(other, its), exact)
    )
    assert 0 < (mine - exact).norm() < 1.2 * (theirs - exact).norm()


@pytest.mark.parametrize("family", TAKEN)
def test_gradient_checkpointing_reads_every_layer_again_and_changes_no_gradient(family):
    model, read = ours(grown(TAKEN[family]())), []
    plain = learned(model, packed(model))
    enable_gradient_checkpointing(model)
    for dropout in (x for x in model.modules() if isinstance(x, nn.Dropout)):
        dropout.posterior_mean = 0.0
    layers = [x for x in model.modules() if isinstance(x, GradientCheckpointingLayer)]
    for layer in layers:
        next(layer.children()).register_forward_pre_hook(lambda *_: read.append(1))
    again = learned(model, packed(model.train()))
    assert len(read) == 2 * len(layers) > 0
    assert all(x < 1e-6 for x in map(off, again, plain))


@pytest.mark.parametrize("family", [*REFUSED, *RECURRENT])
def test_a_model_that_attends_otherwise_keeps_its_own_way(family):
    model = grown({**REFUSED, **RECURRENT}[family]())
    before, said = model.config._attn_implementation, own(model)
    assert not hf_attention.try_packed_attention(model)
    assert model.config._attn_implementation == before
    assert torch.equal(own(model), said)


def test_a_scale_of_the_model_s_own_is_kept():
    (mine, its), *_ = both("gemma2", torch.float32, query_pre_attn_scalar=3)
    (_, without), *_ = both("gemma2", torch.float32)
    assert off(mine, its) < 1e-5
    assert off(its, without) > 1e-2
