"""Turns, reference answers, causes, joined characters and the choice of the x-axis in a browser."""

from tests.helpers.browser import MARKS, write_page
from tests.helpers.report_servers import served
from tests.helpers.written_runs import metrics, response, rollout, write_lines, write_run

pytestmark = MARKS
TURNS = [
    {"text": "look"},
    {"observation": "a wall", "text": "left"},
]


def test_reference_answer_and_labelled_turns_are_shown_without_recorded_responses(
    browser, tmp_path
):
    run = write_run(tmp_path / "run", 1, tasks=("one",))
    (run / "responses.jsonl").unlink()
    record = rollout(1, "one", "lookleft", 1.0, turns=TURNS, reference_answer="42")
    write_lines(run / "rollouts.jsonl", [record])
    browser.open(write_page(tmp_path, run))
    assert browser.one(".reference").text.splitlines() == ["reference answer", "42"]
    lines = browser.one(".card .rollout-text").text.splitlines()
    assert lines == ["policy", "look", "environment", "a wall", "policy", "left"]
    assert "2 turns" in browser.one(".card").text


def test_rollouts_that_were_not_scored_are_red_and_show_the_cause(browser, tmp_path):
    run = write_run(tmp_path / "run", 1, tasks=("one",))
    cause = "ValueError: no number (rewards.py:12)"
    bad = rollout(1, "one", "?", "NaN", error=cause, advantage=None)
    write_lines(run / "rollouts.jsonl", [bad, rollout(1, "one", "!", 1.0)])
    browser.open(write_page(tmp_path, run))
    failed, scored = browser.all(".card")
    assert "failed" in failed.get_attribute("class")
    assert failed.value_of_css_property("border-top-color") == "rgba(179, 38, 30, 1)"
    assert "not scored" in failed.text
    assert cause in failed.text
    assert "not scored" not in scored.text
    assert browser.one(".item .cause").text == f"1 of 2 not scored: {cause}"
    assert "1 of 2" in browser.one("#summary").text
    assert cause in browser.one("#summary").text


def test_tokens_of_one_character_share_an_element(browser, tmp_path):
    run = write_run(tmp_path / "run", 1, tasks=("one",), group=1)
    parts = response(
        ["h", "", "\u00e9", "l"], partial=[1], advantage=[0.5, -1.0, 0.5, 0.5], clipped=[1]
    )
    write_lines(run / "responses.jsonl", [{"step": 1, "group": 0, "responses": [parts]}])
    browser.open(write_page(tmp_path, run))
    assert browser.texts(".token") == ["h", "\u00e9", "l"]
    joined = browser.all(".token")[1]
    assert "minus" in (joined.get_attribute("style") or "")  # the part with the largest value
    assert "clipped" in joined.get_attribute("class")
    browser.js("document.querySelector('.rollout-text').focus()")
    browser.one(".rollout-text").send_keys("\ue014\ue014")  # the right arrow, twice
    assert browser.one("#facts").text.startswith("part of a character")
    assert '| "\u00e9"' in browser.one("#facts").text


def test_labels_of_an_axis_differ(browser, tmp_path):
    browser.open(write_page(tmp_path, write_run(tmp_path / "run")))
    plain = browser.js("return distinctLabels([5.9102, 5.9105, 5.9108], number)")
    small = browser.js("return distinctLabels([4.01e-8, 4.02e-8], number)")
    fractions = browser.js("return distinctLabels([0.50001, 0.50002], percent)")
    assert plain == ["5.9102", "5.9105", "5.9108"]
    assert small == ["4.01e\u22128", "4.02e\u22128"]
    assert fractions == ["50.001 %", "50.002 %"]


def test_curves_over_tokens_and_seconds_lead_to_the_step(browser, tmp_path):
    run = write_run(tmp_path / "run")
    lines = [metrics(s, **{"tokens/generated": 1000.0 * s, "time/step": 30.0}) for s in (1, 2, 3)]
    write_lines(run / "metrics.jsonl", lines)
    browser.open(write_page(tmp_path, run))
    browser.wait(lambda: "step 3: 0.3" in browser.one(".chart .at").text)
    browser.choose("#x-axis", "tokens")
    browser.wait(lambda: "6K tokens: 0.3" in browser.one(".chart .at").text)
    assert browser.js("return positionsOf(0)") == [1000, 3000, 6000]
    assert browser.js("return stepAt(metricSpec('reward/mean'), 2900)") == 2
    browser.choose("#x-axis", "seconds")
    browser.wait(lambda: "1 min 30 s: 0.3" in browser.one(".chart .at").text)


def test_table_of_runs_selects_a_run(browser, tmp_path):
    runs = [write_run(tmp_path / name, steps) for name, steps in (("a", 3), ("b", 5))]
    browser.open(write_page(tmp_path, *runs))
    rows = browser.texts(".runs-table tbody tr")
    assert [row.split()[:3] for row in rows] == [["a", "nothing", "3"], ["b", "nothing", "5"]]
    browser.all(".runs-table .run")[1].click()
    browser.wait(lambda: "step 5" in browser.one("#group h3").text.lower())
    assert browser.texts(".runs-table tr[aria-current]")[0].startswith("b")


def test_cards_of_a_long_group_are_filled_once_they_are_visible(browser, tmp_path):
    words = ["a ", "word "] * 1000
    run = write_run(tmp_path / "run", 1, tasks=("one",), group=16, items=words)
    records = [rollout(1, "one", "a", float(i), length=2000) for i in range(16)]
    write_lines(run / "rollouts.jsonl", records)
    browser.open(write_page(tmp_path, run))
    browser.js("document.querySelector('.card').scrollIntoView()")
    browser.wait(lambda: browser.all(".card:first-child .token"))
    cards = "[...document.querySelectorAll('.card')]"
    assert browser.js(f"return {cards}.filter((c) => c.querySelector('.token')).length") < 16
    browser.js("document.querySelector('.card:last-child').scrollIntoView()")
    browser.wait(lambda: browser.all(".card:last-child .token"))


def test_only_the_shown_group_is_requested(browser, tmp_path):
    with served(write_run(tmp_path / "run", 3)) as server:
        browser.open(server.url)
        names = browser.js("return performance.getEntriesByType('resource').map((e) => e.name)")
    (requested,) = [name for name in names if "/step/" in name]
    assert requested.endswith("run/0/step/3/group/0")
