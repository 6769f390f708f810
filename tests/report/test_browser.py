"""The pages of `grupo report` and `grupo watch` in a real browser."""

from pathlib import Path

from tests.helpers.browser import MARKS, write_page
from tests.helpers.report_servers import served
from tests.helpers.written_runs import metrics, write_lines, write_run

CONTRAST = Path(__file__).with_name("contrast.js")
pytestmark = MARKS


def test_report_shows_every_section(browser, real_run, tmp_path):
    browser.open(write_page(tmp_path, real_run))
    assert browser.texts("h2")[:6] == [
        "Summary",
        "Recipe",
        "Curves",
        "Time and tokens",
        "Doctor",
        "Groups",
    ]
    text = browser.one("main").text
    for fact in ("3 steps", "differs from GRPO in 1 slot", "KL(", "reward/mean", "generating"):
        assert fact in text, fact
    browser.wait(lambda: len(browser.all(".chart canvas")) > 3)
    assert browser.texts(".item")
    assert len(browser.all(".card")) == 8
    assert len(browser.all(".token")) > 20


def test_definition_is_shown_on_focus(browser, real_run, tmp_path):
    browser.open(write_page(tmp_path, real_run))
    browser.js("document.querySelector('.chart .term').focus()")
    assert (
        "mean over the rollouts of this step that could be scored"
        in browser.one("#tip").text.lower()
    )
    assert "Unit: reward." in browser.one("#tip").text


def test_healthy_range_is_shaded(browser, tmp_path):
    browser.open(write_page(tmp_path, write_run(tmp_path / "run", 9)))
    title = "groups/nonzero_std_frac"
    chart = f"const chart = [...CHARTS.values()].find((c) => c.spec.title === '{title}').chart;"
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


def test_nan_metric_is_marked_at_its_step(browser, tmp_path):
    run = write_run(tmp_path / "run")
    write_lines(
        run / "metrics.jsonl", [metrics(1), metrics(2, **{"policy/entropy": "NaN"}), metrics(3)]
    )
    browser.open(write_page(tmp_path, run))
    assert "NaN at step 2" in browser.one("#curves").text


def test_problems_of_the_folder_are_shown_at_the_top(browser, tmp_path):
    run = write_run(tmp_path / "run", ended=False)
    (run / "recipe.json").write_text('{"reci')
    with (run / "rollouts.jsonl").open("a") as file:
        file.write('{"step"')
    browser.open(write_page(tmp_path, run))
    text = browser.one("#problems").text
    assert "recipe.json: cannot be read" in text
    assert "rollouts.jsonl: its last line is torn, 7 bytes left out" in text
    assert len(browser.all(".card")) == 2


def test_several_runs_share_the_curves(browser, tmp_path):
    runs = [write_run(tmp_path / name / "run", steps) for name, steps in (("a", 3), ("b", 5))]
    browser.open(write_page(tmp_path, *runs))
    assert browser.texts("#runs .run") == ["a/run", "b/run"]
    at = browser.one(".chart .at").text.split()  # at step 5, where a has ended
    assert at == ["step", "5:", "\u2013", "0.5"]
    browser.all("#runs .run")[1].click()
    browser.wait(lambda: "step 5" in browser.one("#group h3").text.lower())


def test_run_in_progress_is_followed(browser, tmp_path):
    run = write_run(tmp_path / "run", 2, ended=False)
    with served(run) as server:
        browser.open(server.url)
        browser.wait(lambda: "live" in browser.one("#live").text)
        browser.wait(lambda: "step 2" in browser.one("#group h3").text.lower())
        write_run(run, 4, ended=False, text="the newest", items=["the newest"])
        browser.wait(lambda: "step 4" in browser.one("#group h3").text.lower())
        browser.wait(lambda: browser.texts(".token")[:1] == ["the newest"])
        browser.wait(lambda: "step 4: 0.4" in browser.one(".chart .at").text)
        write_run(run, 4, text="the newest", items=["the newest"])
        browser.wait(lambda: browser.one("#live").text == "finished")
    browser.wait(lambda: browser.one("#live").text == "no connection")
    assert all("ERR_CONNECTION_REFUSED" in error for error in browser.errors)


def test_page_fits_a_small_screen_with_sufficient_contrast_in_both_themes(
    browser, real_run, tmp_path
):
    page = write_page(tmp_path, real_run)
    for dark in (False, True):
        browser.size(390, 844, dark=dark)
        browser.open(page)
        assert browser.js("return document.documentElement.scrollWidth") == 390
        assert browser.js("return document.documentElement.dataset.theme") == (
            "dark" if dark else "light"
        )
        low = browser.js(CONTRAST.read_text())
        assert low == [], low
