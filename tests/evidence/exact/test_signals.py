import math

import pytest
import torch

from grupo.evidence.exact import FiniteEnv, FiniteTask
from grupo.evidence.exact.signals import PolicyTables, is_available, table_signals

ENV = FiniteEnv((FiniteTask((1.0, 0.0), (0.2, 0.8)),))


def signal(name):
    reference = torch.tensor([[0.5, 0.5]], dtype=torch.float64).log()
    tables = PolicyTables(ENV.moved_logits(0.3), ENV.logits, reference)
    pi = table_signals([name], tables.at(ENV.table_rows), ENV.tokens, ENV.mask)
    return pi[name].flatten().tolist()


MOVED = 0.2 * math.exp(0.6) / (0.2 * math.exp(0.6) + 0.8)
COLD = 0.2**2 / (0.2**2 + 0.8**2)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("logp", [math.log(MOVED), math.log(1 - MOVED)]),
        ("logp@sampler", [math.log(0.2), math.log(0.8)]),
        ("logp@ref", [math.log(0.5)] * 2),
        ("logp@t=0.5", [math.log(COLD), math.log(1 - COLD)]),
        ("collision", [MOVED**2 + (1 - MOVED) ** 2] * 2),
        (
            "reverse_kl@ref",
            [MOVED * math.log(2 * MOVED) + (1 - MOVED) * math.log(2 - 2 * MOVED)] * 2,
        ),
        ("sampled", [1.0, 1.0]),
        ("off_context", [0.0, 0.0]),
    ],
)
def test_a_table_has_exact_signals(name, values):
    assert is_available(name)
    assert signal(name) == pytest.approx(values, rel=1e-12)


@pytest.mark.parametrize(
    "name", ["logp@teacher", "value", "step/reward", "jsd@hinted", "disagreement"]
)
def test_signals_of_other_models_and_of_the_environment_are_not_available(name):
    assert is_available("entropy")
    assert not is_available(name)
