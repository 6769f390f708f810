"""The pages of `grupo report` and `grupo watch` in a real browser."""

import time
from pathlib import Path

import browsing
import pytest
import torch
from serving import served
from written import HOSTILE, action, lines, metrics, rollout, write

from grupo.report.page.assemble import report
from grupo.storage import arrays
from grupo.storage.png import data_url

CONTRAST = Path(__file__).with_name("contrast.js")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(bool(browsing.MISSING), reason=browsing.MISSING),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with browsing.browsing(tmp_path_factory.mktemp("browser")) as made:
        yield made


@pytest.fixture(autouse=True)
def no_errors(browser):
    browser.size(1280, 900)
    yield
    assert browser.errors == []


def page(tmp_path: Path, *folders: Path) -> Path:
    return report(folders, tmp_path / "page.html")


def test_a_report_opens_from_a_file_and_shows_every_section(browser, real_run, tmp_path):
    browser.open(page(tmp_path, real_run))
    assert browser.texts("h2")[:6] == ["Summary", "Recipe", "Curves", "Ledger", "Doctor", "Groups"]
    said = browser.one("main").text
    for fact in ("3 steps", "differs from GRPO in 1 slot", "KL(", "reward/mean", "sampling"):
        assert fact in said, fact
    browser.wait(lambda: len(browser.all(".chart canvas")) > 3)
    assert browser.texts(".item")
    assert len(browser.all(".card")) == 8
    assert len(browser.all(".part")) > 20


def test_a_definition_is_shown_on_focus_and_on_hover(browser, real_run, tmp_path):
    browser.open(page(tmp_path, real_run))
    browser.js("document.querySelector('.chart .term').focus()")
    assert "mean over the rollouts sampled at this step" in browser.one("#tip").text.lower()
    assert "Unit: reward." in browser.one("#tip").text


def test_what_is_healthy_is_shaded(browser, tmp_path):
    browser.open(page(tmp_path, write(tmp_path / "run", 9)))
    chart = (
        "const chart = [...CHARTS.values()].find((c) => c.spec.title === 'groups/signal').chart;"
    )
    shaded = """
      const {left, width} = chart.bbox;
      const at = (share) => [left + width / 3, chart.valToPos(share, 'y', true), 1, 1];
      return [0.7, 0.95, 0.05].map((share) => chart.ctx.getImageData(...at(share)).data[3]);
    """
    browser.wait(lambda: len(browser.all(".chart canvas")) > 2)
    browser.js(chart + "chart.setScale('y', {min: 0, max: 1})")
    healthy, above, below = browser.js(chart + shaded)
    assert healthy > 0
    assert above == below == 0


def test_groups_are_filtered_sorted_and_searched(browser, tmp_path):
    run = write(tmp_path / "run", tasks=("one", "two", "three"))
    flat = [rollout(0, "two", "same", 1.0)] * 2
    varied = [rollout(0, "one", "a needle", 0.25), rollout(0, "one", "hay", 0.0)]
    failed = [rollout(0, "three", "?", "NaN", failed="it hung"), rollout(0, "three", "!", 0.5)]
    lines(run / "rollouts.jsonl", [*flat, *varied, *failed])
    (run / "actions.jsonl").unlink()
    browser.open(page(tmp_path, run))

    def heads() -> list[str]:
        return browser.texts(".item .head")

    assert heads() == ["What is two?", "What is one?", "What is three?"]
    browser.choose("#picker-top select[aria-label='Sort groups']", "low")
    assert heads()[0] == "What is one?"  # its mean is 0.125
    browser.choose("#picker-top select[aria-label='Show']", "signal")
    assert heads() == ["What is one?"]
    browser.choose("#picker-top select[aria-label='Show']", "failed")
    assert heads() == ["What is three?"]
    browser.one(".item").click()
    browser.wait(lambda: "it hung" in browser.one("#group").text)
    browser.choose("#picker-top select[aria-label='Show']", "all")
    search = browser.one("#picker-top input[type=search]")
    search.send_keys("NEEDLE\n")
    browser.wait(lambda: browser.texts("mark") == ["needle"])
    assert heads() == ["What is one?"]
    assert "older version" in browser.one("#facts").text


