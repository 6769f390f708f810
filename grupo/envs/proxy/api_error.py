"""Errors of the server in OpenAI's form."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

MAX_SHOWN = 80  # characters of a value in a message


class ApiError(Exception):
    """A call that is not answered.

    Args:
        message: What is wrong, and what is allowed.
        code: Name of the error for programs.
        param: Field of the request that is at fault; "" if none is.
        status: Status of the HTTP response. Clients repeat 408, 409, 429 and those from 500.
    """

    def __init__(
        self,
        message: str,
        code: str = "invalid_value",
        param: str = "",
        status: int = HTTPStatus.BAD_REQUEST,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.param = param
        self.status = status

    @property
    def body(self) -> Mapping[str, Any]:
        """The body of the response."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        error = {"message": str(self), "type": kind, "param": self.param or None, "code": self.code}
        return {"error": error}


def invalid(param: str, value: Any, allowed: str) -> ApiError:
    """The error of a field with a value that is not allowed.

    >>> str(invalid("n", 2, "1"))
    'n: 2. Allowed: 1.'
    """
    return ApiError(f"{param}: {shown(value)}. Allowed: {allowed}.", param=param)


def shown(value: Any) -> str:
    """A value of a request as it is named in a message."""
    return repr(value)[:MAX_SHOWN]
