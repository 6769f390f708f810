"""Who gets what from the server of a run under way."""

import http.client
import json
from typing import Any

import pytest

from grupo.core.errors import ConfigError
from grupo.report.html.server import ReportServer
from tests.helpers.report_servers import served
from tests.helpers.written_runs import lines, metrics, write


def ask(server: ReportServer, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request_index(method, path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def told(server: ReportServer, path: str) -> Any:
    status, text = ask(server, f"/{server.secret}/{path}")
    assert status == 200
    return json.loads(text)


def test_only_who_has_the_secret_is_answered(tmp_path):
    with served(write(tmp_path)) as server:
        assert ask(server, f"/{server.secret}/")[0] == 200
        for path in ("/", "/run/0", "/wrong/", f"/{server.secret[:-1]}/"):
            assert ask(server, path)[0] == 403, path
        assert len(server.secret) >= 32  # 24 random bytes


def test_a_page_elsewhere_that_has_its_name_answered_with_this_machine_gets_nothing(tmp_path):
    with served(write(tmp_path)) as server:
        path = f"/{server.secret}/run/0"
        assert ask(server, path, Host="evil.example:80")[0] == 403
        assert ask(server, path, Host="localhost:9000")[0] == 200  # through a tunnel


def test_it_listens_on_the_loopback_alone(tmp_path):
    with served(write(tmp_path)) as server:
        assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"])
def test_nothing_but_get_is_allowed(method, tmp_path):
    with served(write(tmp_path)) as server:
        assert ask(server, f"/{server.secret}/", method)[0] == 405


@pytest.mark.parametrize(
    "path", ["run/9", "run/x", "run/0/step/x", "nothing", "run/0?since=x", "../"]
)
def test_what_is_not_there_is_not_found(path, tmp_path):
    with served(write(tmp_path)) as server:
        assert ask(server, f"/{server.secret}/{path}")[0] == 404


def test_the_page_may_ask_nobody_but_its_server(tmp_path):
    with served(write(tmp_path)) as server:
        _, page = ask(server, f"/{server.secret}/")
    assert "connect-src 'self'" in page
    assert '{"live":true,"count":1}' in page


def test_it_follows_a_run_that_grows_and_tells_what_is_new(tmp_path):
    run = write(tmp_path, ended=False)
    with served(run) as server:
        first = told(server, "run/0")
        assert first["metrics"]["step"] == [0, 1, 2]
        lines(run / "metrics.jsonl", [metrics(step) for step in range(5)])
        more = told(server, f"run/0?since=3&epoch={first['epoch']}")
        assert (more["since"], more["metrics"]["step"]) == (3, [3, 4])
        assert [g["task"] for g in told(server, "run/0/step/2")] == ["one", "two"]


def test_what_was_known_of_journals_that_were_cut_back_is_told_anew(tmp_path):
    run = write(tmp_path, ended=False)
    with served(run) as server:
        told(server, "run/0")
        write(run, 2, ended=False, entropy=0.25)
        again = told(server, "run/0?since=3&epoch=0")
    assert (again["epoch"], again["since"], again["metrics"]["entropy"]) == (1, 0, [0.25, 0.25])


def test_several_runs_are_served_together(tmp_path):
    with served(write(tmp_path / "a"), write(tmp_path / "b")) as server:
        assert [told(server, f"run/{i}")["name"] for i in range(2)] == ["a", "b"]


def test_a_port_that_is_taken_is_refused_by_its_number(tmp_path):
    with served(write(tmp_path)) as server:
        taken = server.server_port
        with pytest.raises(ConfigError, match=f"port: {taken}: Address already in use"):
            ReportServer([tmp_path], taken)
