"""When a run ends early, and which evaluated steps are the best."""

import math
from dataclasses import replace

import pytest

from grupo.algo.losses import KL, Clip
from grupo.config.validate import check_recipe
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.recipe import EarlyStopping, Evaluation, Recipe
from grupo.rewards import ExactMatch
from grupo.rollouts.eval_scores import best_steps
from grupo.storage.keep import KeepCheckpoints
from grupo.tasks import ReasoningGym
from grupo.testing.smoke.run import echo_recipe
from grupo.training.start import create_trainer, reopen_trainer
from grupo.training.stopping import StopInputs, kl_for_early_stopping, stop_reason
from grupo.util.errors import ConfigError

RECIPE = Recipe(
    CausalLM("model"),
    SingleTurn((RewardTerm("right", ExactMatch()),)),
    ReasoningGym("chain_sum", 50),
    eval_tasks=10,
    evaluation=Evaluation(every=10),
)


def scores(*values: float | None) -> dict[str, dict]:
    """An evaluation before training and one every ten steps; None: no rollout could be scored."""
    labels = ["before", *(f"step {10 * i}" for i in range(1, len(values)))]
    data = [{} if x is None else {"sampled": x} for x in values]
    return dict(zip(labels, data, strict=False))


def reason(stopping: EarlyStopping, *values: float | None, **changes) -> str:
    inputs = StopInputs(10 * len(values), scores(*values), 0, 0.0, math.nan)
    return stop_reason(RECIPE.replace(early_stopping=stopping), replace(inputs, **changes))


def test_a_run_ends_after_max_steps():
    assert reason(EarlyStopping(), step=99) == ""
    assert reason(EarlyStopping(), step=100) == "max_steps is 100"


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ((0.5, 0.4), False),  # one evaluation without improvement
        ((0.5, 0.4, 0.5), True),  # two: an equal value is none
        ((0.1, 0.2, 0.3, 0.4), False),
        ((0.5, 0.4, 0.6, 0.5), False),  # an improvement starts the count again
        ((0.5, None, None, None), False),  # unscored evaluations do not count
        ((0.5, 0.4, None, 0.4), True),
        ((None, 0.4), False),
        ((0.5, math.nan, 0.4), False),
    ],
)
def test_patience_counts_evaluations_without_improvement(values, ends):
    assert bool(reason(EarlyStopping(patience=2), *values)) is ends


def test_an_increase_up_to_min_delta_is_no_improvement():
    stopping = EarlyStopping(patience=2, min_delta=0.1)
    assert reason(stopping, 0.5, 0.55, 0.59)
    assert not reason(stopping, 0.5, 0.55, 0.61)


def test_the_reason_names_metric_value_step_and_field():
    assert reason(EarlyStopping(patience=2), 0.25, 0.5, 0.4, 0.5) == (
        "eval/sampled has not exceeded 0.5, its value at step 10, by more than 0 in 2 evaluations,"
        " early_stopping.patience is 2"
    )
    assert reason(EarlyStopping(max_tokens=5), generated_tokens=1234) == (
        "1,234 tokens were generated, early_stopping.max_tokens is 5"
    )
    assert reason(EarlyStopping(0.9), 0.5, 0.95) == (
        "eval/sampled is 0.95, early_stopping.min_solve_rate is 0.9"
    )
    assert reason(EarlyStopping(max_kl=0.5), early_stopping_kl=0.75) == (
        "policy/kl_ref is 0.75, early_stopping.max_kl is 0.5"
    )


def test_a_run_continues_with_a_kl_at_its_limit_or_not_measured():
    for kl in (0.5, 0.0, math.nan):
        assert reason(EarlyStopping(max_kl=0.5), early_stopping_kl=kl) == ""
    assert reason(EarlyStopping(max_kl=0.5), early_stopping_kl=math.inf)


