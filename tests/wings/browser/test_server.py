"""The page's server refuses all requests that do not come from its page."""

from __future__ import annotations

import http.client
import json
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from grader import wing
from grader.wing import WingError
from grader.wings.browser.server import HEADERS, Regions, Server

PROXY = "https://hub.example/user/ada/proxy/8642/"


class Client:
    """A server, and a client that sends it requests with any headers. ``done``: the actions that requests caused."""

    def __init__(self, at: str = "") -> None:
        self.regions, self.done = Regions(), []
        self.regions.put({"head": "<p>the head</p>", "statement": "", "checks": "", "hints": "", "program": ""})
        self.server = Server(self.regions, self._act, lambda width: f"<p>{width:g}</p>", 0, at)
        self.port = self.server._socket.getsockname()[1]
        self.host = f"127.0.0.1:{self.port}"
        self.token = self.server.address.rstrip("/").rpartition("/")[2]
        self.server.start()

    def _act(self, name: str, value: str) -> bool:
        self.done.append((name, value))
        return name == "hint"

    def asks(self, path: str, method: str = "GET", body: str = "", **headers: str) -> tuple[int, str, dict[str, str]]:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            named = {"Host": self.host} | {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body.encode(), named)
            answer = connection.getresponse()
            about = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, answer.read().decode(), about

    def presses(self, body: object, **headers: str) -> int:
        text = body if isinstance(body, str) else json.dumps(body)
        return self.asks(f"/{self.token}/act", "POST", text, **({"Origin": f"http://{self.host}"} | headers))[0]


@pytest.fixture
def client() -> Iterator[Client]:
    made = Client()
    yield made
    made.server.close()


def test_the_page_is_at_the_address_with_the_token_alone(client: Client) -> None:
    assert client.server.address == f"http://{client.host}/{client.token}/" and len(client.token) >= 32
    status, text, _ = client.asks(f"/{client.token}/")
    assert status == 200 and "<p>the head</p>" in text
    for path in ("/", "/events", "/page.js", f"/{client.token[:-1]}/", f"/{client.token.lower()}x/", "/open/x"):
        status, text, _ = client.asks(path)
        assert status in (403, 404) and "the head" not in text and client.token not in text


def test_every_answer_forbids_scripts_and_connections_from_elsewhere(client: Client) -> None:
    for path in (f"/{client.token}/", f"/{client.token}/page.js", "/nothing"):
        about = client.asks(path)[2]
        assert {name: about[name] for name in HEADERS} == HEADERS
    policy = HEADERS["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "0.0.0.0", "hub.example"]
)
def test_a_name_that_only_resolves_to_this_machine_is_refused(client: Client, host: str) -> None:
    status, text, _ = client.asks(f"/{client.token}/", Host=host)
    assert (status, text) == (
        403,
        "the Host header is not the page's address; behind a proxy start watch with --at ADDRESS\n",
    )


def test_a_forwarded_port_is_accepted(client: Client) -> None:
    for host in ("localhost:9000", "127.0.0.1:9000", "localhost"):
        assert client.asks(f"/{client.token}/", Host=host)[0] == 200


