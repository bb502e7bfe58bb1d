"""Submit to nbgrader's exchange. The functions import nbgrader when called."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from grader.course.config import CourseError


def configured() -> str:
    """Return the course id if nbgrader is installed and configured to submit from this machine, else ''."""
    try:
        app = _app()
    except (ImportError, OSError, SystemExit):
        return ""
    from nbgrader.exchange.default import Exchange

    course_id = str(app.coursedir.course_id)
    inbound = Path(Exchange(coursedir=app.coursedir, parent=app).root) / course_id / "inbound"
    return course_id if course_id and inbound.is_dir() and os.access(inbound, os.W_OK) else ""


def submit(folder: Path) -> str:
    """Submit a module's folder to the exchange, like ``nbgrader submit``. Return course, assignment and timestamp."""
    from nbgrader.auth import Authenticator
    from nbgrader.exchange import ExchangeError
    from nbgrader.exchange.default import ExchangeSubmit

    app = _app()
    app.coursedir.assignment_id = folder.name
    sender: Any = ExchangeSubmit(
        coursedir=app.coursedir, authenticator=Authenticator(parent=app), parent=app, assignment_dir=str(folder.parent)
    )
    try:
        sender.start()
    except ExchangeError as error:
        raise CourseError(f"nbgrader did not accept the submission: {error or 'see above'}") from None
    return f"{app.coursedir.course_id} {folder.name} {sender.timestamp}"


def _app() -> Any:
    from nbgrader.apps import SubmitApp

    app: Any = SubmitApp()
    app.initialize(["--log-level=ERROR"])
    return app