def test_a_group_is_inspected_part_by_part_with_the_keyboard(browser, tmp_path):
    run = write(tmp_path / "run", 2, tasks=("one",))
    one = action(["good ", "bad"], advantage=[1.0, -0.5], entropy=[0.1, 0.9], clipped=[1])
    two = action(["other"], advantage=-1.0, logp=-0.6931)
    lines(
        run / "actions.jsonl",
        [{"step": s, "group": 0, "actions": [a]} for s in (0, 1) for a in (one, two)],
    )
    browser.open(page(tmp_path, run))
    good, bad, other = browser.all(".part")
    assert [part.text for part in (good, bad, other)] == ["good ", "bad", "other"]
    colours = [
        browser.js(f"return document.querySelectorAll('.part')[{i}].style.backgroundColor")
        for i in range(3)
    ]
    assert ["plus" in colour for colour in colours] == [True, False, False]
    assert ["minus" in colour for colour in colours] == [False, True, True]
    assert "clipped" in bad.get_attribute("class")
    browser.js("document.querySelector('.said').focus()")
    browser.one(".said").send_keys("\ue014\ue014")  # the right arrow, twice
    facts = browser.one("#facts").text
    for fact in ('"bad"', "advantage \u22120.5", "entropy 0.9 nats", "clipped"):
        assert fact in facts, fact
    browser.choose("#measure", "surprise")
    assert "much" in browser.js(
        "return document.querySelectorAll('.part')[2].style.backgroundColor"
    )
    browser.keys("[")
    browser.wait(lambda: "step 0" in browser.one("#group h3").text.lower())


def test_turns_of_a_world_a_tree_and_pictures_are_shown(browser, tmp_path):
    run = write(tmp_path / "run", 1, tasks=("one",))
    picture = data_url(arrays.text(torch.full((3, 4, 4), 200, dtype=torch.uint8)))
    trunk = action(["look "], drawn=0)
    leaves = [
        action([text], drawn=i, world="a wall", advantage=i - 1.5)
        for i, text in enumerate(("left", "right"), 1)
    ]
    leaves[1]["picture"] = picture
    lines(
        run / "actions.jsonl",
        [{"step": 0, "group": 0, "actions": [trunk, leaf]} for leaf in leaves],
    )
    browser.open(page(tmp_path, run))
    assert browser.texts(".card .world")[0].splitlines() == ["the world", "a wall"]
    assert "2 turns" in browser.one(".card").text
    assert browser.js("return document.querySelector('img.picture').naturalWidth") == 4
    browser.one(".tools select option[value='tree']").click()
    browser.wait(lambda: browser.all(".tree"))
    assert browser.one(".tree > li > .node").text.splitlines()[-1] == "2 rollouts, mean reward 0.5"
    assert len(browser.all(".tree ul > li")) == 2


def test_the_same_task_is_compared_over_time(browser, tmp_path):
    browser.open(page(tmp_path, write(tmp_path / "run", 3, tasks=("one",))))
    assert browser.texts("#group button.chip") == [f"step {step}: 0.5" for step in range(3)]
    browser.one("#group option[value='0']").click()
    browser.wait(lambda: "same task at step 0" in browser.one("#group").text)
    assert len(browser.all(".card")) == 4


def test_hostile_text_is_text_everywhere(browser, tmp_path):
    run = write(
        tmp_path / "<img src=x onerror=hurt()>", text=HOSTILE, parts=[HOSTILE], tasks=[HOSTILE]
    )
    chat = [{"role": HOSTILE, "content": [{"type": "image", "url": "javascript:hurt()"}, HOSTILE]}]
    bad = rollout(2, HOSTILE, HOSTILE, "NaN", prompt=chat, failed=HOSTILE, parts={HOSTILE: 1.0})
    lines(run / "rollouts.jsonl", [bad, bad])
    lines(run / "metrics.jsonl", [metrics(s, **{f"reward/{HOSTILE}": 1.0}) for s in range(3)])
    lines(
        run / "actions.jsonl",
        [
            {
                "step": 2,
                "group": 0,
                "actions": [action([HOSTILE], world=chat, picture="javascript:hurt()")],
            }
        ]
        * 2,
    )
    browser.open(page(tmp_path, run))
    browser.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert HOSTILE.split("\u2028")[0] in browser.one(".part").text
    assert browser.js("return window.hurt") is None
    assert browser.all("main img") == browser.all("main script") == []


