import io

from rich.console import Console

from grupo.report.tables import eval_table, score_table, summary_lines
from grupo.rollouts.evaluate import EvalResult, Proportion

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


def shown(renderable) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def row(said: str, label: str) -> list[str]:
    line = next(line for line in said.splitlines() if label in line)
    return [cell.strip() for cell in line.strip("│\n ").split("│")]


def test_before_and_after_stand_beside_each_other_with_their_difference():
    said = shown(
        eval_table(
            {"before": BEFORE.to_data(), "step 5": BEFORE.to_data(), "after": AFTER.to_data()}
        )
    )
    assert row(said, "greedy") == [
        "greedy",
        "25.0 % [20.0, 30.0]",
        "75.0 % [70.0, 80.0]",
        "+50.0 points",
    ]
    assert row(said, "pass@1")[0] == "sampled (pass@1)"
    assert row(said, "pass@1")[3] == "+47.5 points"  # 60 - 12.5
    assert row(said, "pass@8")[3] == "-5.0 points"
    assert "step 5" not in said
    assert "pass@4" not in said


def test_a_run_cut_off_early_has_one_column():
    said = shown(eval_table({"before": BEFORE.to_data()}))
    assert row(said, "greedy") == ["greedy", "25.0 % [20.0, 30.0]"]
    assert "difference" not in said


def test_a_run_without_held_out_tasks_has_an_empty_table():
    assert eval_table({}).title == "no held-out tasks"
    assert eval_table({}).row_count == 0


def test_one_attempt_has_no_row_for_pass_at_k():
    one = EvalResult(Proportion(0, 0, 0), Proportion(0, 0, 0), {1: Proportion(0, 0, 0)}).to_data()
    assert "pass@1)" in shown(eval_table({"before": one}))
    assert shown(eval_table({"before": one})).count("│ ") == 4  # two rows of two cells


def test_one_score_shows_every_k():
    said = shown(score_table(BEFORE))
    assert row(said, "pass@4") == ["pass@4", "30.0 % [20.0, 40.0]"]
    assert row(said, "pass@8") == ["pass@8", "50.0 % [40.0, 60.0]"]
    assert "│ pass@1 " not in said


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
        "tokens/backpropagated": 8000.0,
        "tokens/nonzero_advantage": 7500.0,
        "tokens/unused": 3947.0,
        "time/generate": 20.0,
        "time/score": 2.0,
        "time/update": 24.0,
        "time/other": 4.0,
        "time/step": 50.0,
    },
}


def test_a_summary_says_what_was_done():
    lines = [line.plain for line in summary_lines(SUMMARY)]
    assert lines == [
        "Method() on org/[bold]model",
        "12 steps in 1:01, 11,947 tokens sampled",
        "tokens: 11,947 sampled, 8,000 trained, 7,500 with signal, 3,947 wasted; 239 a second",
        "time of a step: sampling 40 %, waiting for judges 4 %, measuring 0 %, updating 48 %,"
        " the rest 8 %",
    ]


def test_failed_rollouts_are_warned_of():
    *_, last = summary_lines(SUMMARY | {"failed_rollouts": 3})
    assert last.plain.startswith("Warning: 3 rollouts could not be judged")
