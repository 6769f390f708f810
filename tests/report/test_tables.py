"""The summary and score tables of a run."""

import io

from rich.console import Console

from grupo.report.tables import eval_table, score_table, summary_lines
from grupo.rollouts.eval_result import EvalResult, Proportion

BEFORE = EvalResult(
    Proportion(0.25, 0.2, 0.3),
    Proportion(0.125, 0.1, 0.15),
    {1: Proportion(0.125, 0.1, 0.15), 4: Proportion(0.3, 0.2, 0.4), 8: Proportion(0.5, 0.4, 0.6)},
)
AFTER = EvalResult(
    Proportion(0.75, 0.7, 0.8),
    Proportion(0.6, 0.5, 0.7),
    {1: Proportion(0.6, 0.5, 0.7), 4: Proportion(0.7, 0.6, 0.8), 8: Proportion(0.45, 0.35, 0.55)},
)


def rendered(renderable) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def row(output: str, label: str) -> list[str]:
    line = next(line for line in output.splitlines() if label in line)
    return [cell.strip() for cell in line.strip("│\n ").split("│")]


def test_scores_before_and_after_are_shown_with_their_difference():
    output = rendered(
        eval_table(
            {"before": BEFORE.to_data(), "step 5": BEFORE.to_data(), "after": AFTER.to_data()}
        )
    )
    assert row(output, "greedy") == [
        "greedy",
        "25.0 % [20.0, 30.0]",
        "75.0 % [70.0, 80.0]",
        "+50.0 points",
    ]
    assert row(output, "pass@1")[0] == "sampled (pass@1)"
    assert row(output, "pass@1")[3] == "+47.5 points"  # 60 - 12.5
    assert row(output, "pass@8")[3] == "-5.0 points"
    assert "step 5" not in output
    assert "pass@4" not in output


def test_run_with_one_evaluation_has_one_column():
    output = rendered(eval_table({"before": BEFORE.to_data()}))
    assert row(output, "greedy") == ["greedy", "25.0 % [20.0, 30.0]"]
    assert "difference" not in output


def test_run_without_held_out_tasks_has_an_empty_table():
    assert str(eval_table({}).title) == "no held-out tasks"
    assert eval_table({}).row_count == 0


def test_single_attempt_has_no_pass_at_k_row():
    zero = Proportion(0, 0, 0)
    scores = {"before": EvalResult(zero, zero, {1: zero}).to_data()}
    assert "pass@1)" in rendered(eval_table(scores))
    assert rendered(eval_table(scores)).count("│ ") == 4  # two rows of two cells


def test_score_table_shows_every_k():
    output = rendered(score_table(BEFORE))
    assert row(output, "pass@4") == ["pass@4", "30.0 % [20.0, 40.0]"]
    assert row(output, "pass@8") == ["pass@8", "50.0 % [40.0, 60.0]"]
    assert "│ pass@1 " not in output


SUMMARY = {
    "method": "Method()",
    "model": "org/[bold]model",
    "steps": 12,
    "seconds": 61.0,
    "tokens": 11947,
    "failed_rollouts": 0,
    "held_out": {},
    "ledger": {
        "tokens/generated": 11947.0,
        "tokens/returned": 9000.0,
        "tokens/backpropagated": 8000.0,
        "tokens/with_advantage": 7500.0,
        "tokens/unused": 3947.0,
        "time/generate": 20.0,
        "time/score": 2.0,
        "time/update": 24.0,
        "time/other": 4.0,
        "time/step": 50.0,
    },
}


def test_summary_lines_show_tokens_and_times():
    lines = [line.plain for line in summary_lines(SUMMARY)]
    assert lines == [
        "model: org/[bold]model",
        "12 steps in 1:01, 11,947 tokens generated",
        "tokens: 11,947 generated, 9,000 returned by the sampler, 8,000 backpropagated,"
        " 7,500 with an advantage, 3,947 unused; 239 tokens/s",
        "time of a step: generating 40 %, scoring 4 %, log-probabilities 0 %, updating 48 %,"
        " other 8 %",
    ]


def test_one_step_and_one_token_are_singular():
    counts = [line.plain for line in summary_lines(SUMMARY | {"steps": 1, "tokens": 1})]
    assert counts[1] == "1 step in 1:01, 1 token generated"


def test_failed_rollouts_give_a_warning():
    *_, last = summary_lines(SUMMARY | {"failed_rollouts": 3})
    assert last.plain.startswith("Warning: 3 rollouts could not be scored")
