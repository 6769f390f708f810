"""The TensorBoard logger, optional dependencies, and plots of a run."""

import json
import sys

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from grupo.report.loggers import TensorBoardLogger
from grupo.report.plots import plot_run
from grupo.rollouts.eval_result import EvalResult, Proportion
from grupo.util.errors import ConfigError


def test_tensorboard_gets_every_metric_and_score(recipe, tmp_path):
    logger = TensorBoardLogger(tmp_path)
    logger.on_train_begin(recipe, 0)
    half = Proportion(0.5, 0, 1)
    logger.on_evaluate("before", EvalResult(Proportion(0.25, 0, 1), half, {1: half}))
    logger.on_step_end(1, {"reward/mean": 0.5, "lr": 0.25})
    logger.on_step_end(2, {"reward/mean": 0.75, "lr": 0.25})
    logger.on_train_end()
    events = EventAccumulator(str(tmp_path)).Reload()
    written = {n: [(e.step, e.value) for e in events.Scalars(n)] for n in events.Tags()["scalars"]}
    assert written == {
        "eval/greedy": [(0, 0.25)],
        "eval/sampled": [(0, 0.5)],
        "eval/pass@1": [(0, 0.5)],
        "reward/mean": [(1, 0.5), (2, 0.75)],
        "lr": [(1, 0.25), (2, 0.25)],
    }


def test_tensorboard_shows_repeated_steps_once_after_a_crash(recipe, tmp_path):
    for start, steps in ((0, (1, 2, 3)), (1, (2, 3))):
        logger = TensorBoardLogger(tmp_path)
        logger.on_train_begin(recipe, start)
        for step in steps:
            logger.on_step_end(step, {"lr": 1.0 + start})
        logger.on_train_end()
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [(e.step, e.value) for e in events.Scalars("lr")] == [(1, 1.0), (2, 2.0), (3, 2.0)]


def test_logging_failure_prints_one_line_and_does_not_raise(recipe, tmp_path):
    (tmp_path / "file").write_text("in the way")
    lines: list[str] = []
    logger = TensorBoardLogger(tmp_path / "file" / "events", lines.append)
    logger.on_train_begin(recipe, 0)
    logger.on_step_end(1, {"lr": 1.0})
    logger.on_train_end()
    assert len(lines) == 1
    assert "logging failed and is disabled" in lines[0]


@pytest.mark.parametrize(
    ("module", "extra", "use"),
    [
        ("torch.utils.tensorboard", "grupo[tensorboard]", lambda path: TensorBoardLogger(path)),
        ("matplotlib.figure", "grupo[plots]", lambda path: plot_run(path, path / "a.png")),
    ],
)
def test_missing_dependency_names_the_extra_to_install(write_run, monkeypatch, module, extra, use):
    run = write_run(metrics=[{"step": 1, "reward/mean": 1.0}])
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError) as error:
        use(run)
    assert extra in str(error.value)


def test_plot_has_readable_labels_and_is_reproducible(real_run, tmp_path):
    first, second = (plot_run(real_run, tmp_path / n).read_bytes() for n in ("1.svg", "2.svg"))
    assert first == second
    for label in (b"training reward", b"held-out tasks", b"steps done", b"sampled (pass@1)"):
        assert b"<!-- " + label in first
    png = plot_run(real_run, tmp_path / "a.png").read_bytes()
    assert png.startswith(b"\x89PNG")


def test_run_in_progress_can_be_plotted(write_run, tmp_path):
    run = write_run(metrics=[{"step": s, "reward/mean": s / 2} for s in (1, 2, 3)], end='{"st')
    assert plot_run(run, tmp_path / "a.svg").stat().st_size > 1000


def test_plot_has_the_nll_of_held_out_demonstrations_if_there_are_any(write_run, tmp_path):
    run = write_run(metrics=[{"step": 1, "loss": 1.0}])
    title = b"<!-- held-out demonstrations -->"
    for scores, is_drawn in (({"nll": 2.5}, True), ({}, False)):
        held_out = {"before": {"nll": 3.0}, "after": scores} if is_drawn else {"before": scores}
        (run / "summary.json").write_text(json.dumps({"steps": 1, "held_out": held_out}))
        assert (title in plot_run(run, tmp_path / "a.svg").read_bytes()) is is_drawn


def test_run_without_steps_and_unknown_format_are_rejected(write_run, tmp_path):
    with pytest.raises(ConfigError, match="no step yet"):
        plot_run(write_run(), tmp_path / "a.png")
    with pytest.raises(ConfigError, match=r"Did you mean '\.png'"):
        plot_run(write_run(), tmp_path / "a.pnj")
