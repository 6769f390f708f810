"""The pages of `grupo report` and `grupo watch` in a real browser, section by section."""

from pathlib import Path

from tests.helpers.browser import MARKS, page
from tests.helpers.report_servers import served
from tests.helpers.written_runs import lines, metrics, write

CONTRAST = Path(__file__).with_name("contrast.js")
pytestmark = MARKS


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
    chart = "const chart = [...CHARTS.values()].find((c) => c.spec.title === 'groups/nonzero_std_frac').chart;"
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
        browser.open(server.url)
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
