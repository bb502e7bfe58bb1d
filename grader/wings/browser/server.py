"""The page's server. It listens only on this machine, and serves only browsers that know the page's secret address.

The headers of its answers forbid the browser to connect to other servers, and to load their scripts and styles.
A request must name this server in its Host header, so a foreign page cannot send requests through a host name that
resolves to this machine. A request that changes state must name this page in its Origin header. The server refuses
requests that another page sent, except a request that opens this page.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from grader.reports.pages import TEMPLATES as CORE
from grader.wing import WingError
from grader.wings.browser.view import whole_page

STATIC = Path(__file__).parent / "static"
LOOPBACK = "127.0.0.1"
NAMES = {LOOPBACK, "localhost"}
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store, no-transform",
    "x-accel-buffering": "no",  # without this header, proxies such as nginx delay events
}
SCRIPTS = (STATIC / "page.js", CORE / "player.js")
KEEP_ALIVE = 15.0  # If nothing changes for this many seconds, the stream of events sends an empty comment.
LARGEST = 1000  # The body of an HTTP request has at most this many bytes.
WIDTHS = (300.0, 12_000.0)


class Guard:
    """Refuse requests that do not come from the page, and add ``HEADERS`` to every answer.

    Args:
        app: the application that answers all allowed requests.
        at: the address at which the browser reaches the page through a proxy; "" without a proxy. Requests may name
            this address's host.
    """

    def __init__(self, app: ASGIApp, at: str) -> None:
        self._app = app
        self._hosts = {urlsplit(at).netloc} - {""}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def answer(message: dict) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            await send(message)

        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        problem = self._problem(Request(scope))
        app = PlainTextResponse(f"{problem}\n", 403) if problem else self._app
        await app(scope, receive, answer)  # pyright: ignore[reportArgumentType]

    def _problem(self, request: Request) -> str:
        host = request.headers.get("host", "")
        if host not in self._hosts and urlsplit(f"//{host}").hostname not in NAMES:
            return "the Host header is not the page's address; behind a proxy start watch with --at ADDRESS"
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc not in {host, *self._hosts}:
            return "the Origin header is not the page's address"
        site = request.headers.get("sec-fetch-site", "same-origin")
        opened = request.method == "GET" and request.headers.get("sec-fetch-mode") == "navigate"
        if site not in ("same-origin", "none") and not opened:
            return "another site sent this request"
        if request.method == "POST" and origin is None:
            return "a request that changes something needs an Origin header"
        return ""


class Server:
    """Serves the page in a thread of its own.

    Args:
        regions: the page's parts.
        act: a function that is called with a button's name and value, and returns False if the page has no such button.
        timeline: a function that takes a width in pixels and returns the chosen program's timeline as HTML.
        port: the port to listen on; 0 for any free port.
        at: the address at which the browser reaches the page through a proxy; "" without a proxy.

    Raises:
        WingError: the port is taken, or the address is invalid.
    """

    def __init__(
        self, regions: Regions, act: Callable[[str, str], bool], timeline: Callable[[float], str], port: int, at: str
    ) -> None:
        if at and (urlsplit(at).scheme not in ("http", "https") or not urlsplit(at).netloc):
            raise WingError(f"--at {at} is not an address; write one such as https://hub.example/user/me/proxy/8642/")
        self._regions, self._act, self._timeline = regions, act, timeline
        self._token, self._once = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self._socket = _bound(port)
        base = at.rstrip("/") or f"http://{LOOPBACK}:{self._socket.getsockname()[1]}"
        self._base, self.address = base, f"{base}/{self._token}/"
        config = uvicorn.Config(
            Guard(self._app(), at), log_level="critical", access_log=False, lifespan="off", ws="none",
            timeout_graceful_shutdown=1, server_header=False, proxy_headers=False,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True, name="page")

    def start(self) -> None:
        self._thread.start()

    def once(self) -> str:
        """Return an address that works only once, because other users can see it in the browser's command line."""
        return f"{self._base}/open/{self._once}"

    def close(self) -> None:
        self._regions.close()
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(5)
        self._socket.close()

    def _app(self) -> Starlette:
        inside = [
            Route("/", self._page),
            Route("/page.css", lambda _: Response(_style(), media_type="text/css")),
            *(Route(f"/{path.name}", _script(path)) for path in SCRIPTS),
            Route("/events", self._events),
            Route("/timeline", self._laid),
            Route("/act", self._acted, methods=["POST"]),
        ]
        return Starlette(routes=[Route("/open/{once}", self._opened), Mount(f"/{self._token}", routes=inside)])

    def _opened(self, request: Request) -> Response:
        if not secrets.compare_digest(request.path_params["once"].encode(), self._once.encode()):
            return PlainTextResponse(
                "this address works only once; open the address that the terminal shows now\n", 403
            )
        self._once = secrets.token_urlsafe(24)
        return RedirectResponse(f"../{self._token}/", 303)

    def _page(self, request: Request) -> Response:
        return HTMLResponse(whole_page(self._regions.since(0)[1]))

    def _laid(self, request: Request) -> Response:
        try:
            width = float(request.query_params["width"])
        except (KeyError, ValueError):
            return PlainTextResponse("width must be a number of pixels\n", 400)
        # With the arguments in this order, a width of NaN becomes the smallest width.
        return HTMLResponse(self._timeline(min(WIDTHS[1], max(WIDTHS[0], width))))

    async def _acted(self, request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > LARGEST:
                return PlainTextResponse("too long\n", 413)
        try:
            data = json.loads(body)
            name, value = str(data["do"]), str(data.get("value", ""))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return PlainTextResponse('write {"do": NAME, "value": TEXT}\n', 400)
        return Response(status_code=204) if self._act(name, value) else PlainTextResponse("no such button\n", 404)

    async def _events(self, request: Request) -> Response:
        return StreamingResponse(self._changes(), media_type="text/event-stream")

    async def _changes(self) -> AsyncIterator[str]:
        """Yield all parts of the page, then each change, as server-sent events."""
        changed, loop = asyncio.Event(), asyncio.get_running_loop()
        stop = self._regions.listen(lambda: loop.call_soon_threadsafe(changed.set))
        number = 0
        try:
            while not self._regions.closed:
                changed.clear()
                number, texts = self._regions.since(number)
                yield f"data: {json.dumps(texts)}\n\n" if texts else ": \n\n"
                if not self._regions.closed:
                    try:
                        await asyncio.wait_for(changed.wait(), KEEP_ALIVE)
                    except TimeoutError:
                        continue
        finally:
            stop()


def _bound(port: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((LOOPBACK, port))
        made.listen()  # listen now, so that a browser can connect before the server's thread runs
    except OSError as error:
        made.close()
        raise WingError(
            f"--port {port}: {error.strerror}; choose another port, or leave --port out for a free port"
        ) from None
    return made


def _script(path: Path) -> Callable[[Request], Response]:
    return lambda _: Response(_text(path), media_type="text/javascript")


def _style() -> str:
    return _text(CORE / "style.css") + _text(STATIC / "page.css")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


# -- the page's parts --------------------------------------------------------------------------


class Regions:
    """The page's parts as HTML, by name. Changes are numbered, and each part has the number of its last change.

    All methods are thread-safe.

    Attributes:
        closed: True if the page was closed, so that the server must end its streams of changes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: dict[str, str] = {}
        self._changed: dict[str, int] = {}
        self._number = 0
        self._wake: set[Callable[[], object]] = set()
        self.closed = False

    def put(self, texts: Mapping[str, str]) -> None:
        """Replace the parts in ``texts``. If any part changed, call the functions that were passed to ``listen``."""
        with self._lock:
            new = {name: text for name, text in texts.items() if self._texts.get(name) != text}
            if not new:
                return
            self._number += 1
            self._texts |= new
            self._changed |= dict.fromkeys(new, self._number)
            wake = list(self._wake)
        for one in wake:
            one()

    def close(self) -> None:
        with self._lock:
            self.closed, wake = True, list(self._wake)
        for one in wake:
            one()

    def since(self, number: int) -> tuple[int, dict[str, str]]:
        """Return the number of the last change, and the parts that changed after change ``number``."""
        with self._lock:
            return self._number, {name: self._texts[name] for name, at in self._changed.items() if at > number}

    def listen(self, wake: Callable[[], object]) -> Callable[[], None]:
        """Call ``wake`` after each change, from any thread. Return a function that ends these calls."""
        with self._lock:
            self._wake.add(wake)

        def stop() -> None:
            with self._lock:
                self._wake.discard(wake)

        return stop