def test_a_run_ends_when_its_budget_of_executions_is_used():
    limit = EarlyStopping(max_executions=100)
    assert reason(limit, executions=99.0) == ""
    expected = "100 programs were executed, early_stopping.max_executions is 100"
    assert reason(limit, executions=100.0) == expected
    limited = RECIPE.replace(early_stopping=limit)
    assert limited.progress(0, 0, 0.0, 80) == 0.8
    assert RECIPE.progress(0, 0, 0.0, 80) == 0.5 / RECIPE.max_steps


def test_the_kl_of_a_step_is_that_of_its_metric():
    limits = EarlyStopping(max_kl=0.5, kl_metric="update/kl_old")
    assert kl_for_early_stopping(limits, {"loss": 1.0, "update/kl_old": 0.25}) == 0.25
    assert math.isnan(kl_for_early_stopping(limits, {}))  # a step without updates
    assert math.isnan(kl_for_early_stopping(EarlyStopping(), {"loss": 1.0, "policy/kl_ref": 0.25}))
    with pytest.raises(ConfigError, match=r"kl_metric: 'policy/kl_ref' is not measured by this"):
        kl_for_early_stopping(EarlyStopping(max_kl=0.5), {"loss": 1.0, "update/kl_old": 0.25})


def test_the_best_steps_are_those_with_the_largest_values_and_the_earliest_of_equal_ones():
    values = scores(0.9, 0.3, 0.5, None, 0.5, 0.4)
    assert best_steps(values, 50, "eval/sampled", 3) == [20, 40, 50]
    assert best_steps(values, 50, "eval/sampled", 9) == [20, 40, 50, 10]
    assert best_steps(scores(0.9), 50, "eval/sampled", 1) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"keep": KeepCheckpoints(best=1), "evaluation": Evaluation()},
            "keep.best: evaluation.every is 0: nothing is evaluated during training. Allowed: 0,",
        ),
        (
            {"early_stopping": EarlyStopping(patience=1), "eval_tasks": 0},
            "early_stopping.patience: eval_tasks is 0: nothing is evaluated. Allowed: 0.",
        ),
        (
            {"keep": KeepCheckpoints(metric="eval/sample")},
            "keep.metric: 'eval/sample' is no evaluation metric. Did you mean 'eval/sampled'?",
        ),
        (
            {"early_stopping": EarlyStopping(metric="eval/pass@3")},
            "early_stopping.metric: 'eval/pass@3' is no evaluation metric. Did you mean",
        ),
        (
            {"early_stopping": EarlyStopping(max_kl=0.1)},
            "early_stopping.kl_metric: 'policy/kl_ref' is measured only if the loss has a KL term"
            " to this model. Allowed: update/kl_old.",
        ),
    ],
)
def test_stopping_by_numbers_that_are_not_measured_is_refused(changes, message):
    with pytest.raises(ConfigError) as error:
        check_recipe(RECIPE.replace(**changes))
    assert str(error.value).startswith(message)


def test_stopping_by_measured_numbers_is_accepted():
    method = Method(loss=Clip() + 0.1 * KL())
    stopping = EarlyStopping(patience=2, metric="eval/pass@8", max_kl=0.1)
    keep = KeepCheckpoints(best=2, metric="eval/greedy")
    check_recipe(RECIPE.replace(method=method, early_stopping=stopping, keep=keep))
    other = EarlyStopping(max_kl=0.1, kl_metric="update/kl_old")
    check_recipe(RECIPE.replace(early_stopping=other))


def test_a_finished_run_with_a_damaged_checkpoint_has_no_stop_reason_until_it_ends_again(tmp_path):
    recipe = echo_recipe(grpo(group_size=2, kl_coef=0.0)).replace(prompts_per_step=1, max_steps=1)
    trainer = create_trainer(recipe, tmp_path / "run")
    with trainer.lock:
        assert trainer()["stop_reason"] == "max_steps is 1"
    (tmp_path / "run" / "checkpoints" / "latest").write_bytes(b"damaged")
    resumed = reopen_trainer(tmp_path / "run")
    with resumed.lock:
        resumed.restore()
        assert (resumed.state.step, resumed.state.stop_reason) == (1, "")
        assert resumed()["stop_reason"] == "max_steps is 1"