def test_requests_of_other_pages_are_refused(client: Client) -> None:
    page = f"/{client.token}/"
    for origin in ("https://evil.example", "null", f"http://{client.host}.evil.example", "http://127.0.0.1:1"):
        assert client.asks(page, Origin=origin)[:2] == (403, "the Origin header is not the page's address\n")
        assert client.presses({"do": "hint"}, Origin=origin) == 403
    assert client.asks(page, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0] == 403
    # A link on another site may open the page.
    assert client.asks(page, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 200
    no_origin = client.asks(f"/{client.token}/act", "POST", '{"do": "hint"}')
    assert no_origin[:2] == (403, "a request that changes something needs an Origin header\n")
    assert client.done == []


def test_buttons_reach_the_loop(client: Client) -> None:
    assert client.presses({"do": "hint"}) == 204
    assert client.presses({"do": "erase", "value": 3}) == 404
    assert client.done == [("hint", ""), ("erase", "3")]


@pytest.mark.parametrize("body", ["", "[]", "3", "{}", "{", "[" * 900, '"do"'])
def test_requests_that_are_no_button_are_refused(client: Client, body: str) -> None:
    assert client.presses(body) == 400 and client.done == []


def test_a_long_request_is_refused(client: Client) -> None:
    assert client.presses(json.dumps({"do": "x" * 2000})) == 413 and client.done == []


def test_a_timeline_has_a_width_within_bounds(client: Client) -> None:
    found = [client.asks(f"/{client.token}/timeline?width={w}")[:2] for w in ("800", "1e9", "-5", "wide", "inf", "nan")]
    assert [status for status, _ in found] == [200, 200, 200, 400, 200, 200]
    assert [text for _, text in found] == [
        "<p>800</p>", "<p>12000</p>", "<p>300</p>", "width must be a number of pixels\n", "<p>12000</p>",
        "<p>300</p>",
    ]  # fmt: skip


def test_the_address_on_a_command_line_works_once(client: Client) -> None:
    path = client.server.once().removeprefix(f"http://{client.host}")
    assert client.token not in path
    status, _, about = client.asks(path)
    assert (status, about["location"]) == (303, f"../{client.token}/")
    assert client.asks(path)[:2] == (
        403,
        "this address works only once; open the address that the terminal shows now\n",
    )


def test_the_address_of_a_proxy_is_accepted_and_printed() -> None:
    client = Client(PROXY)
    try:
        assert client.server.address == f"{PROXY}{client.token}/"
        assert client.asks(f"/{client.token}/", Host="hub.example")[0] == 200
        assert client.presses({"do": "hint"}, Host="hub.example", Origin="https://hub.example") == 204
        # A proxy may have rewritten the Host header.
        assert client.presses({"do": "hint"}, Origin="https://hub.example") == 204
        assert client.presses({"do": "hint"}, Host="hub.example", Origin="https://evil.example") == 403
    finally:
        client.server.close()


def test_changes_are_sent_until_the_end(client: Client) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=30)
    connection.request("GET", f"/{client.token}/events")
    answer = connection.getresponse()
    assert answer.getheader("content-type") == "text/event-stream; charset=utf-8"
    assert json.loads(_event(answer))["head"] == "<p>the head</p>"
    client.regions.put({"head": "<p>two\nlines</p>"})
    assert json.loads(_event(answer)) == {"head": "<p>two\nlines</p>"}
    client.server.close()
    assert set(answer.read().split()) <= {b":"}
    connection.close()


def _event(answer: http.client.HTTPResponse) -> str:
    while not (line := answer.readline().decode()).startswith("data: "):
        pass
    return line.removeprefix("data: ")


def test_only_this_machine_can_connect(client: Client) -> None:
    assert client.server._socket.getsockname()[0] == "127.0.0.1"


def test_a_port_in_use_is_reported() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(WingError, match=rf"^--port {port}: Address already in use; choose another port, or leave"):
            Server(Regions(), lambda *_: True, lambda _: "", port, "")


@pytest.mark.parametrize("at", ["hub.example", "ftp://hub.example/", "https://", "javascript:alert(1)"])
def test_an_invalid_address_is_reported(at: str) -> None:
    with pytest.raises(WingError, match=r"is not an address; write one such as https://hub\.example/"):
        Server(Regions(), lambda *_: True, lambda _: "", 0, at)


def test_a_part_is_sent_again_only_after_a_change() -> None:
    regions = Regions()
    regions.put({"head": "one", "checks": "none"})
    sent = regions.after({}, 60)
    assert sent == {"head": "one", "checks": "none"} and regions.after(sent, 0) == {}
    regions.put({"head": "two", "checks": "none"})
    assert regions.after(sent, 60) == {"head": "two"}


def test_the_end_wakes_a_stream_that_waits() -> None:
    regions, found = Regions(), []
    regions.put({"head": "one"})
    waiting = threading.Thread(target=lambda: found.append(regions.after({"head": "one"}, 600)))
    waiting.start()
    regions.close()
    waiting.join(60)
    assert found == [{}] and regions.closed


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("grader.wings.browser.", "starlette."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette", None)
    with pytest.raises(WingError, match=r"^--browser needs starlette; in the checkout of .* '\.\[browser\]'$"):
        wing.needed("browser", "--browser")
