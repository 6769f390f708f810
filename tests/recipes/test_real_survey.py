"""The script of the survey with a tiny model, and the page of the real one."""

from typing import Any

import pytest

from grupo.evidence.survey.family_survey import read_surveys
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT
from tests.helpers.tiny_lm import TEMPLATE, save_model

SURVEY: Any = load_module_file(ROOT / "recipes" / "real" / "survey.py")
DOCS = ROOT / "docs"
TASKS = 3


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A model, two families, and fewer tasks and attempts than those of the survey."""
    families = {name: SURVEY.TRAINING.FAMILIES[name] for name in ("sums_1_digit", "larger_number")}
    monkeypatch.setattr(SURVEY.TRAINING, "FAMILIES", families)
    monkeypatch.setattr(SURVEY.TRAINING, "SURVEYED", TASKS)
    monkeypatch.setattr(SURVEY.TRAINING, "COMPARED", 2)
    monkeypatch.setattr(SURVEY, "ATTEMPTS", 8)
    chat = {"chat_template": TEMPLATE}
    folder = tmp_path / "model"
    return str(save_model(folder, "qwen3", tokenizer_options=chat, max_position_embeddings=512))


def measured(folder):
    return [(x["part"], x["family"], s.tasks) for x, s in read_surveys(folder / SURVEY.RESULTS)]


def test_finished_families_are_not_repeated(model, tmp_path, monkeypatch, capsys):
    families = SURVEY.TRAINING.FAMILIES
    monkeypatch.setattr(SURVEY.TRAINING, "FAMILIES", dict(list(families.items())[:1]))
    SURVEY.main(tmp_path, model)
    assert measured(tmp_path) == [("survey", "sums_1_digit", TASKS)]
    first_line = (tmp_path / SURVEY.RESULTS).read_text()
    monkeypatch.setattr(SURVEY.TRAINING, "FAMILIES", families)
    SURVEY.main(tmp_path, model)
    assert measured(tmp_path) == [("survey", name, TASKS) for name in families]
    assert (tmp_path / SURVEY.RESULTS).read_text().startswith(first_line)
    page = (tmp_path / SURVEY.PAGE).read_text()
    assert all(f"### {name}" in page for name in families)
    printed = capsys.readouterr().out
    assert "measurements left: 1, answers: 27, tokens at most: 324," in printed  # 27 x 12
    assert "larger_number: greedy" in printed


@pytest.mark.slow
def test_wordings_are_compared_on_other_tasks(model, tmp_path):
    SURVEY.main(tmp_path, model)
    SURVEY.main(tmp_path, model, wordings=True)
    families = SURVEY.TRAINING.FAMILIES.values()
    expected = [("wordings", x.name, 2) for x in families for _ in x.wordings]
    assert measured(tmp_path)[len(families) :] == expected
    assert "## Wordings" in (tmp_path / SURVEY.PAGE).read_text()
    for family in families:
        first = {task.key for task in SURVEY.TRAINING.surveyed(family).load()}
        assert not first & {task.key for task in SURVEY.TRAINING.compared(family, 0).load()}


def test_the_page_is_that_of_the_results():
    families, introduction = SURVEY.TRAINING.FAMILIES, SURVEY.INTRODUCTION
    page = SURVEY.family_page(DOCS / SURVEY.RESULTS, families, introduction)
    assert (DOCS / SURVEY.PAGE).read_text(encoding="utf-8") == page


def test_results_are_of_the_first_wording_and_of_all_attempts():
    results = list(read_surveys(DOCS / SURVEY.RESULTS))
    surveyed = {x["family"]: (x["wording"], s) for x, s in results if x["part"] == "survey"}
    assert surveyed
    for name, (wording, survey) in surveyed.items():
        assert wording == SURVEY.TRAINING.FAMILIES[name].wordings[0]
        assert (survey.tasks, survey.attempts, survey.failed) == (50, 16, 0)
