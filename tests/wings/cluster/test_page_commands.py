"""Run the commands of docs/wings/cluster.md at 127.0.0.1. The cluster starts, and opens no port to other machines."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest

from tests.commands import ROOT
from tests.wings.cluster.machines import until

pytest.importorskip("distributed")
psutil = pytest.importorskip("psutil")

PAGE = (ROOT / "docs" / "wings" / "cluster.md").read_text(encoding="utf-8")
FENCED = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
BLOCKS = [text for language, text in FENCED if not language and "\ndask " in f"\n{text}"]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def here(line: str, port: int) -> list[str]:
    """Return the words of a command, for one worker and with the page's addresses and ports replaced."""
    line = re.sub(r"10\.0\.0\.\d+", "127.0.0.1", line.rstrip("& "))
    line = re.sub(r"--nworkers \d+", "--nworkers 1", line.replace(":8787", ":0").replace(":8786", f":{port}"))
    _, what, *words = shlex.split(line, comments=True)
    ports = ["--port", str(port)] if what == "scheduler" else []
    return [sys.executable, "-m", f"distributed.cli.dask_{what}", *words, *ports]


def listens(root: int) -> list[tuple[str, int]]:
    """Return the addresses at which a process and its children listen."""
    one = psutil.Process(root)
    sockets = [s for p in (one, *one.children(recursive=True)) for s in p.net_connections(kind="inet")]
    return [(s.laddr.ip, s.laddr.port) for s in sockets if s.status == psutil.CONN_LISTEN]


def settings(folder: Path) -> dict[str, str]:
    """Make the certificates of the page in ``folder``, and return an environment with the page's settings of TLS."""
    (made,) = re.findall(r"^openssl .*$", PAGE, re.MULTILINE)
    subprocess.run(["bash", "-ec", made], cwd=folder, check=True, capture_output=True)
    (text,) = (text for language, text in FENCED if language == "yaml")
    (folder / "tls.yaml").write_text(text.replace("/etc/shardlings", str(folder)))
    return {"DASK_CONFIG": str(folder)}


def test_the_page_has_three_clusters() -> None:
    assert len(BLOCKS) == 3 and [("tls://" in block) for block in BLOCKS] == [False, False, True]


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS, ids=["network", "one machine", "tls"])
def test_the_commands_of_the_page_listen_only_at_the_address_that_they_name(block: str, tmp_path: Path) -> None:
    if "tls://" in block and shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    env = os.environ | (settings(tmp_path) if "tls://" in block else {})
    port, log = free_port(), tmp_path / "log"
    commands = [here(line, port) for line in block.splitlines() if line.startswith("dask ")]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        with log.open("wb") as output:
            for command, ready in zip(commands, ("Scheduler at:", "Registered to:"), strict=True):
                processes.append(subprocess.Popen(command, cwd=tmp_path, env=env, stdout=output, stderr=output))
                until(lambda text=ready: text in log.read_text(), log.read_text)
        found = [address for process in processes for address in listens(process.pid)]
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(60)
    assert len(found) >= 5  # the scheduler, the worker and its nanny listen; two of them also have an HTTP port
    assert [address for address in found if not ip_address(address[0]).is_loopback] == []
