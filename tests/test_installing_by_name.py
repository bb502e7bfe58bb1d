"""No text tells users to install shardlings by name from a package index, where strangers may register the name."""

from __future__ import annotations

import re
from pathlib import Path

from tests.commands import ROOT
from tests.repository import git

BY_NAME = re.compile(
    r"(pip install|uv add|pipx install|uvx)\b[^`\n|#]*?\s['\"]?shardlings(\[[a-z,]+\])?['\"]?(?!\s*@)(?=\s|$|[`;)])"
)
STUDENTS = ("examples/", "tests/submissions/")


def test_no_text_installs_shardlings_by_name() -> None:
    found = [
        f"{path}: {line.strip()}"
        for path in map(Path, git(ROOT, "ls-files").splitlines())
        if path.suffix in {".md", ".py", ".ipynb", ".yml", ".yaml", ".toml"}
        and path.name != Path(__file__).name
        and not str(path).startswith(STUDENTS)
        for line in (ROOT / path).read_text(encoding="utf-8").splitlines()
        if BY_NAME.search(line)
    ]
    assert not found


def test_the_pattern_finds_an_install_by_name_and_no_other() -> None:
    by_name = ["pip install shardlings", "run: pip install 'shardlings[tpu]'", "%pip install -q shardlings"]
    others = ["pip install ./tool", "pip install git+https://host/shardlings", "pip install dist/shardlings-*.whl"]
    others.append("pip install 'shardlings[nbgrader] @ git+REPOSITORY'")
    assert all(BY_NAME.search(line) for line in by_name)
    assert not any(BY_NAME.search(line) for line in others)
