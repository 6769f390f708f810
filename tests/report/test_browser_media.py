"""Pictures, video and sound of a report and of the live page in a browser."""

from tests.helpers.browser import MARKS, write_page
from tests.helpers.report_servers import served
from tests.report.test_media import CLIP, PICTURE, SOUND, run  # noqa: F401  # the fixture

pytestmark = MARKS


def assert_shown(browser):
    """Picture and sound of the prompt, and the video of an observation, are decoded."""
    browser.wait(lambda: browser.js("return [...document.images].every((x) => x.naturalWidth > 0)"))
    sizes = browser.js("return [...document.images].map((x) => [x.naturalWidth, x.naturalHeight])")
    assert sizes == [[12, 8], [10, 6], [10, 6]]  # two rollouts have the observation
    assert browser.one("#group .prompt img").get_attribute("src") == PICTURE.data_url
    assert browser.one(".card img").get_attribute("src") == CLIP.data_url
    sound = browser.one("#group .prompt audio")
    assert sound.get_attribute("src") == SOUND.data_url
    browser.wait(lambda: browser.js("return document.querySelector('audio').duration > 0"))
    assert browser.js("return document.querySelector('audio').duration") == 0.5
    assert "Which colour?" in browser.one("#group .prompt").text


def test_a_report_shows_pictures_video_and_sound(browser, run):  # noqa: F811
    browser.open(write_page(run.parent, run))
    assert_shown(browser)


def test_the_live_page_shows_pictures_video_and_sound(browser, run):  # noqa: F811
    with served(run) as server:
        browser.open(server.url)
        assert_shown(browser)


def test_a_missing_file_is_named(browser, run):  # noqa: F811
    (run / "media" / f"{PICTURE.digest}.png").unlink()
    browser.open(write_page(run.parent, run))
    note = f"image {PICTURE.digest[:8]}: the file is missing"
    browser.wait(lambda: note in browser.one("#group .prompt").text)
