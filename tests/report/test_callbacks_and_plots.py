import sys

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from grupo.core.errors import ConfigError
from grupo.report.loggers import TensorBoardLogger
from grupo.report.plots import plot_run
from grupo.rollouts.evaluate import EvalResult, Proportion


def test_every_metric_and_score_is_written_under_its_name(recipe, tmp_path):
    board = TensorBoardLogger(tmp_path)
    board.on_train_begin(recipe, 0)
    board.on_evaluate(
        "before",
        EvalResult(Proportion(0.25, 0, 1), Proportion(0.5, 0, 1), {1: Proportion(0.5, 0, 1)}),
    )
    board.on_step_end(0, {"reward/mean": 0.5, "lr": 0.25})
    board.on_step_end(1, {"reward/mean": 0.75, "lr": 0.25})
    board.on_train_end()
    events = EventAccumulator(str(tmp_path)).Reload()
    written = {n: [(e.step, e.value) for e in events.Scalars(n)] for n in events.Tags()["scalars"]}
    assert written == {
        "eval/greedy": [(0, 0.25)],
        "eval/sampled": [(0, 0.5)],
        "eval/pass@1": [(0, 0.5)],
        "reward/mean": [(0, 0.5), (1, 0.75)],
        "lr": [(0, 0.25), (1, 0.25)],
    }


def test_steps_that_are_done_again_after_a_crash_are_shown_once(recipe, tmp_path):
    for begin, steps in ((0, range(3)), (1, range(1, 3))):
        board = TensorBoardLogger(tmp_path)
        board.on_train_begin(recipe, begin)
        for step in steps:
            board.on_step_end(step, {"lr": 1.0 + begin})
        board.on_train_end()
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [(e.step, e.value) for e in events.Scalars("lr")] == [(0, 1.0), (1, 2.0), (2, 2.0)]


def test_a_folder_that_cannot_be_written_is_told_of_once_and_stops_nothing(recipe, tmp_path):
    (tmp_path / "file").write_text("in the way")
    said: list[str] = []
    board = TensorBoardLogger(tmp_path / "file" / "events", said.append)
    board.on_train_begin(recipe, 0)
    board.on_step_end(0, {"lr": 1.0})
    board.on_train_end()
    assert len(said) == 1
    assert "given up" in said[0]


@pytest.mark.parametrize(
    ("module", "extra", "use"),
    [
        ("torch.utils.tensorboard", "grupo[tensorboard]", lambda path: TensorBoardLogger(path)),
        ("matplotlib.figure", "grupo[plots]", lambda path: plot_run(path, path / "a.png")),
    ],
)
def test_what_is_not_installed_is_named_with_how_to_install_it(
    written, monkeypatch, module, extra, use
):
    run = written(metrics=[{"step": 0, "reward/mean": 1.0}])
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError) as refused:
        use(run)
    assert extra in str(refused.value)


def test_curves_are_a_picture_with_readable_labels_and_always_the_same(real_run, tmp_path):
    one, two = (plot_run(real_run, tmp_path / n).read_bytes() for n in ("1.svg", "2.svg"))
    assert one == two
    for label in (b"reward in training", b"held-out tasks", b"steps done", b"sampled (pass@1)"):
        assert b"<!-- " + label in one
    png = plot_run(real_run, tmp_path / "a.png").read_bytes()
    assert png.startswith(b"\x89PNG")


def test_a_run_under_way_has_its_reward_drawn(written, tmp_path):
    run = written(metrics=[{"step": s, "reward/mean": s / 2} for s in range(3)], end='{"st')
    assert plot_run(run, tmp_path / "a.svg").stat().st_size > 1000


def test_a_run_without_steps_and_an_unknown_ending_are_refused(written, tmp_path):
    with pytest.raises(ConfigError, match="no step yet"):
        plot_run(written(), tmp_path / "a.png")
    with pytest.raises(ConfigError, match=r"Did you mean '\.png'"):
        plot_run(written(), tmp_path / "a.pnj")
