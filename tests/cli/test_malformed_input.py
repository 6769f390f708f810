"""Malformed input from a seeded generator: every case ends in success or in one of our errors."""

import copy
import os
import shutil

import pytest
from huggingface_hub import constants

from grupo.models import loading
from grupo.util.exit_codes import EXIT_CONFIG_ERROR, EXIT_STOPPED
from tests.helpers.malformed_input import Case, CaseRunner, WorkStarted, generate_cases
from tests.helpers.malformed_values import LONG, NAMED

FAST_COUNT = 800  # cases, half of them made by hand
SLOW_COUNT = 20_000
MAX_SECONDS = 5.0  # of a case, on a busy machine; each takes below 1 s on a free one
WORK = (  # where commands start to work
    "grupo.training.resume.run_folder.RunFolder.create",
    "grupo.training.resume.run_folder.RunFolder.lock",
    "grupo.compare.run.make_folder",
    "grupo.cli.eval_args.evaluate",
    "grupo.models.causal_policy.CausalPolicy.export",
    "grupo.toy.train_toy_model",
    "grupo.toy.ensure_trained",
    "grupo.testing.smoke.report_card",
    "grupo.report.html.server.ReportServer.serve_forever",
    "grupo.report.terminal_dashboard.watch_runs",
)


def start_work(*arguments, **named):
    raise WorkStarted


def with_model_loaded_once(load):
    """The loader, which reads the valid model from its files once; others every time."""
    loaded = []

    def load_once(path, *arguments, **options):
        if path != "model":
            return load(path, *arguments, **options)
        if not loaded:
            loaded.append(load(path, *arguments, **options))
        return copy.deepcopy(loaded[0])

    return load_once


@pytest.fixture(scope="module")
def inputs(home, tmp_path_factory):
    """The folder of a user with malformed files beside the valid ones."""
    folder = tmp_path_factory.mktemp("inputs") / "folder"
    shutil.copytree(home, folder)
    os.symlink("loop", folder / "loop")
    return folder


@pytest.fixture
def run_case(inputs, grupo, monkeypatch, tmp_path):
    """Runs a case up to the point where work would start; without a network."""
    import datasets
    import datasets.config

    monkeypatch.chdir(inputs)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(loading, "load", with_model_loaded_once(loading.load))
    for name in WORK:
        monkeypatch.setattr(name, start_work)
    datasets.disable_progress_bars()
    yield CaseRunner(inputs, grupo)
    datasets.enable_progress_bars()


def failures(run_case, cases):
    outcomes = [(case, run_case(case)) for case in cases]
    slow = [f"{case}: {o.seconds:.1f} s" for case, o in outcomes if o.seconds > MAX_SECONDS]
    return [f"{case}: {o.failure}" for case, o in outcomes if o.failure], slow


@pytest.mark.slow
def test_malformed_inputs_end_in_our_errors_only(run_case, inputs):
    failed, _ = failures(run_case, generate_cases(inputs, FAST_COUNT))
    assert failed == [], "\n".join(failed)


@pytest.mark.slow
def test_20_000_malformed_inputs_end_in_our_errors_within_seconds(run_case, inputs):
    failed, slow = failures(run_case, generate_cases(inputs, SLOW_COUNT, seed=1))
    assert failed == [], "\n".join(failed)
    assert slow == []


@pytest.mark.parametrize("arguments", NAMED, ids=lambda line: ascii(line[-1])[:40])
def test_named_malformed_input_ends_in_an_error(run_case, inputs, arguments):
    assert run_case(Case(arguments)).failure == ""
    try:
        code, _, message = run_case.run(*arguments)
    except WorkStarted:
        pytest.fail("the command was accepted")
    lacks_memory = any(argument.endswith("no_memory") for argument in arguments)
    assert code == (EXIT_STOPPED if lacks_memory else EXIT_CONFIG_ERROR)
    assert message.strip()


def test_generator_is_reproducible(inputs):
    first = generate_cases(inputs, 1000)
    assert list(map(str, first)) == list(map(str, generate_cases(inputs, 1000)))
    assert len({str(case) for case in first}) > 800


def test_valid_input_starts_work(run_case):
    with pytest.raises(WorkStarted):
        run_case.run("train", "recipe.py", "--run", "new")


@pytest.mark.parametrize("error", [KeyError("planted"), RecursionError(), ZeroDivisionError()])
def test_planted_error_of_a_loader_is_a_failure(run_case, monkeypatch, error):
    def planted(text):
        raise error

    monkeypatch.setattr("grupo.cli.build_recipe.parse_task_source", planted)
    case = Case(("recipe.py", "--tasks", "tasks.jsonl"))
    assert type(error).__name__ in run_case(case).failure


@pytest.mark.parametrize(
    ("code", "message", "failure"),
    [
        (1, "grupo: a", "exit code 1"),
        (2, "", "no message"),
        (2, "Traceback (most recent call last):", "a traceback"),
        (2, "grupo: \x1b]52;c;aGk=\x07", "control characters"),
        (2, LONG + "x", "a message of 5001 characters"),
        (2, "grupo: tasks: \x1b[31mred\x1b[0m", ""),  # the program's own colour
    ],
)
def test_planted_message_is_a_failure(inputs, code, message, failure):
    outcome = CaseRunner(inputs, lambda *arguments: (code, "", message))(Case(("a",)))
    assert outcome.failure.startswith(failure)
    assert bool(outcome.failure) == bool(failure)
