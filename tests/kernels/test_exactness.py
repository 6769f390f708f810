"""Hidden states are compared with those in float32, in proportion to the model's own rounding."""

import copy

import pytest
import torch

from grupo.kernels.exactness import FLOAT32_ERROR, ROUNDING_RATIO, ExpectedStates, relative_error
from grupo.kernels.float32_precision import Float32Activations
from tests.helpers.attention_models import SUPPORTED
from tests.helpers.packed_rows import padded
from tests.helpers.recurrent_model import random_model

TOKEN, _ = padded([[5, 6, 7, 8], [9, 10, 11, 12]])


def hidden_of(model):
    return model.base_model(input_ids=TOKEN, use_cache=False).last_hidden_state


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("family", SUPPORTED)
def test_a_model_in_half_precision_computes_what_its_float32_copy_does(family, dtype):
    model = random_model(SUPPORTED[family]()).to(dtype)
    weights = [(p, p.data_ptr(), p.dtype) for p in model.parameters()]
    with torch.no_grad(), Float32Activations():
        hidden = hidden_of(model)
    assert hidden.dtype == torch.float32
    exact = hidden_of(copy.deepcopy(model).float())
    assert (hidden - exact).norm() < 1e-5 * exact.norm()
    assert [(p, p.data_ptr(), p.dtype) for p in model.parameters()] == weights


def test_float32_states_may_differ_by_a_thousandth():
    hidden = torch.eye(4)
    expected = ExpectedStates.of(lambda: hidden)
    assert not expected.deviation(hidden * (1 + 0.9 * FLOAT32_ERROR))
    assert expected.deviation(hidden * 1.002) == "differs by 0.002 (allowed 0.001)"


def test_half_precision_may_be_a_few_times_as_far_from_float32_as_the_model_itself():
    model = random_model(SUPPORTED["llama"]()).bfloat16()
    with torch.no_grad():
        own, expected = hidden_of(model), ExpectedStates.of(lambda: hidden_of(model))
    own_error = relative_error(own, expected.values)
    assert expected.allowed == ROUNDING_RATIO * own_error > FLOAT32_ERROR
    assert not expected.deviation(own)
    exact = expected.values
    assert not expected.deviation(exact + 0.9 * ROUNDING_RATIO * own_error * exact)
    assert "differs by" in expected.deviation(exact + 1.1 * ROUNDING_RATIO * own_error * exact)


def test_numbers_that_are_not_finite_differ():
    expected = ExpectedStates.of(lambda: torch.ones(2, 3))
    assert expected.deviation(torch.full((2, 3), torch.nan)).startswith("differs by nan")
