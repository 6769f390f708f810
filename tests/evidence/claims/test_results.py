"""Stored runs: they come back, shares add up, and a change of the code is noticed."""

from dataclasses import replace

import pytest

from grupo.core import module_code
from grupo.evidence.claims.__main__ import main, run_comparison, share_of
from grupo.evidence.claims.claim import Arm, Setting
from grupo.evidence.claims.comparisons import ArmComparison, all_comparisons
from grupo.evidence.claims.digest import run_digest
from grupo.evidence.claims.environments import ManyModes
from grupo.evidence.claims.repetition import repetition_of
from grupo.evidence.claims.results import Results
from grupo.util.errors import ConfigError

SETTING = Setting("modes", "", ManyModes(num_tasks=2, num_items=3), steps=10, rollouts_per_step=16)
ARM = Arm("max_rl()")


def test_runs_come_back_from_the_file_and_later_lines_replace_earlier_ones(tmp_path):
    path = tmp_path / "claims.jsonl"
    results = Results.read(path)
    results.add(path, SETTING, ARM, 0, {"success": 0.123456789})
    results.add(path, SETTING, ARM, 1, {"success": 0.25})
    results.add(path, SETTING, ARM, 1, {"success": 0.5})
    stored = Results.read(path)
    assert stored == results
    assert stored.values(SETTING, ARM, "success") == {0: 0.12346, 1: 0.5}
    assert stored.values(SETTING, ARM, "modes") == {}
    assert stored.is_current(SETTING, ARM, 1)
    assert not stored.is_current(SETTING, ARM, 2)


def test_a_digest_depends_on_setting_arm_and_code_but_not_on_comments_or_imports(monkeypatch):
    before = run_digest(SETTING, ARM)
    assert run_digest(replace(SETTING, steps=20), ARM) != before
    assert run_digest(replace(SETTING, description="Other words."), ARM) == before
    assert run_digest(SETTING, Arm("max_rl(clip_eps=0.3)")) != before
    paper = '\nPAPER = Paper(title="Another")'
    same = ("\n# a comment", paper, "\nimport math")
    for change, is_equal in (*((text, True) for text in same), ("\nANOTHER = 1", False)):
        source = module_code.inspect.getsource

        def changed(module, change=change, source=source):
            return source(module) + change * module.__name__.endswith("methods.max_rl")

        monkeypatch.setattr(module_code.inspect, "getsource", changed)
        module_code.code_of.cache_clear()
        run_digest.cache_clear()
        assert (run_digest(SETTING, ARM) == before) is is_equal
        monkeypatch.undo()
    module_code.code_of.cache_clear()
    run_digest.cache_clear()


def test_shares_are_whole_settings_and_add_up():
    comparisons = list(all_comparisons())
    shares = [share_of(comparisons, f"{number}/3") for number in (1, 2, 3)]
    assert sum(map(len, shares)) == len(comparisons)
    names = [{comparison.setting.name for comparison in share} for share in shares]
    assert sum(map(len, names)) == len(set.union(*names))
    assert share_of(comparisons, "1/1") == comparisons


@pytest.mark.parametrize("share", ["0/2", "3/2", "half", "1", "1/", "-1/2"])
def test_a_share_that_is_no_part_is_refused(share):
    with pytest.raises(ConfigError, match=r"--share: .* Allowed: .*1/2"):
        share_of(list(all_comparisons()), share)


@pytest.mark.slow
def test_a_comparison_is_run_once_from_end_to_end(tmp_path, monkeypatch):
    comparison = ArmComparison(SETTING, Arm("oracle"), Arm("untrained"), "success")
    path = tmp_path / "claims.jsonl"
    results = Results()
    run_comparison(comparison, results, path, deadline=float("inf"))
    assert len(results.metrics) == 16  # eight pairs decide
    lines = path.read_text().splitlines()
    run_comparison(comparison, Results.read(path), path, deadline=float("inf"))
    assert path.read_text().splitlines() == lines


@pytest.mark.slow
def test_an_interrupted_repetition_goes_on_beside_the_first_runs(tmp_path):
    first = ArmComparison(SETTING, Arm("oracle"), Arm("untrained"), "success")
    path = tmp_path / "claims.jsonl"
    results = Results()
    run_comparison(repetition_of(first), results, path, deadline=float("-inf"))
    assert not path.exists()
    run_comparison(repetition_of(first), results, path, deadline=float("inf"))
    lines = path.read_text().splitlines()
    assert len(lines) == 32  # all sixteen pairs, though eight would decide
    path.write_text("\n".join(lines[:20]) + "\n")
    run_comparison(repetition_of(first), Results.read(path), path, deadline=float("inf"))
    assert path.read_text().splitlines() == lines
    assert {seed for *_, seed in Results.read(path).metrics} == {*range(16, 32)}


@pytest.mark.slow
def test_without_time_no_run_is_made_and_the_page_says_what_is_missing(tmp_path):
    page = tmp_path / "claims.md"
    for options in ([], ["--repeat"]):
        main([str(page), "--minutes", "0", *options])
        assert "**needs more runs** (94)" in page.read_text()
        assert not page.with_suffix(".jsonl").exists()
