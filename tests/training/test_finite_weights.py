"""A run ends before weights that are not numbers are saved."""

import json

import pytest
import torch

from grupo.core.schedules import Exponential
from grupo.storage.checkpoint_dirs import newest_first
from grupo.testing.thread_ranks import run_ranks
from grupo.training.start import run_training
from grupo.training.update.finite_weights import NonFiniteWeightsError, check_finite_weights
from grupo.util.exit_codes import EXIT_STOPPED, exit_code
from grupo.util.run_files import CHECKPOINTS_FOLDER
from tests.helpers.training_components import save_models
from tests.helpers.training_recipes import recipe

RATES = {"optimizer": 0.5}


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), float("nan")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_one_entry_that_is_no_number_is_found(value, dtype):
    weights = [torch.zeros(0), torch.full((3, 5), 1e30, dtype=dtype), torch.ones(7, dtype=dtype)]
    check_finite_weights(weights, RATES, run_ranks(1, lambda ranks: ranks)[0])
    weights[2][6] = value
    message = r"After the update 1 of 3 weight tensors .* the learning rate was 0\.5\."
    with pytest.raises(NonFiniteWeightsError, match=message):
        check_finite_weights(weights, RATES, run_ranks(1, lambda ranks: ranks)[0])


def test_all_ranks_end_if_one_has_such_an_entry():
    def outcome(ranks):
        weights = [torch.tensor([1.0, float("nan") if ranks.rank else 2.0])]
        with pytest.raises(NonFiniteWeightsError) as caught:
            check_finite_weights(weights, RATES, ranks)
        return str(caught.value)

    first, second = run_ranks(2, outcome)
    assert "1 of 1 weight tensors" in first
    assert second == first


@pytest.mark.slow
def test_a_learning_rate_that_destroys_the_weights_ends_the_run(tmp_path):
    save_models(tmp_path / "models")
    run = tmp_path / "run"
    diverging = recipe("grpo", str(tmp_path / "models")).replace(
        learning_rate=Exponential(1e-90, -700.0), max_steps=2, save_every=1, eval_tasks=0
    )
    with pytest.raises(NonFiniteWeightsError) as caught:
        run_training(diverging.replace(evaluation=type(diverging.evaluation)()), run)
    assert exit_code(caught.value) == EXIT_STOPPED
    assert [path.name for path in newest_first(run / CHECKPOINTS_FOLDER)] == ["step-00000001"]
    lines = (run / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1]
