"""The page's server. It listens only on this machine, and serves only browsers that know the page's secret address.

The headers of its answers forbid the browser to connect to other servers, and to load their scripts and styles.
A request must name this server in its Host header, so a foreign page cannot send requests through a host name that
resolves to this machine. A request that changes state must name this page in its Origin header. The server refuses
requests that another page sent, except a request that opens this page.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route

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
FILES = (STATIC / "page.css", STATIC / "page.js", CORE / "player.js", CORE / "style.css")
TYPES = {".css": "text/css", ".js": "text/javascript"}
# If nothing changes for this many seconds, the stream of events sends an empty comment. The stream's thread then also
# finds out whether the browser has gone.
KEEP_ALIVE = 5.0
LARGEST = 1000  # The body of an HTTP request has at most this many bytes.
WIDTHS = (300.0, 12_000.0)


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
        self._hosts = {urlsplit(at).netloc} - {""}
        self._token, self._once = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self._socket = _bound(port)
        base = at.rstrip("/") or f"http://{LOOPBACK}:{self._socket.getsockname()[1]}"
        self._base, self.address = base, f"{base}/{self._token}/"
        config = uvicorn.Config(
            self._app(), log_level="critical", access_log=False, lifespan="off", ws="none",
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
            *(Route(f"/{path.name}", _served(path)) for path in FILES),
            Route("/events", self._events),
            Route("/timeline", self._laid),
            Route("/act", self._acted, methods=["POST"]),
        ]
        return Starlette(
            routes=[Route("/open/{once}", self._opened), Mount(f"/{self._token}", routes=inside)],
            middleware=[Middleware(BaseHTTPMiddleware, dispatch=self._guarded)],
        )

    async def _guarded(self, request: Request, answer: RequestResponseEndpoint) -> Response:
        """Refuse requests that do not come from the page, and add ``HEADERS`` to every answer."""
        problem = self._problem(request)
        response = PlainTextResponse(f"{problem}\n", 403) if problem else await answer(request)
        response.headers.update(HEADERS)
        return response

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

    def _opened(self, request: Request) -> Response:
        if not secrets.compare_digest(request.path_params["once"].encode(), self._once.encode()):
            return PlainTextResponse(
                "this address works only once; open the address that the terminal shows now\n", 403
            )
        self._once = secrets.token_urlsafe(24)
        return RedirectResponse(f"../{self._token}/", 303)

    def _page(self, request: Request) -> Response:
        return HTMLResponse(whole_page(self._regions.texts))

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

    def _events(self, request: Request) -> Response:
        return StreamingResponse(self._changes(), media_type="text/event-stream")

    def _changes(self) -> Iterator[str]:
        """Yield all parts of the page, then each change, as server-sent events."""
        sent: dict[str, str] = {}
        while not self._regions.closed:
            changed = self._regions.after(sent, KEEP_ALIVE)
            sent |= changed
            yield f"data: {json.dumps(changed)}\n\n" if changed else ": \n\n"


def _bound(port: int) -> socket.socket:
    """Return a socket that listens, so that a browser can connect before the server's thread runs."""
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise WingError(
            f"--port {port}: {os.strerror(error.errno or 0)}; choose another port, or leave --port out for a free port"
        ) from None


def _served(path: Path) -> Callable[[Request], Response]:
    return lambda _: FileResponse(path, media_type=TYPES[path.suffix])


class Regions:
    """The page's parts as HTML, by name. All methods are thread-safe.

    Attributes:
        texts: the HTML of each part. A change makes a new mapping.
        closed: True if the page was closed, so that the server must end its streams of changes.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.texts: dict[str, str] = {}
        self.closed = False

    def put(self, texts: Mapping[str, str]) -> None:
        """Replace the parts in ``texts``."""
        with self._changed:
            self.texts = {**self.texts, **texts}
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def after(self, known: Mapping[str, str], seconds: float) -> dict[str, str]:
        """Return the parts that differ from ``known``. Wait this long for a difference, or until the page is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self.closed or self.texts != known, seconds)
            return {name: text for name, text in self.texts.items() if known.get(name) != text}
