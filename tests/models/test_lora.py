"""The layers with adapters: names, all linear layers, or a pattern in linear time."""

import re
import time

import pytest
from torch import nn

from grupo.models.lora import Lora, add_adapters, target_modules
from grupo.util.errors import ConfigError
from tests.helpers.recurrent_model import random_model
from tests.helpers.tiny_lm import FAMILIES


def adapted(module: nn.Module) -> set[str]:
    names = (name for name, _ in module.named_modules() if name.endswith("lora_A"))
    return {name.removeprefix("base_model.model.").removesuffix(".lora_A") for name in names}


def test_a_pattern_matches_whole_names_of_modules():
    model = random_model(FAMILIES["llama"]())
    pattern = r"model\.layers\.\d+\.self_attn\.[qv]_proj"
    expected = {name for name, _ in model.named_modules() if re.fullmatch(pattern, name)}
    assert adapted(add_adapters(model, Lora(2, targets=pattern))) == expected != set()


def test_a_pattern_without_a_layer_is_a_config_error():
    with pytest.raises(ConfigError, match=r"^targets: 'q_proj'\. .* Allowed: all-linear, "):
        add_adapters(random_model(FAMILIES["llama"]()), Lora(2, targets="q_proj"))


def test_no_regular_expression_is_a_config_error():
    with pytest.raises(ConfigError, match=r"^targets: '\[' is not a regular expression"):
        target_modules(("a",), "[")


def test_a_pattern_that_backtracks_without_end_takes_linear_time():
    start = time.perf_counter()
    target_modules(["a" * 200], "(a+)+b")
    assert time.perf_counter() - start < 5.0
