"""Descriptions of Debian packages as tasks, and both stages of directional stimulus prompting."""

from typing import Any

import pytest

from grupo.core.serialization import from_data, to_data
from grupo.util.errors import ConfigError
from grupo.util.importing import load_module_file
from tests.helpers.judged import ScriptedModel
from tests.helpers.paths import ROOT

PACKAGES: Any = load_module_file(ROOT / "recipes" / "real" / "debian_packages.py")
RECIPE: Any = load_module_file(ROOT / "recipes" / "real" / "hinted_summaries.py")
STATUS = """\
Package: quick-cc
Version: 1
Description: C compiler, small and fast
 Quick-cc is a fast compiler for the C language, which translates
 a program in one pass and without any options.
 .
 It has a second paragraph.

Package: quick-cc-doc
Source: quick-cc (1)
Description: C compiler, documentation of it
 These are the manual pages and examples of quick-cc, a fast compiler for the C language.

Package: short
Description: too short a description
 Too short.

Package: unrelated
Description: nothing that is below
 The words of this text are all different from those of the line before, so no hint exists.

Package: metapackage
Description: without a long description

Package: viewer
Description-en: viewer for pictures
 A program that shows pictures of all kinds in a window, one after another or all at once.
"""


def tasks(tmp_path, first=0, count=10):
    path = tmp_path / "status"
    path.write_text(STATUS)
    return PACKAGES.PackageTasks("Keywords of: ", first, count, str(path)).load()


def test_tasks_are_descriptions_of_packages_of_different_sources(tmp_path):
    by_source = {task.key.removesuffix("-doc"): task for task in tasks(tmp_path)}
    assert by_source.keys() == {"quick-cc", "viewer"}
    viewer = by_source["viewer"]
    assert viewer.prompt[0]["content"].startswith("Keywords of: A program that shows pictures")
    assert viewer.reference_answer == "viewer for pictures"
    assert viewer.columns["completion"] == "pictures"


def test_held_out_packages_are_not_trained_on(tmp_path):
    held_out, trained = tasks(tmp_path, 0, 1), tasks(tmp_path, 1)
    assert len(held_out) == len(trained) == 1
    assert held_out[0].key != trained[0].key
    assert RECIPE.HELD_OUT_TASKS.count == RECIPE.TASKS.first


def test_keywords_are_the_words_of_the_summary_in_its_order():
    description = "Quick-cc is a fast compiler for the C language"
    assert PACKAGES.keywords(description, "C compiler, small and fast") == "c; compiler; fast"
    assert PACKAGES.keywords(description, "the small one") == ""


def test_a_file_that_is_not_there_is_refused(tmp_path):
    source = PACKAGES.PackageTasks("x", 0, 1, str(tmp_path / "none"))
    with pytest.raises(ConfigError, match=r"tasks.file: .*none.*Allowed: /var/lib/dpkg/status"):
        source.load()


def test_both_stages_have_the_same_tasks_and_the_second_is_rewarded_by_the_frozen_model():
    supervised, hints = (stage.recipe for stage in RECIPE.PIPELINE.stages)
    assert supervised.tasks == hints.tasks
    assert supervised.env == hints.env
    (term,) = hints.env.rewards
    assert term.reward.model == RECIPE.local()
    assert from_data(to_data(hints)) == hints


def test_the_same_pipeline_takes_a_model_behind_an_address():
    frozen = RECIPE.served("http://127.0.0.1:8000/v1", "large")
    hints = RECIPE.pipeline(frozen).stages[-1].recipe
    assert hints.env.rewards[0].reward.model == frozen
    assert from_data(to_data(hints)) == hints


def keywords_of(task):
    return task.columns["completion"]


def test_mean_rouge_by_hand(tmp_path):
    (viewer,) = (task for task in tasks(tmp_path) if task.key == "viewer")
    repeating = ScriptedModel(lambda prompt: prompt.rpartition("Keywords: ")[2])
    # "pictures" is 1 of 1 and of 3 words
    assert RECIPE.mean_rouge(repeating, [viewer], keywords_of) == pytest.approx(2 * 1 / (1 + 3))
    assert RECIPE.mean_rouge(repeating, [viewer], lambda task: "none") == 0
