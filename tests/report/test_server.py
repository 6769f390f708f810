"""The report server: authorization, routes, incremental updates."""

import http.client
import json
from typing import Any

import pytest

from grupo.report.html.server import ReportServer
from grupo.util.errors import ConfigError
from tests.helpers.report_servers import served
from tests.helpers.written_runs import metrics, write_lines, write_run


def request(
    server: ReportServer, path: str, method: str = "GET", **headers: str
) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


def get_json(server: ReportServer, path: str) -> Any:
    status, text = request(server, f"/{server.secret}/{path}")
    assert status == 200
    return json.loads(text)


def test_requests_without_the_secret_are_forbidden(tmp_path):
    with served(write_run(tmp_path)) as server:
        assert request(server, f"/{server.secret}/")[0] == 200
        for path in ("/", "/run/0", "/wrong/", f"/{server.secret[:-1]}/"):
            assert request(server, path)[0] == 403, path
        assert len(server.secret) >= 32  # 24 random bytes


def test_foreign_host_names_are_forbidden(tmp_path):
    with served(write_run(tmp_path)) as server:
        path = f"/{server.secret}/run/0"
        assert request(server, path, Host="evil.example:80")[0] == 403
        assert request(server, path, Host="localhost:9000")[0] == 200  # through a tunnel


def test_a_second_host_header_is_forbidden(tmp_path):
    with served(write_run(tmp_path)) as server:
        for hosts in (("localhost:1", "evil.example:1"), ("localhost:1", "localhost:1"), ()):
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
            connection.putrequest("GET", f"/{server.secret}/run/0", skip_host=True)
            for host in hosts:
                connection.putheader("Host", host)
            connection.endheaders()
            assert connection.getresponse().status == 403
            connection.close()


def test_server_listens_on_the_loopback_only(tmp_path):
    with served(write_run(tmp_path)) as server:
        assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"])
def test_methods_other_than_get_are_not_allowed(method, tmp_path):
    with served(write_run(tmp_path)) as server:
        assert request(server, f"/{server.secret}/", method)[0] == 405


@pytest.mark.parametrize(
    "path",
    [
        "run/9",
        "run/x",
        "run/0/step/x/group/0",
        "run/0/step/9/group/0",
        "run/0/step/1/group/2",
        "nothing",
        "run/0?since=x",
        "../",
    ],
)
def test_unknown_paths_are_not_found(path, tmp_path):
    with served(write_run(tmp_path)) as server:
        assert request(server, f"/{server.secret}/{path}")[0] == 404


def test_page_may_only_connect_to_its_server(tmp_path):
    with served(write_run(tmp_path)) as server:
        _, page = request(server, f"/{server.secret}/")
    assert "connect-src 'self'" in page
    assert '{"live":true,"count":1}' in page


def test_growing_run_is_served_incrementally(tmp_path):
    run = write_run(tmp_path, ended=False)
    with served(run) as server:
        initial = get_json(server, "run/0")
        assert initial["metrics"]["step"] == [1, 2, 3]
        write_lines(run / "metrics.jsonl", [metrics(step) for step in range(1, 6)])
        update = get_json(server, f"run/0?since=3&epoch={initial['epoch']}")
        assert (update["since"], update["metrics"]["step"]) == (3, [4, 5])
        assert get_json(server, "run/0/step/2/group/1")["task"] == "two"


def test_truncated_journals_are_served_from_the_start(tmp_path):
    run = write_run(tmp_path, ended=False)
    with served(run) as server:
        get_json(server, "run/0")
        write_run(run, 2, ended=False, **{"policy/entropy": 0.25})
        again = get_json(server, "run/0?since=3&epoch=0")
    assert (again["epoch"], again["since"]) == (1, 0)
    assert again["metrics"]["policy/entropy"] == [0.25, 0.25]


def test_several_runs_are_served(tmp_path):
    with served(write_run(tmp_path / "a"), write_run(tmp_path / "b")) as server:
        assert [get_json(server, f"run/{i}")["name"] for i in range(2)] == ["a", "b"]


def test_port_in_use_is_rejected(tmp_path):
    with served(write_run(tmp_path)) as server:
        port = server.server_port
        with pytest.raises(ConfigError, match=f"port: {port}: Address already in use"):
            ReportServer([tmp_path], port)
