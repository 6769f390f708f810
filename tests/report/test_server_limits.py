"""Limits of the report server on requests and connections, and the headers of every response."""

import socket
import time
from contextlib import ExitStack
from threading import active_count

import pytest

from grupo.report.html.http_limits import ConnectionLimits
from grupo.report.html.server import Content, ReportServer
from tests.helpers.report_servers import (
    connect,
    exchange,
    get_request,
    read_response,
    served,
    status_of,
)
from tests.helpers.written_runs import write_run

NO_CONTENT = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
SECURITY_HEADERS = {
    "cache-control": "no-store",
    "connection": "close",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
# bytes that a client sends, SECRET replaced by the server's: the status of the response
REFUSED_REQUESTS = {
    "no HTTP": (b"GARBAGE\r\n\r\n", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n", 400),
    "no version": (b"GET / SECRET\r\n\r\n", 400),
    "version without number": (b"GET / HTTP/x.y\r\n\r\n", 400),
    "four words": (b"GET / / HTTP/1.1\r\n\r\n", 400),
    "HTTP/0.9": (b"GET /SECRET/\r\n", 403),
    "HTTP/0.9, other method": (b"PUT /SECRET/\r\n", 400),
    "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "unknown method": (b"BREW /SECRET/ HTTP/1.1\r\nHost: localhost:1\r\n\r\n", 501),
    "CONNECT": (b"CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: localhost:1\r\n\r\n", 501),
    "POST": (b"POST /SECRET/ HTTP/1.1\r\nHost: localhost:1\r\nContent-Length: 1\r\n\r\nx", 405),
    "asterisk": (b"OPTIONS * HTTP/1.1\r\nHost: localhost:1\r\n\r\n", 405),
    "target without slash": (b"GET SECRET HTTP/1.1\r\nHost: localhost:1\r\n\r\n", 403),
    "target that is no URL": (b"GET http://[ HTTP/1.1\r\nHost: localhost:1\r\n\r\n", 403),
    "no host": (b"GET /SECRET/ HTTP/1.1\r\n\r\n", 403),
    "foreign host": (b"GET /SECRET/ HTTP/1.1\r\nHost: evil.example:1\r\n\r\n", 403),
    "header without colon": (b"GET /SECRET/ HTTP/1.1\r\nHost localhost:1\r\n\r\n", 403),
    "unknown path": (b"GET /SECRET/x HTTP/1.1\r\nHost: localhost:1\r\n\r\n", 404),
    "encoded traversal": (b"GET /SECRET/..%2f..%2fx HTTP/1.1\r\nHost: localhost:1\r\n\r\n", 404),
    "body": (b"GET /SECRET/ HTTP/1.1\r\nHost: localhost:1\r\nContent-Length: 1\r\n\r\nx", 413),
    "chunks": (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 413),
    "101 headers": (b"GET /SECRET/ HTTP/1.1\r\n" + b"a: b\r\n" * 101 + b"\r\n", 431),
    "long request line": (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", 414),
    "long header": (b"GET / HTTP/1.1\r\na: " + b"x" * 20_000 + b"\r\n\r\n", 431),
}


@pytest.mark.parametrize("name", REFUSED_REQUESTS)
def test_refused_requests_get_an_error_page_with_security_headers(name, tmp_path):
    request, expected_status = REFUSED_REQUESTS[name]
    with served(write_run(tmp_path)) as server:
        status, headers, body = exchange(server, request.replace(b"SECRET", server.secret.encode()))
        assert status == expected_status
        assert headers.items() >= SECURITY_HEADERS.items()
        assert headers["content-security-policy"] == NO_CONTENT
        assert headers["content-type"] == "text/plain"
        assert len(body) < 50  # the phrase of the status: nothing of the request
        assert exchange(server, get_request(server))[0] == 200


def test_served_pages_and_data_have_security_headers(tmp_path):
    with served(write_run(tmp_path)) as server:
        for path in ("", "run/0", "run/0/step/1/group/0"):
            status, headers, _ = exchange(server, get_request(server, path))
            assert status == 200
            assert headers.items() >= SECURITY_HEADERS.items()
            expected = "script-src 'sha256-" if not path else NO_CONTENT
            assert expected in headers["content-security-policy"]


def test_policy_of_the_page_is_also_in_its_header_and_forbids_frames(tmp_path):
    with served(write_run(tmp_path)) as server:
        _, headers, page = exchange(server, get_request(server))
    in_page, _, rest = headers["content-security-policy"].partition("; frame-ancestors")
    assert rest == " 'none'"
    assert f'content="{in_page}"' in page.decode()
    assert "unsafe" not in in_page


def test_an_error_inside_the_server_is_a_page_with_security_headers(tmp_path, capfd, monkeypatch):
    def fails(*_):
        raise OSError("the disk is gone")

    with served(write_run(tmp_path)) as server:
        monkeypatch.setattr(server, "content", fails)
        status, headers, body = exchange(server, get_request(server))
    assert (status, body) == (500, b"Internal Server Error")
    assert headers.items() >= SECURITY_HEADERS.items()
    assert "the disk is gone" in capfd.readouterr().err


def test_a_request_that_stays_half_sent_is_refused(tmp_path):
    limits = ConnectionLimits(request_seconds=0.2)
    with served(write_run(tmp_path), limits=limits) as server:
        request = get_request(server)
        for part in (b"", b"GET", request[:-2]):
            with connect(server) as connection:
                connection.sendall(part)
                assert status_of(connection) == 408
        assert exchange(server, request)[0] == 200


def test_bytes_that_drip_in_do_not_extend_the_time_of_a_request(tmp_path):
    with served(write_run(tmp_path), limits=ConnectionLimits(request_seconds=0.3)) as server:
        with connect(server) as connection:
            start = time.monotonic()
            connection.settimeout(0.02)
            received = b""
            while not received and time.monotonic() - start < 5:
                connection.sendall(b"a")
                try:
                    received = connection.recv(100)
                except TimeoutError:
                    continue
            assert received.startswith(b"HTTP/1.1 408 ")
            assert time.monotonic() - start < 5
        with connect(server) as connection:  # a slow request that is complete in time is served
            request = get_request(server)
            for part in (request[:9], request[9:40], request[40:]):
                connection.sendall(part)
                time.sleep(0.01)
            assert status_of(connection) == 200


def test_connections_beyond_the_limit_are_refused_until_others_are_closed(tmp_path):
    limits = ConnectionLimits(connections=4)
    with served(write_run(tmp_path), limits=limits) as server, ExitStack() as stack:
        threads = active_count()
        idle = [stack.enter_context(connect(server)) for _ in range(3)]
        assert exchange(server, get_request(server))[0] == 200  # the fourth
        wait_for_free_connections(server, 1)
        idle.append(stack.enter_context(connect(server)))
        for _ in range(60):
            with connect(server) as refused:
                status, headers, body = read_response(refused)
            assert (status, body) == (503, b"Service Unavailable")
            assert headers.items() >= SECURITY_HEADERS.items()
        assert active_count() - threads <= limits.connections
        for connection in idle:
            connection.close()
        wait_for_free_connections(server, 4)
        assert exchange(server, get_request(server))[0] == 200


def test_connections_of_half_sent_requests_are_free_again_after_their_time(tmp_path):
    limits = ConnectionLimits(connections=20, request_seconds=0.3)
    with served(write_run(tmp_path), limits=limits) as server, ExitStack() as stack:
        connections = [stack.enter_context(connect(server)) for _ in range(20)]
        for connection in connections:
            connection.sendall(b"GET /")
        assert [status_of(connection) for connection in connections] == [408] * 20
        wait_for_free_connections(server, 20)
        assert exchange(server, get_request(server))[0] == 200


def test_a_client_that_does_not_read_its_response_loses_its_connection(tmp_path, monkeypatch):
    limits = ConnectionLimits(connections=1, response_seconds=0.2)
    with served(write_run(tmp_path), limits=limits) as server, connect(server) as reader:
        with monkeypatch.context() as patch:
            patch.setattr(server, "content", lambda *_: Content("x" * 50_000_000))
            reader.sendall(get_request(server))
            assert reader.recv(1) == b"H"  # the response has begun
        wait_for_free_connections(server, 1)
        assert exchange(server, get_request(server))[0] == 200


def test_request_of_the_longest_allowed_length_is_served(tmp_path):
    limits = ConnectionLimits(request_bytes=500)
    with served(write_run(tmp_path), limits=limits) as server:
        missing = 500 - len(get_request(server, "", "a: "))
        assert exchange(server, get_request(server, "", f"a: {'x' * missing}"))[0] == 200
        # one byte more: the last newline is not read
        assert exchange(server, get_request(server, "", f"a: {'x' * (missing + 1)}"))[0] == 431


def test_a_connection_has_one_response_only(tmp_path):
    with served(write_run(tmp_path)) as server:
        keep_alive = get_request(server, "run/0", "Connection: keep-alive")
        _, _, body = exchange(server, keep_alive + get_request(server))
        assert body.count(b'"epoch"') == 1
        assert b"HTTP/1.1" not in body


def test_starting_the_server_looks_up_no_name(tmp_path, monkeypatch):
    def refuse(*_):
        raise AssertionError("a name is looked up")

    for name in ("getfqdn", "gethostbyaddr"):
        monkeypatch.setattr(socket, name, refuse)
    with ReportServer([write_run(tmp_path)]) as server:
        assert server.server_port > 0


def wait_for_free_connections(server: ReportServer, count: int) -> None:
    """Wait until this number of connections can be opened; the server closes them in threads."""
    stop_at = time.monotonic() + 5
    while server.free_connections._value < count:
        assert time.monotonic() < stop_at, "connections stay open"
        time.sleep(0.01)
