"""The progress display of a training run."""

import io
import re
import sys
from threading import Thread

import pytest
from rich.console import Console

from grupo.report.progress_bar import ProgressDisplay
from grupo.report.progress_line import Progress, progress_line
from grupo.report.step_line import active_alarms
from grupo.rollouts.eval_result import EvalResult, Proportion
from grupo.training.start import run_training
from grupo.util.console import LinesOfThreads

STEP = {
    "reward/mean": 0.5,
    "reward/std": 0.25,
    "reward/digits": 0.75,
    "groups/nonzero_std_frac": 0.5,
    "groups/trained": 4.0,
    "completions/length_mean": 12.0,
    "completions/truncated_frac": 0.25,
    "policy/entropy": 1.5,
    "policy/kl_ref": 0.01,
    "sampler_mismatch/logp_diff_mean": 1e-7,
    "grad_norm": 0.3,
    "throughput/tokens_per_s": 2048.0,
    "time/step": 2.0,
}

HALF = Proportion(0.5, 0.4, 0.6)


def plain() -> Console:
    return Console(file=io.StringIO(), width=100)


def terminal() -> Console:
    return Console(file=io.StringIO(), width=100, force_terminal=True, force_interactive=True)


def text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def plain_text(console: Console) -> str:
    """The text without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text(console))


def test_lines_that_threads_print_during_training_stay_whole(recipe, monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    console = terminal()
    display = ProgressDisplay(console)
    display.on_train_begin(recipe, 0)
    for write, line in ((sys.stdout.write, "scored 1"), (print, "scored 2")):
        thread = Thread(target=write, args=(line,))
        thread.start()
        thread.join()
    sys.stdout.write("scored 3")
    sys.stdout.write(" and 4\n")
    display.on_train_end()
    assert re.findall(r"scored [0-9 and]+\r?\n", plain_text(console)) == [
        "scored 2\n",
        "scored 3 and 4\n",
        "scored 1\n",
    ]
    print("after")
    assert sys.stdout.getvalue() == "after\n"


def test_a_thread_does_not_continue_the_line_of_an_ended_thread():
    stream = LinesOfThreads(io.StringIO())
    for _ in range(20):  # most have the identifier of an ended one
        thread = Thread(target=stream.write, args=("unfinished",))
        thread.start()
        thread.join()
    stream.end_lines()
    assert stream.getvalue() == "unfinished\n" * 20


def test_step_line_has_the_main_numbers_only(recipe):
    console = plain()
    display = ProgressDisplay(console, now=lambda: 0.0)
    display.on_train_begin(recipe, 0)
    display.on_step_end(1, STEP)
    display.on_train_end()
    assert text(console).splitlines()[1:] == ["step 1/3  reward 0.5  2048 tok/s  0:04 left"]


def test_step_line_has_the_last_held_out_score_and_the_number_of_warnings(recipe):
    console = plain()
    display = ProgressDisplay(console, now=lambda: 0.0)
    display.on_train_begin(recipe, 0)
    display.on_evaluate("before", EvalResult(HALF, HALF, {1: HALF}))
    display.on_step_end(1, STEP | {"rollouts/failed": 1.0, "groups/nonzero_std_frac": 0.0})
    assert text(console).splitlines()[-1] == (
        "step 1/3  reward 0.5  held-out 50% (step 0)  2048 tok/s  0:04 left  2 warnings"
    )


def test_verbose_display_adds_every_main_metric(recipe):
    console = plain()
    display = ProgressDisplay(console, now=lambda: 0.0, verbose=True)
    display.on_train_begin(recipe, 0)
    display.on_step_end(1, STEP)
    assert text(console).splitlines()[-1] == (
        "  reward 0.5 (digits 0.75) | nonzero std 50% | length 12 | truncated 25%"
        " | entropy 1.5 | kl 0.01 | mismatch 1e-07 | grad norm 0.3 | tokens/s 2048"
    )


def test_line_of_a_long_run_has_at_most_80_columns():
    progress = Progress(10000, 10000, held_out=1.0, seconds_left=359999, warnings=1000)
    metrics = {"reward/mean": -0.000531, "throughput/tokens_per_s": 123456.0}
    line = progress_line(progress, metrics)
    assert len(line) <= 80
    assert line.plain == (
        "step 10000/10000  reward -0.000531  held-out 100%  123456 tok/s  1,000 warnings"
    )


def test_line_of_a_step_without_scores_says_so():
    line = progress_line(Progress(1, 3), {"reward/mean": float("nan")})
    assert line.plain == "step 1/3  not scored  0:00 left"


def test_line_of_a_step_in_which_no_group_ended_says_so():
    metrics = {"reward/mean": float("nan"), "groups/sampled": 0.0, "groups/continued": 4.0}
    line = progress_line(Progress(1, 3), metrics)
    assert line.plain == "step 1/3  no group ended  0:00 left"
    assert active_alarms({**metrics, "groups/trained": 0.0}) == {}
    assert [*active_alarms({"groups/trained": 0.0, "groups/sampled": 4.0})] == ["no_trained_groups"]


def test_step_line_is_coloured_on_a_terminal(recipe):
    console = terminal()
    display = ProgressDisplay(console, now=lambda: 0.0)
    display.on_train_begin(recipe, 0)
    display.on_step_end(1, STEP)
    display.on_train_end()
    assert "\x1b[36mreward 0.5\x1b[0m" in text(console)


def test_warnings_of_a_step_have_a_fixed_order(recipe):
    console = plain()
    display = ProgressDisplay(console, now=lambda: 0.0)
    display.on_train_begin(recipe, 0)
    causes = {"groups/nonzero_std_frac": 0.0, "groups/trained": 0.0, "grad_nonfinite": 1.0}
    display.on_step_end(1, STEP | causes | {"rollouts/failed": 1.0})
    warnings = [line for line in text(console).splitlines() if line.startswith("Warning, step 1: ")]
    words = ("1 rollout could not", "gradient is not finite", "No group", "differ in no group")
    for line, part in zip(warnings, words, strict=True):
        assert part in line


def test_plain_output_has_no_escape_codes(recipe):
    console = plain()
    display = ProgressDisplay(console)
    display.on_train_begin(recipe, 0)
    display.on_message("torn \x1b[31mline")
    display.on_step_end(1, STEP | {"rollouts/failed": 2.0})
    zero = Proportion(0, 0, 0)
    display.on_evaluate("before", EvalResult(zero, zero, {1: zero}))
    display.on_train_end()
    assert "\x1b" not in text(console)
    assert r"torn \x1b[31mline" in text(console)


def test_plain_lines_are_printed_every_five_seconds_and_at_the_end(recipe):
    console, times = plain(), iter([0.0, 0.0, 3.0, 6.0, 6.0, 7.0, 8.0])
    display = ProgressDisplay(console, now=lambda: next(times))
    display.on_train_begin(recipe.replace(max_steps=9), 0)
    for step in (1, 2, 3, 4):  # at 0, 3, 6 and 7 seconds; a printed step reads the clock twice
        display.on_step_end(step, STEP)
    display.on_train_end()
    printed = [line.split("  ")[0] for line in text(console).splitlines()[1:]]
    assert printed == ["step 1/9", "step 3/9", "step 4/9"]


def test_metrics_of_a_step_without_update_are_left_out(recipe):
    console = plain()
    display = ProgressDisplay(console, now=lambda: 0.0)
    display.on_train_begin(recipe, 0)
    display.on_step_end(1, {"reward/mean": float("nan"), "groups/trained": 0.0, "time/step": 1.0})
    assert "step 1/3  not scored  0:02 left" in text(console)
    assert "No group was trained on" in text(console)


@pytest.mark.parametrize(
    ("metric", "value", "message"),
    [
        ("rollouts/failed", 3.0, "3 rollouts could not be scored"),
        ("grad_nonfinite", 0.5, "not finite"),
        ("sampler_mismatch/logp_diff_mean", 0.051, "disagree"),
        ("completions/truncated_frac", 0.51, "The token limit ended 51% of the rollouts"),
        ("groups/trained", 0.0, "No group was trained on"),
        ("groups/nonzero_std_frac", 0.0, "every advantage is 0"),
    ],
)
def test_alarm_is_printed_when_its_cause_appears_and_returns(recipe, metric, value, message):
    console = plain()
    display = ProgressDisplay(console, now=lambda: 0.0)
    display.on_train_begin(recipe.replace(max_steps=9), 0)
    for step, metrics in enumerate([STEP, STEP | {metric: value}, STEP | {metric: value}, STEP], 1):
        display.on_step_end(step, metrics)
    assert text(console).count(message) == 1
    assert "Warning, step 2: " in text(console)
    display.on_step_end(5, STEP | {metric: value})
    assert text(console).count(message) == 2


def test_terminal_bar_is_replaced_by_the_last_line(recipe):
    console = terminal()
    display = ProgressDisplay(console, now=lambda: 0.0)
    display.on_train_begin(recipe, 0)
    display.on_step_end(1, STEP)
    display.on_train_end()
    assert not display.display.is_started
    assert "━" in text(console)
    assert plain_text(console).endswith("step 1/3  reward 0.5  2048 tok/s  0:04 left\n")


def test_evaluation_line_has_greedy_sampled_and_the_largest_k(recipe):
    console = plain()
    pass_at_k = {1: Proportion(0.2, 0.1, 0.3), 8: Proportion(0.5, 0.4, 0.6)}
    ProgressDisplay(console).on_evaluate(
        "before", EvalResult(Proportion(0.25, 0.2, 0.3), pass_at_k[1], pass_at_k)
    )
    assert text(console) == (
        "held-out before: greedy 0.250 [0.200, 0.300], sampled 0.200 [0.100, 0.300],"
        " pass@8 0.500 [0.400, 0.600]\n"
    )


def test_display_of_a_real_run(recipe, tmp_path):
    console = plain()
    run_training(recipe, tmp_path / "run", ProgressDisplay(console))
    lines = text(console).splitlines()
    assert "4 prompts x 8 rollouts" in lines[0]
    assert lines[1].startswith("held-out before: greedy")
    assert any(line.startswith("step 3/3  reward 0.") for line in lines)
    assert any(line.startswith("held-out after: greedy") for line in lines)
