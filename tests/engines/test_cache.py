"""A cache that grows in place holds what one made by copying holds."""

import torch
from transformers import Gemma2Config, LlamaConfig
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from grupo.engines.cache import Growing, growing


def states(tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(3, 2, tokens, 4), torch.randn(3, 2, tokens, 4)


def test_it_holds_what_was_read_and_what_was_said_since():
    ours, theirs = Growing(), DynamicLayer()
    for tokens in (5, *[1] * 90, 7, 200, 1):  # more than the room there is at first
        new = states(tokens)
        for mine, yours in zip(ours.update(*new), theirs.update(*new), strict=True):
            assert torch.equal(mine, yours)
        assert ours.get_seq_length() == theirs.get_seq_length()


def test_rows_are_chosen_from_it_repeated_and_left_out():
    ours, theirs = Growing(), DynamicLayer()
    for rows in ([2, 0, 0], [1, 1, 0], [0, 2, 1]):
        new = states(6)
        ours.update(*new)
        theirs.update(*new)
        for layer in (ours, theirs):
            layer.batch_select_indices(torch.tensor(rows))
    assert torch.equal(ours.keys, theirs.keys)
    assert torch.equal(ours.values, theirs.values)


def test_a_token_moves_none_of_the_others():
    layer = Growing()
    layer.update(*states(5))
    place = layer.keys.data_ptr()
    for _ in range(60):
        layer.update(*states(1))
    assert layer.keys.data_ptr() == place


def test_layers_that_see_a_window_only_stay_as_they_are():
    window = Gemma2Config(num_hidden_layers=2, sliding_window=8)
    kinds = [type(layer) for layer in growing(window).layers]
    assert kinds == [DynamicSlidingWindowLayer, Growing]
    assert [type(x) for x in growing(LlamaConfig(num_hidden_layers=2)).layers] == [Growing] * 2
