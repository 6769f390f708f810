"""Untrusted text is never interpreted as markup or script, in a real browser."""

import json
import time

import pytest

from tests.helpers.browser import MARKS, write_page
from tests.helpers.written_runs import HOSTILE, metrics, response, rollout, write_lines, write_run

pytestmark = MARKS


def test_untrusted_text_is_shown_as_text(browser, tmp_path):
    run = write_run(
        tmp_path / "<img src=x onerror=hurt()>", text=HOSTILE, items=[HOSTILE], tasks=[HOSTILE]
    )
    chat = [{"role": HOSTILE, "content": [{"type": "image", "url": "javascript:hurt()"}, HOSTILE]}]
    bad = rollout(
        3, HOSTILE, HOSTILE, "NaN", prompt=chat, error=HOSTILE, reward_terms={HOSTILE: 1.0}
    )
    write_lines(run / "rollouts.jsonl", [bad, bad])
    write_lines(
        run / "metrics.jsonl", [metrics(s, **{f"reward/{HOSTILE}": 1.0}) for s in (1, 2, 3)]
    )
    write_lines(
        run / "responses.jsonl",
        [
            {
                "step": 3,
                "group": 0,
                "responses": [response([HOSTILE], observation=chat, image="javascript:hurt()")],
            }
        ]
        * 2,
    )
    browser.open(write_page(tmp_path, run))
    browser.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert HOSTILE.split("\u2028")[0] in browser.one(".token").text
    assert browser.js("return window.hurt") is None
    assert browser.all("main img") == browser.all("main script") == []


def test_injected_scripts_are_blocked(browser, tmp_path):
    browser.open(write_page(tmp_path, write_run(tmp_path / "run")))
    browser.js(
        "document.body.insertAdjacentHTML('beforeend', `<img src=x onerror='window.hurt=1'>`)"
    )
    script = "const s = document.createElement('script'); s.text = 'window.hurt=2';"
    browser.js(f"{script} document.body.append(s)")
    time.sleep(0.2)
    assert browser.js("return window.hurt") is None
    assert all("Content Security Policy" in error for error in browser.errors)


def test_untrusted_tool_calls_and_results_are_shown_as_text(browser, tmp_path):
    run = write_run(tmp_path / "run", 1, tasks=("one",), group=1)
    call = {"name": HOSTILE, "arguments": {HOSTILE: HOSTILE, "deep": [[HOSTILE]]}}
    items = [f"<tool_call>{json.dumps(call)}</tool_call>", f"<tool_call>{HOSTILE}"]
    observation = [{"role": "tool", "content": f"error: {HOSTILE}"}]
    responses = [response(items), response(["so"], observation=observation)]
    write_lines(run / "responses.jsonl", [{"step": 1, "group": 0, "responses": responses}])
    browser.open(write_page(tmp_path, run))
    start = HOSTILE.split("\u2028")[0]
    for selector in (".call b", ".call dt", ".call dd", ".call .bad", ".observation.answer .bad"):
        shown = browser.js(f"return document.querySelector({selector!r}).textContent")
        assert start in shown or "not JSON" in shown or "a call ends" in shown, selector
    assert browser.js("return window.hurt") is None
    assert browser.all("main img") == browser.all("main script") == []


def test_a_direction_mark_in_the_name_of_a_run_is_spelled_out_in_the_title(browser, tmp_path):
    browser.open(write_page(tmp_path, write_run(tmp_path / "a\u202eb", 1)))
    assert browser.driver.title == "a\\u202eb \u2013 grupo"
    assert "\u202e" not in browser.js("return document.body.innerText")


@pytest.mark.parametrize("responses", ["[}", "[{}]", '[{"items": null}]', "5", '[]],"a":[[1]'])
def test_groups_are_found_and_shown_beside_one_whose_responses_are_damaged(
    responses, browser, tmp_path
):
    run = write_run(tmp_path / "run", 1)
    path = run / "responses.jsonl"
    _, *others = path.read_text().splitlines(keepends=True)
    path.write_text(f'{{"step": 1, "group": 0, "responses": {responses}}}\n{"".join(others)}')
    browser.open(write_page(tmp_path, run))
    browser.one("#picker-top input[type=search]").send_keys("is two?\n")
    browser.wait(lambda: browser.texts(".item .head") == ["What is two?"])
    browser.wait(lambda: browser.texts("#group .token") == ["fo", "ur"] * 2)
    assert browser.one("#count").text == "1 group with \u201cis two?\u201d"
