"""The command that writes the leaderboard."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from grader import cli
from tests.wings.leaderboard.test_board import of


def test_the_leaderboard_shows_only_chosen_names(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    for report in (of("ada", "quiet otter", 7_000_000_000), of("bob", "newt", status="failed")):
        (tmp_path / "reports" / f"{report.student}.json").write_text(report.dumps())
    found = CliRunner().invoke(cli.app, ["leaderboard", str(tmp_path)])
    assert found.exit_code == 0
    assert "  1  quiet otter" in found.stdout
    assert "7.000 ms" in found.stdout
    assert "bob is not ranked: some checks did not pass" in found.stderr
    assert "quiet otter" in (tmp_path / "leaderboard.html").read_text()
