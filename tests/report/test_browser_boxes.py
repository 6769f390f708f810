"""Boxes of answers on the picture of a group's prompt, in a browser."""

from tests.helpers.browser import MARKS, write_page
from tests.helpers.report_servers import served
from tests.report.test_boxes import run  # noqa: F401  # the fixture

pytestmark = MARKS


def assert_drawn(browser):
    """One card of three has the picture, with the answer's box and the reference box in place."""
    drawn = "document.querySelector('.card svg')"
    browser.wait(lambda: browser.js(f"return {drawn}?.getAttribute('viewBox') === '0 0 12 8'"))
    assert browser.js("return document.querySelectorAll('.card .boxed').length") == 1
    assert browser.one(".boxed svg").get_attribute("aria-label") == (
        "boxes: 1 of the answer, 1 of the reference answer"
    )
    places = browser.js(
        "const at = (kind) => document.querySelector(`.${kind}`).getBoundingClientRect();"
        "const picture = document.querySelector('.boxed img').getBoundingClientRect();"
        "return ['answer-box', 'reference-box'].map(at).map((x) => [x.left - picture.left,"
        " x.top - picture.top, x.width, x.height].map((y) => y / picture.width * 12))"
    )
    for place, box in zip(places, ([1, 2, 6, 4], [2, 2, 6, 4]), strict=True):
        assert all(abs(a - b) < 0.3 for a, b in zip(place, box, strict=True))


def test_a_report_draws_the_boxes_of_answers_on_the_picture(browser, run):  # noqa: F811
    browser.open(write_page(run.parent, run))
    assert_drawn(browser)


def test_the_live_page_draws_the_boxes_of_answers_on_the_picture(browser, run):  # noqa: F811
    with served(run) as server:
        browser.open(server.url)
        assert_drawn(browser)
