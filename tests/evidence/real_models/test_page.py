"""docs/real_model.md equals what its command writes, and its models have their published sizes."""

import re

import pytest

from grupo.config.parse_value import parse_value
from grupo.evidence.real_models.page import (
    DEVICES,
    SHARDING,
    make_setup,
    model_size,
    real_model_page,
    sharded_row,
)
from grupo.evidence.real_models.shapes import SHAPES
from grupo.models.sharding import FSDP2
from tests.helpers.paths import ROOT

PUBLISHED = {  # billions of parameters, from the model cards
    "Qwen2.5-0.5B": 0.49,
    "Qwen3-0.6B": 0.6,
    "Qwen2.5-1.5B": 1.54,
    "Qwen2.5-3B": 3.09,
    "Llama-3.2-3B": 3.21,
    "Qwen2.5-7B": 7.61,
    "Llama-3.1-8B": 8.03,
    "Qwen3-8B": 8.19,
}


def test_the_page_is_what_the_command_writes():
    assert (ROOT / "docs" / "real_model.md").read_text() == real_model_page(), "run `make docs`"


@pytest.mark.parametrize("name", SHAPES)
def test_a_model_has_its_published_number_of_parameters(name):
    assert model_size(name).num_parameters / 1e9 == pytest.approx(PUBLISHED[name], abs=0.01)


def test_adapters_need_less_memory_than_all_weights_and_quantized_weights_still_less():
    for name in SHAPES:
        full, lora, qlora = (make_setup(name, t).memory.peak for t in ("full", "LoRA", "QLoRA"))
        assert full > lora > qlora


def test_a_device_is_the_smallest_with_room_for_the_error_of_the_estimate():
    setup = make_setup("Qwen2.5-0.5B", "full")
    size = int(setup.device.removesuffix(" GB"))
    needed = setup.memory.peak / 1e9 * 1.15 + 1
    assert needed <= size
    assert all(needed > smaller for smaller in DEVICES if smaller < size)


def test_a_model_that_fits_on_no_device_is_said_to():
    assert make_setup("Qwen2.5-7B", "full").device == "none"


def test_a_model_that_fits_on_no_gpu_is_divided_among_several():
    setup = make_setup("Qwen2.5-7B", "full")
    (name, count, peak) = sharded_row(setup)
    memory = {ranks: setup.sharded_memory(ranks).peak / 1e9 for ranks in (2, 4)}
    assert (name, count, peak) == ("Qwen2.5-7B", "4", f"{memory[4]:.1f}")
    assert memory[4] * 1.15 + 1 <= 80 < memory[2] * 1.15 + 1
    assert f"| {name} | {count} | {peak} |" in real_model_page()


def test_the_printed_sharding_is_the_one_that_is_computed():
    text = re.search(r'--policy.sharding "(.*)"', real_model_page())
    assert text
    assert parse_value(text[1], FSDP2 | None, "policy.sharding") == SHARDING
