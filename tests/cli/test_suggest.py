"""`grupo methods suggest`: options, a run, questions on a terminal; `grupo methods TOPIC`."""

import json
import shlex

import pytest

from grupo.catalogue.parse import parse_method
from grupo.evidence.suggest.evidence import find_evidence
from grupo.evidence.suggest.questions import QUESTIONS
from grupo.method import Method
from tests.helpers.written_runs import write_run

OPTIONS = {
    "policy": "language",
    "reward": "verifier",
    "extra": "nothing",
    "problem": "too-hard",
    "sampler": "local",
}


def options(**changes):
    return [part for name, x in {**OPTIONS, **changes}.items() for part in (f"--{name}", x)]


def test_options_answer_every_question(grupo):
    code, out, err = grupo("methods", "suggest", *options())
    assert (code, err) == (0, "")
    assert "1. dapo: " in out
    assert 'evidence  "Clip-higher' in out
    assert "evidence  none" not in out.split("2. ")[0]
    assert "docs/claims.md" in out
    assert max(len(x) for x in out.splitlines() if not x.startswith(("   try", "grupo"))) <= 100


def test_a_candidate_without_a_tested_claim_is_called_so(grupo):
    _, out, _ = grupo("methods", "suggest", *options(policy="images", problem="unknown"))
    assert "1. flow_grpo: " in out
    assert "evidence  none: no claim of this method was tested by a comparison" in out


def test_the_proposed_comparison_has_calls_of_methods(grupo):
    _, out, _ = grupo("methods", "suggest", *options(problem="entropy"))
    line = next(x for x in out.splitlines() if x.startswith("grupo compare"))
    words = shlex.split(line)
    assert words[-2] == "--out"
    calls = words[3:-2:2]
    assert len(calls) == 3
    assert all(isinstance(parse_method(call), Method) for call in calls)


def test_json_has_answers_reasons_and_evidence(grupo):
    _, out, _ = grupo("methods", "suggest", *options(), "--json")
    data = json.loads(out)
    assert data["answers"] == OPTIONS
    first = data["candidates"][0]
    assert first["method"] == "dapo"
    verdict = first["evidence"]["claim"]["verdict"]
    assert verdict == find_evidence("dapo").verdict
    assert verdict.startswith("holds")
    assert {reason["question"] for reason in first["reasons"]} >= {"problem"}


def test_a_missing_answer_is_refused_where_nobody_can_be_asked(grupo, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    code, _, err = grupo("methods", "suggest", "--policy", "language")
    assert code == 2
    assert "reward: no answer is given, and standard input is no terminal" in err
    assert "Give --reward: verifier, graded, terms, comparisons, none;" in err


def test_a_run_answers_all_questions(grupo, tmp_path):
    changes = {"groups/nonzero_std_frac": 0.0, "reward/mean": 0.0}
    run = write_run(tmp_path / "run", 12, **changes)
    code, out, err = grupo("methods", "suggest", "--run", str(run))
    assert (code, err) == (0, "")
    assert "Answers: --policy language --reward verifier --extra nothing --problem too-hard" in out
    assert "too-hard: rewards differ in 0% of the groups" in out


def test_an_option_outweighs_the_run(grupo, tmp_path):
    run = write_run(tmp_path / "run", 12)
    _, out, _ = grupo("methods", "suggest", "--run", str(run), "--problem", "credit", "--json")
    assert json.loads(out)["answers"]["problem"] == "credit"


def test_questions_are_asked_on_a_terminal_until_they_are_answered(grupo, monkeypatch):
    typed = iter(["1", "verifer", "verifier", "", "6", "local"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(typed) or "1")
    code, out, _ = grupo("methods", "suggest")
    assert code == 0
    assert all(question.text in out for question in QUESTIONS)
    assert "reward: 'verifer'. Did you mean 'verifier'?" in out
    expected = "--policy language --reward verifier --extra nothing --problem entropy"
    assert f"Answers: {expected} --sampler local" in " ".join(out.split())


@pytest.mark.parametrize("arguments", [["kl"], ["search", "kl"]])
def test_a_topic_prints_a_short_table(grupo, arguments):
    code, out, _ = grupo("methods", *arguments)
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == ["method", "what", "it", "does", "tags"]
    assert any(line.startswith("kl_cov") for line in lines)
    assert "arXiv" not in out


def test_a_name_prints_the_whole_entry(grupo):
    assert grupo("methods", "grpo")[1] == grupo("methods", "list", "grpo")[1]
    assert "2402.03300" in grupo("methods", "grpo")[1]


@pytest.mark.parametrize(
    ("topic", "nearest"),
    [("entropi", "entropy"), ("dapp", "dapo"), ("distilation", "distillation")],
)
def test_an_unknown_topic_gets_the_nearest_spelling(grupo, topic, nearest):
    code, _, err = grupo("methods", topic)
    assert code == 2
    assert f"method: '{topic}' is not among the methods. Did you mean '{nearest}'?" in err
    assert "2503.14476" not in err


@pytest.mark.parametrize("spelling", ["GRPO", "dr-grpo", "Dr_GRPO"])
def test_another_spelling_of_a_name_finds_the_method(grupo, spelling):
    code, out, _ = grupo("methods", spelling)
    assert code == 0
    assert "grpo" in out


def test_topics_match_tags_titles_and_several_words(grupo):
    titles = grupo("methods", "search", "understanding", "r1-zero")[1]
    assert "dr_grpo" in titles
    assert "opd" in grupo("methods", "distillation")[1]


@pytest.mark.slow
def test_the_commands_for_a_run_have_its_recipe(grupo, home, tmp_path):
    run = tmp_path / "my run"
    arguments = ("--steps", "5", "--eval-tasks", "0", "--policy.max-new-tokens", "32")
    assert grupo("recipe.py", *arguments, "--run", str(run))[0] == 0
    code, out, err = grupo("methods", "suggest", "--run", str(run))
    assert code == 0, err
    commands = [line.split("grupo ", 1)[1] for line in out.splitlines() if "grupo train" in line]
    assert len(commands) == 3
    typed = shlex.split(commands[0])
    assert typed[:3] == ["train", f"{run}/recipe.json", "--method"]
    again = tmp_path / "again"
    changes = ("--steps", "1", "--prompts-per-step", "16", "--run", str(again))
    code, _, err = grupo(*typed, *changes)
    assert code == 0, err
    first, second = (json.loads((f / "recipe.json").read_text())["recipe"] for f in (run, again))
    assert first["policy"] == second["policy"]
    assert first["method"] != second["method"]
