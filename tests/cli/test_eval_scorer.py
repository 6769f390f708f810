"""`grupo eval` of a run whose method trains a head on given answers."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

TRAIN = "--steps 1 --prompts-per-step 4 --learning-rate 1e-2 --evaluation.attempts 0"


def write_rows(folder: Path, name: str, rows: list[dict]) -> str:
    (folder / name).write_text("\n".join(map(json.dumps, rows)))
    return name


def pairs(numbers) -> list[dict]:
    return [{"prompt": f"{i}+1=", "chosen": str(i + 1), "rejected": str(i + 3)} for i in numbers]


def labelled(numbers) -> list[dict]:
    """Three answers to each prompt, in rows of their own."""
    texts = ((str(1), True), ("2", False), ("33", False))
    return [
        {"prompt": f"{i}*1=", "completion": f"{i}{text}", "label": label}
        for i in numbers
        for text, label in texts
    ]


def stepped(numbers) -> list[dict]:
    return [
        {"prompt": f"{i}*2=", "completions": [f"{i}{j}", str(j)], "labels": [True, j == 0]}
        for i in numbers
        for j in range(2)
    ]


ROWS = {"pairs": pairs, "labelled": labelled, "stepped": stepped}


@pytest.fixture(scope="module")
def scorers(home, tmp_path_factory) -> Path:
    """A folder of rows: 16 tasks to train on, and others."""
    folder = tmp_path_factory.mktemp("scorers")
    for name, rows in ROWS.items():
        write_rows(folder, f"{name}.jsonl", rows(range(16)))
        write_rows(folder, f"other_{name}.jsonl", rows(range(16, 24)))
    return folder


@pytest.fixture
def trained(grupo, scorers) -> Callable[[str, str], str]:
    """Trains a method once; returns the folder of the run."""

    def train(method: str, rows: str) -> str:
        run = scorers / method
        if not run.exists():
            tasks = ["--tasks", str(scorers / f"{rows}.jsonl"), "--eval-tasks", "6"]
            arguments = ["--method", method, "--model", "model", *tasks, *TRAIN.split()]
            code, _, err = grupo("train", *arguments, "--run", str(run))
            assert code == 0, err
        return str(run)

    return train


def evaluated(grupo, *arguments: str) -> dict:
    code, out, err = grupo("eval", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_a_reward_model_is_judged_on_its_held_out_pairs(grupo, trained):
    result = evaluated(grupo, trained("bradley_terry", "pairs"))
    assert (result["head"], result["output"]) == ("score", "margin")
    assert (result["tasks"], result["answers"], result["pairs"]) == (6, 12, 6)
    assert 0 <= result["pair_accuracy"] <= 1
    low, high = result["intervals"]["calibration_error"]
    assert low <= result["calibration_error"] <= high


def test_all_answers_to_a_held_out_task_are_scored(grupo, trained):
    result = evaluated(grupo, trained("ovm", "labelled"))
    assert (result["head"], result["output"]) == ("value", "probability")
    assert (result["tasks"], result["answers"], result["pairs"]) == (6, 18, 12)
    assert result["best_of_n/score/random"] == pytest.approx(1 / 3)
    assert result["best_of_n/score/possible"] == 1.0


def test_steps_have_an_f1(grupo, trained):
    result = evaluated(grupo, trained("prm_lessons", "stepped"))
    assert (result["head"], result["output"], result["answers"]) == ("process", "logit", 12)
    assert 0 <= result["step_f1"] <= 1
    assert {"best_of_n/minimum/chosen", "best_of_n/product/gain"} <= set(result)
    assert result["minimum_at_last_step"] is not None


def test_a_count_limits_tasks_and_not_rows(grupo, trained):
    result = evaluated(grupo, trained("ovm", "labelled"), "--count", "2")
    assert (result["tasks"], result["answers"]) == (2, 6)


def test_other_tasks_and_a_calibration_set(grupo, trained, scorers):
    run = trained("ovm", "labelled")
    write_rows(scorers, "third.jsonl", labelled(range(30, 40)))
    tasks = ["--tasks", str(scorers / "other_labelled.jsonl")]
    result = evaluated(grupo, run, *tasks, "--calibration", str(scorers / "third.jsonl"))
    assert (result["tasks"], result["answers"]) == (8, 24)
    assert 0 <= result["calibration_error_after_fit"] <= 1


def test_the_table_names_what_was_measured(grupo, trained):
    code, out, _ = grupo("eval", trained("prm_lessons", "stepped"))
    assert code == 0
    assert "head 'process' on 12 answers to 6 tasks" in out
    assert "F1 of the first wrong step" in out
    assert "6 pairs of a good and a bad answer to the same task" in out


def test_a_calibration_set_that_overlaps_the_test_is_refused(grupo, trained, scorers):
    run, other = trained("ovm", "labelled"), str(scorers / "other_labelled.jsonl")
    code, _, err = grupo("eval", run, "--tasks", other, "--calibration", other)
    assert code == 2
    assert "calibration: " in err
    assert "is a task that is evaluated, too. Allowed: other tasks." in err


@pytest.mark.parametrize("option", ["tasks", "calibration"])
def test_tasks_that_were_trained_on_are_refused(grupo, trained, scorers, option):
    run = trained("bradley_terry", "pairs")
    code, _, err = grupo("eval", run, f"--{option}", str(scorers / "pairs.jsonl"))
    assert code == 2
    assert f"grupo: {option}: " in err
    assert "is a task that was trained on, too." in err


def test_a_misspelt_head_is_refused(grupo, trained):
    code, _, err = grupo("eval", trained("bradley_terry", "pairs"), "--head", "scor")
    assert (code, err) == (2, "grupo: head: 'scor'. Did you mean 'score'? Allowed: score.\n")


def test_rows_without_answers_are_refused(grupo, trained):
    arguments = ["--tasks", "tasks.jsonl"]
    code, _, err = grupo("eval", trained("bradley_terry", "pairs"), *arguments)
    assert code == 2
    assert "has no 'chosen'. Allowed: a text, or messages." in err
