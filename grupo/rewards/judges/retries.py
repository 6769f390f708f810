"""Failures of requests to a judge: which ones are repeated, and after how long."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import openai
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from grupo.rewards.judges.endpoint_settings import EndpointSettings

TRANSIENT_STATUSES = (408, 409, 425, 429)  # below 500
MAX_MESSAGE_CHARS = 300


class RequestFailure(Exception):
    """An attempt failed.

    Args:
        message: The cause.
        transient: Whether another attempt may succeed.
        retry_after: Delay in seconds that the server requests; None if it requests none.
    """

    def __init__(self, message: str, transient: bool, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.transient = transient
        self.retry_after = retry_after


def failure_of(error: Exception, endpoint: EndpointSettings) -> RequestFailure:
    """The failure that an exception of the client library means."""
    match error:
        case TimeoutError() | openai.APITimeoutError():
            return RequestFailure(f"no reply within {endpoint.time_limit:g} s", True)
        case openai.APIStatusError():
            status = error.status_code
            is_transient = status in TRANSIENT_STATUSES or status >= 500
            message = _text(error).removeprefix(f"Error code: {status} - ")
            delay = retry_after(error.response.headers)
            return RequestFailure(f"status {status}: {message}", is_transient, delay)
        case openai.APIConnectionError():
            return RequestFailure(f"the connection failed: {_text(error.__cause__ or error)}", True)
        case ValueError() | openai.APIError():  # no JSON, or JSON of another shape
            return RequestFailure(f"a broken reply: {_text(error)}", True)
    return RequestFailure(f"{type(error).__name__}: {_text(error)}", False)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The delay in seconds that the headers of a response request; None if they request none.

    >>> retry_after({"retry-after": "2"}), retry_after({"retry-after-ms": "50"}), retry_after({})
    (2.0, 0.05, None)
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            delay = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if 0 <= delay < float("inf"):
            return delay
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, (date.astimezone(UTC) - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):  # OverflowError: outside of the years 1 to 9999 in UTC
        return None


def delay_before(
    attempt: int, requested: float | None, jitter: float, endpoint: EndpointSettings
) -> float:
    """Seconds before an attempt: what the server requests, or retry_delay x 2^(attempt - 2).

    Args:
        attempt: Number of the attempt; the first repetition is 2.
        requested: The delay that the server requests.
        jitter: 0 to 1; reduces an exponential delay by up to a half, so that requests that failed
            together are not repeated together.
        endpoint: States the delays.
    """
    if requested is not None:
        return requested
    exponential = endpoint.retry_delay * 2.0 ** min(attempt - 2, 30)
    return min(exponential, endpoint.max_retry_delay) * (1 - 0.5 * jitter)


def retrying(
    endpoint: EndpointSettings, jitter: float, count_retry: Callable[[], None]
) -> AsyncRetrying:
    """The attempts of one request.

    Args:
        endpoint: States their number and the delays.
        jitter: Of the delays, 0 to 1.
        count_retry: Called before each repetition.
    """

    def may_repeat(error: BaseException) -> bool:
        if not isinstance(error, RequestFailure):
            return False
        return error.transient and (error.retry_after or 0.0) <= endpoint.max_retry_delay

    def wait(state: RetryCallState) -> float:
        assert state.outcome, "an attempt has ended"
        failure: Any = state.outcome.exception()
        return delay_before(state.attempt_number + 1, failure.retry_after, jitter, endpoint)

    return AsyncRetrying(
        retry=retry_if_exception(may_repeat),
        wait=wait,
        stop=stop_after_attempt(1 + endpoint.retries),
        before_sleep=lambda _: count_retry(),
        reraise=True,
    )


def _text(error: BaseException) -> str:
    return " ".join(str(error).split())[:MAX_MESSAGE_CHARS] or type(error).__name__
