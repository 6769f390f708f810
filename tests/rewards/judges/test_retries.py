"""Delays between attempts, by hand."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from grupo.rewards import ChatEndpoint
from grupo.rewards.judges.retries import delay_before, retry_after

ENDPOINT = ChatEndpoint("judge", retry_delay=1.0, max_retry_delay=10.0)


def test_delays_double_up_to_the_longest():
    delays = [delay_before(attempt, None, 0.0, ENDPOINT) for attempt in range(2, 8)]
    assert delays == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_jitter_shortens_a_delay_by_up_to_a_half():
    assert delay_before(3, None, 1.0, ENDPOINT) == 1.0
    assert delay_before(3, None, 0.5, ENDPOINT) == 1.5


def test_the_delay_that_the_server_requests_replaces_the_exponential_one():
    assert delay_before(2, 7.5, 0.5, ENDPOINT) == 7.5
    assert delay_before(6, 0.0, 0.5, ENDPOINT) == 0.0


def test_a_date_is_a_delay_from_now():
    date = datetime.now(UTC) + timedelta(seconds=100)
    delay = retry_after({"retry-after": format_datetime(date, usegmt=True)})
    assert delay is not None
    assert 90 < delay <= 100


def test_a_date_in_the_past_requests_no_delay():
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0


@pytest.mark.parametrize(
    "value",
    [
        *("", "soon", "-1", "nan", "inf", "1e999"),
        "Thu, 01 Jan 9999999999 00:00:00 GMT",
    ],
)
def test_a_header_without_a_delay_requests_none(value):
    assert retry_after({"retry-after": value}) is None


def test_a_date_outside_of_the_calendar_is_no_delay():
    assert retry_after({"retry-after": "Fri, 31 Dec 9999 23:59:59 -1200"}) is None