def test_a_script_that_found_a_way_in_would_not_run(browser, tmp_path):
    browser.open(page(tmp_path, write(tmp_path / "run")))
    browser.js(
        "document.body.insertAdjacentHTML('beforeend', `<img src=x onerror='window.hurt=1'>`)"
    )
    script = "const s = document.createElement('script'); s.text = 'window.hurt=2';"
    browser.js(f"{script} document.body.append(s)")
    time.sleep(0.2)
    assert browser.js("return window.hurt") is None
    assert all("Content Security Policy" in error for error in browser.errors)


def test_a_metric_that_is_no_number_is_marked_where_it_is(browser, tmp_path):
    run = write(tmp_path / "run")
    lines(run / "metrics.jsonl", [metrics(0), metrics(1, entropy="NaN"), metrics(2)])
    browser.open(page(tmp_path, run))
    assert "NaN at step 1" in browser.one("#curves").text


def test_what_is_wrong_with_a_folder_stands_above_all(browser, tmp_path):
    run = write(tmp_path / "run", ended=False)
    (run / "recipe.json").write_text('{"reci')
    with (run / "rollouts.jsonl").open("a") as file:
        file.write('{"step"')
    browser.open(page(tmp_path, run))
    said = browser.one("#problems").text
    assert "recipe.json: cannot be read" in said
    assert "rollouts.jsonl: its last line is torn, 7 bytes left out" in said
    assert len(browser.all(".card")) == 2


def test_several_runs_share_the_curves_and_are_told_apart(browser, tmp_path):
    runs = [write(tmp_path / name / "run", steps) for name, steps in (("a", 3), ("b", 5))]
    browser.open(page(tmp_path, *runs))
    assert browser.texts(".run") == ["a/run", "b/run"]
    at = browser.one(".chart .at").text.split()  # at step 4, where a has ended
    assert at == ["step", "4:", "\u2013", "0.4"]
    browser.all(".run")[1].click()
    browser.wait(lambda: "step 4" in browser.one("#group h3").text.lower())


def test_a_run_under_way_is_followed(browser, tmp_path):
    run = write(tmp_path / "run", 2, ended=False)
    with served(run) as server:
        browser.open(server.address)
        browser.wait(lambda: "live" in browser.one("#live").text)
        browser.wait(lambda: "step 1" in browser.one("#group h3").text.lower())
        write(run, 4, ended=False, text="the newest", parts=["the newest"])
        browser.wait(lambda: "step 3" in browser.one("#group h3").text.lower())
        browser.wait(lambda: browser.texts(".part")[:1] == ["the newest"])
        browser.wait(lambda: "step 3: 0.3" in browser.one(".chart .at").text)
        write(run, 4, text="the newest", parts=["the newest"])
        browser.wait(lambda: browser.one("#live").text == "finished")
    browser.wait(lambda: browser.one("#live").text == "no connection")
    assert all("ERR_CONNECTION_REFUSED" in error for error in browser.errors)


def test_it_can_be_used_on_a_small_screen_in_the_light_and_in_the_dark(browser, real_run, tmp_path):
    made = page(tmp_path, real_run)
    for dark in (False, True):
        browser.size(390, 844, dark=dark)
        browser.open(made)
        assert browser.js("return document.documentElement.scrollWidth") == 390
        assert browser.js("return document.documentElement.dataset.theme") == (
            "dark" if dark else "light"
        )
        low = browser.js(CONTRAST.read_text())
        assert low == [], low


def test_two_hundred_steps_of_128_rollouts_open_in_under_two_seconds(browser, tmp_path):
    run = write(
        tmp_path / "run",
        200,
        tasks=[f"task {i}" for i in range(8)],
        group=16,
        text="a word " * 32,
        parts=["a ", "word "] * 32,
    )
    made = page(tmp_path, run)
    best = min(_seconds(browser, made) for _ in range(3))
    assert best < 2, best
    assert browser.js("return RUNS[0].index[199].length") == 8


def _seconds(browser, made: Path) -> float:
    browser.open(made)
    return browser.js("return performance.getEntriesByName('ready')[0].startTime") / 1000
