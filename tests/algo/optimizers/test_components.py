"""First updates of every optimizer by hand, and the parameters that weight decay applies to."""

import builtins

import pytest
import torch
from torch import nn

from grupo.algo.optimizers import (
    SGD,
    Adafactor,
    Adam,
    Adam8bit,
    Muon,
    OptimizerSpec,
    ScheduleFreeAdam,
)
from grupo.algo.optimizers.decay import all_parameters
from grupo.algo.optimizers.update import optimizer_step
from grupo.config.parse_value import parse_value
from grupo.models.causal_lm import CausalLM
from grupo.util.errors import ConfigError
from tests.helpers.tiny_lm import save_model

DECAYING = (
    Adam(weight_decay=0.5),
    SGD(weight_decay=0.5),
    Adafactor(weight_decay=0.5),
    ScheduleFreeAdam(weight_decay=0.5),
    Adam8bit(weight_decay=0.5),
    Muon(weight_decay=0.5, adam=Adam(weight_decay=0.5)),
)


def update(spec, weight: list, gradient: list, learning_rate: float = 0.5) -> list:
    """The weights after one update."""
    parameter = nn.Parameter(torch.tensor(weight))
    parameter.grad = torch.tensor(gradient)
    optimizer_step(spec([parameter]), learning_rate, max_grad_norm=100.0)
    return parameter.tolist()


def test_sgd_moves_by_the_learning_rate_times_the_gradient():
    assert update(SGD(), [1.0, 2.0], [0.5, -1.0]) == [0.75, 2.5]


def test_nesterov_momentum_looks_ahead_by_one_update():
    # momentum buffer 0.5; gradient + 0.5 * buffer = 0.75
    assert update(SGD(momentum=0.5, nesterov=True), [1.0], [0.5]) == [0.625]


def test_adafactor_moves_by_the_root_mean_square_of_the_weights():
    # of (3, 4): sqrt(12.5); the first update is the sign of the gradient
    moved = update(Adafactor(), [3.0, 4.0], [0.3, -0.7], learning_rate=0.5)
    assert moved == pytest.approx([3.0 - 0.5 * 12.5**0.5, 4.0 + 0.5 * 12.5**0.5])


def test_muon_orthogonalizes_the_update_of_a_matrix_and_scales_it_to_the_size_of_adams():
    moved = update(Muon(), [[0.0, 0.0], [0.0, 0.0]], [[3.0, 0.0], [0.0, 5.0]], learning_rate=1.0)
    # U V^T is the identity, with singular values of 0.7 to 1.2 after five iterations; the factor
    # of the learning rate is 0.2 * sqrt(2)
    size = 0.2 * 2**0.5
    assert moved[0][1] == moved[1][0] == pytest.approx(0.0, abs=1e-3)
    assert -1.2 * size < moved[0][0] < -0.65 * size
    assert -1.2 * size < moved[1][1] < -0.65 * size


def test_muon_leaves_embeddings_and_vectors_to_adam():
    torch.manual_seed(0)
    shapes = ((3, 4), (4, 4), (4,))
    parameters, others = ([nn.Parameter(torch.ones(shape)) for shape in shapes] for _ in range(2))
    optimizers = Muon()(parameters, parameters[:1]), Adam()(others)
    for group in (parameters, others):
        for p in group:
            p.grad = torch.arange(p.numel()).view_as(p) - 1.5
    for optimizer in optimizers:
        optimizer_step(optimizer, learning_rate=0.1, max_grad_norm=100.0)
    equal = [torch.equal(a, b) for a, b in zip(parameters, others, strict=True)]
    assert equal == [True, False, True]


def test_first_schedule_free_update_is_the_learning_rate_times_the_gradient_sign():
    assert update(ScheduleFreeAdam(eps=0.0), [1.0, 2.0], [0.3, -0.7]) == [0.5, 2.5]


def test_first_8_bit_update_is_the_learning_rate_times_the_gradient_sign():
    assert update(Adam8bit(eps=0.0), [1.0, 2.0], [0.3, -0.7]) == pytest.approx([0.5, 2.5])


@pytest.mark.parametrize("spec", DECAYING, ids=repr)
def test_norms_biases_and_embeddings_do_not_decay(spec):
    parameters = [nn.Parameter(torch.ones(shape)) for shape in ((3, 4), (4, 4), (4,))]
    optimizer = spec(parameters, parameters[:1])
    for p in parameters:
        p.grad = torch.zeros_like(p)
    optimizer_step(optimizer, learning_rate=0.5, max_grad_norm=1.0)
    embedding, matrix, vector = (p.flatten().unique().tolist() for p in parameters)
    assert (embedding, vector) == ([1.0], [1.0])
    assert max(matrix) < 1.0


def test_all_parameters_decay_if_the_recipe_says_so():
    vector = nn.Parameter(torch.ones(2))
    vector.grad = torch.zeros(2)
    adam = Adam(weight_decay=0.5, decayed=all_parameters)
    optimizer_step(adam([vector], [vector]), learning_rate=0.5, max_grad_norm=1.0)
    assert vector.tolist() == [0.75, 0.75]  # 1 - 0.5 * 0.5


def test_embeddings_of_a_model_are_its_input_and_output_embeddings(tmp_path):
    policy = CausalLM(str(save_model(tmp_path)), max_new_tokens=8).build()
    embeddings = policy.embeddings()
    model = policy.hf_model
    layers = (model.get_input_embeddings(), model.get_output_embeddings())
    assert {id(p) for p in embeddings} == {id(layer.weight) for layer in layers}
    assert policy.load_frozen_copy().embeddings() == []


@pytest.mark.parametrize("spec", DECAYING, ids=repr)
def test_command_line_takes_every_optimizer_as_it_prints(spec):
    assert parse_value(repr(spec), OptimizerSpec, "optimizer") == spec


def test_missing_library_is_reported_before_a_run(monkeypatch, tmp_path):
    real_import = builtins.__import__

    def without_libraries(name, *arguments, **options):
        if name in ("schedulefree", "bitsandbytes"):
            raise ImportError(name)
        return real_import(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_libraries)
    with pytest.raises(ConfigError, match=r'schedulefree.*pip install "grupo\[optimizers\]"'):
        ScheduleFreeAdam().check()
    with pytest.raises(ConfigError, match=r'bitsandbytes.*pip install "grupo\[quantization\]"'):
        Adam8bit().check()


def test_nesterov_without_momentum_is_rejected():
    with pytest.raises(ConfigError, match=r"nesterov: True\. Allowed: False without momentum"):
        SGD(nesterov=True)
