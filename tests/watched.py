"""Run a command in a process that records its parsing of texts with a mark."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.commands import ROOT

WATCHED = """
import json, os, sys, zipfile
file, mark = sys.argv.pop(1), "MARK" + "ED"

def saw(what, text=mark):
    if mark in (text if isinstance(text, str) else bytes(text).decode("utf-8", "replace")):
        with open(file, "a") as out:
            print(what, file=out)

def hook(event, arguments):
    if event == "compile" and isinstance(arguments[0], str | bytes):
        saw("python", arguments[0])

sys.addaudithook(hook)
loads, ZipFile = json.loads, zipfile.ZipFile
json.loads = lambda text, **more: (saw("json", text), loads(text, **more))[1]
zipfile.ZipFile = lambda *args, **more: (saw("zip"), ZipFile(*args, **more))[1]
{run}
"""
SHARDLINGS = "from grader.cli import main; main()"


def parsed_by(
    *words: str, cwd: Path, run: str = SHARDLINGS, **variables: str
) -> tuple[set[str], subprocess.CompletedProcess[str]]:
    """Run a command.

    Return the kinds (python, json, zip) of marked texts that the command's process parsed, and the command's result.
    """
    env = os.environ | {"PYTHONPATH": str(ROOT)} | variables
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "seen")
        file.touch()
        code = [sys.executable, "-c", WATCHED.replace("{run}", run), str(file), *words]
        done = subprocess.run(code, cwd=cwd, env=env, capture_output=True, text=True)
        assert "Traceback" not in done.stderr, done.stderr
        return set(file.read_text().split()), done
