"""Over-optimised likelihoods: what the alarm reads, and that the page has the runs' tables."""

from grupo.core.types import Group
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import stored_runs
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

LIKELY = load_module_file(ROOT / "recipes" / "small_claims" / "over_optimised.py")
RUNS = ROOT / "docs" / "small_claims_runs" / "over_optimised.jsonl"


def test_the_tables_of_the_page_are_those_of_the_runs():
    arms = (LIKELY.BASELINE, LIKELY.BEST, LIKELY.ALARM, LIKELY.GIVEN)
    runs = stored_runs(RUNS, dict.fromkeys(arms), range(8))
    pair = {name: runs[name] for name in (LIKELY.BASELINE, LIKELY.ALARM)}
    lines = paired_table(runs, LIKELY.METRICS, LIKELY.BASELINE).splitlines()
    lines += sequential_table(pair, "correct", LIKELY.BASELINE, LIKELY.DESIGN).splitlines()
    assert set(lines) <= set((ROOT / "docs" / "small_claims.md").read_text().splitlines())


def test_a_quarter_of_the_pairs_have_their_labels_exchanged(tmp_path, monkeypatch):
    rows = [{"chosen": "right", "rejected": "wrong"}]
    monkeypatch.setattr(LIKELY, "run_rollouts", lambda *args: [Group(x, ()) for x in LIKELY.PAIRED])
    monkeypatch.setattr(LIKELY, "best_against_worst", lambda *args: rows)
    tasks = LIKELY.Arms(tmp_path).pairs(Untrained(), seed=0)
    exchanged = [task.columns["chosen"] == "wrong" for task in tasks]
    assert 0.1 < sum(exchanged) / len(LIKELY.PAIRED) < 0.4


class Untrained:
    """A policy whose answers are given."""

    def actor(self, key):
        return None


def test_sums_of_the_three_parts_of_a_run_differ():
    keys = [{x.key for x in part} for part in (LIKELY.PAIRED, LIKELY.READ, LIKELY.TESTED)]
    assert sum(map(len, keys)) == len(set.union(*keys)) == 15 * 15


def test_an_alarm_stops_where_both_numbers_have_fallen_twice():
    lines = [
        {"entropy_top10": e, "mass_top10": m}
        for e, m in ((1.0, 0.9), (1.1, 0.95), (1.0, 0.94), (0.9, 0.93), (0.8, 0.92))
    ]
    assert LIKELY.first_alarm(lines) == 3
    assert LIKELY.first_alarm(lines[:3]) == 2  # none: the last evaluation
