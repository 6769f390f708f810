"""Workloads with a model of SmolLM2's shape: its size, the bound of its speed, and the targets."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import LlamaForCausalLM

from benchmarks.bound import matrix_products
from benchmarks.models import build_config
from benchmarks.page import targets_table
from benchmarks.targets import SPEEDUP
from benchmarks.workloads import REAL_WORKLOADS, SMOLLM2, Shape


def test_product_weights_are_all_weights_of_a_tied_model_without_its_norms():
    with torch.device("meta"):
        model = LlamaForCausalLM(build_config(SMOLLM2))
    norms = (2 * 30 + 1) * 576
    assert SMOLLM2.product_weights == model.num_parameters() - norms == 134_479_872
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_small_shapes_have_two_query_heads_for_each_key_head():
    heads = [(s.query_heads, s.key_heads) for s in (Shape(128), Shape(256), Shape(512))]
    assert heads == [(2, 1), (4, 2), (8, 4)]


def test_the_bound_computes_as_many_multiplications_as_the_new_tokens_need():
    multiplications = 32 * 48 * SMOLLM2.product_weights
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        matrix_products(multiplications, torch.float32)()
    assert counter.get_total_flops() == pytest.approx(2 * multiplications, rel=1e-3)


def test_every_real_workload_has_a_target_for_each_of_its_precisions():
    precisions = {name: set(workload.precisions) for name, workload in REAL_WORKLOADS.items()}
    assert precisions == {name: set(targets) for name, targets in SPEEDUP.items()}


def test_the_table_has_targets_beside_the_speed_up_and_the_part_of_the_peak_memory():
    side = {"seconds": 2.0, "sample": 1.0, "update": 1.0, "tokens": 1536, "others": 0.0}
    result = {
        "ratio": 5.0,
        "low": 4.5,
        "high": 5.5,
        "pairs": 3,
        "ours": side | {"peak": 3e9},
        "peer": side | {"peak": 12e9},
    }
    header, _, row = targets_table({"real-long": {"float32": result}}).splitlines()
    cells = dict(zip(header.split("|")[2:7], row.split("|")[2:7], strict=True))
    assert cells == {
        "precision": "float32",
        "times as fast (95 %)": "**5.00** (4.50 to 5.50)",
        "at least": "8",
        "peak of TRL's": "0.25",
        "at most": "0.4",
    }
