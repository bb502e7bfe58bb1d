"""The examples on the pages on Slurm and Kubernetes work with dask-jobqueue and dask-kubernetes.

Both packages are large, and only these tests need them. With SHARDLINGS_PAGES=required, as in .ci/run, no test is
skipped.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

DOCS = Path(__file__).resolve().parents[3] / "docs" / "wings"
REQUIRED = os.environ.get("SHARDLINGS_PAGES") == "required"


def shown(page: str, language: str) -> str:
    """Return the only block of this language on a page."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    return text


def needs(package: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(package) is None and not REQUIRED
    return pytest.mark.skipif(missing, reason=f"{package} is not installed")


@needs("dask_jobqueue")
def test_a_job_of_slurm_starts_the_workers_that_the_page_says() -> None:
    text = shown("cluster-slurm.md", "python")
    made, _, started = text.partition("cluster.scale(")
    assert started.startswith("jobs=")  # the code after this call needs Slurm
    code = f"{made}\nprint(cluster.job_script())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    script = done.stdout
    assert subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True).stderr == ""
    for line in (
        "#SBATCH -p normal",
        "#SBATCH --cpus-per-task=8",
        "#SBATCH -t 02:00:00",
        "shardlings doctor || exit 1",
    ):
        assert line in script.splitlines(), script
    (command,) = [line for line in script.splitlines() if "dask_worker" in line]
    assert "--nthreads 1 " in command and "--nworkers 8 " in command and "--local-directory $TMPDIR" in command
    assert "tcp://" in command


def strict(schema: Any) -> Any:
    """Return the schema with unknown fields forbidden, because Kubernetes drops such fields silently."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items()}
    if isinstance(made.get("properties"), dict) and not made.get("x-kubernetes-preserve-unknown-fields"):
        made.setdefault("additionalProperties", False)
    return made


def schema_of(kind: str) -> Any:
    """Return the schema of a custom resource, from dask-kubernetes."""
    import dask_kubernetes  # pyright: ignore[reportMissingImports]  not among what is installed for tests

    # These files have the whole schema of each resource.
    for path in sorted(Path(str(dask_kubernetes.__file__)).parent.rglob("crds/*.yaml")):
        for found in yaml.safe_load_all(path.read_text()):
            if found["spec"]["names"]["kind"] == kind:
                schema = strict(found["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
                usual = {name: {} for name in ("apiVersion", "kind", "metadata")}
                return schema | {"properties": schema["properties"] | usual}
    raise LookupError(kind)


@needs("dask_kubernetes")
def test_the_manifest_is_one_of_dask_kubernetes() -> None:
    manifest = yaml.safe_load(shown("cluster-kubernetes.md", "yaml"))
    assert manifest["apiVersion"] == "kubernetes.dask.org/v1"
    schema = schema_of(manifest["kind"])
    jsonschema.validate(manifest, schema)
    for path, value in (
        (("spec", "worker", "replicas"), "8"),
        (("spec", "worker", "replcas"), 8),
        (("spec", "worker", "spec", "containers", 0, "resources", "limts"), {}),
        (("spec", "scheduler", "service", "ports", 0, "port"), "8786"),
    ):
        wrong = place = deepcopy(manifest)
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def test_the_manifest_says_the_same_of_scheduler_and_workers() -> None:
    spec = yaml.safe_load(shown("cluster-kubernetes.md", "yaml"))["spec"]
    scheduler, worker = (spec[of]["spec"]["containers"][0] for of in ("scheduler", "worker"))
    assert scheduler["env"] == worker["env"] and scheduler["image"] == worker["image"]
    ports = {p["name"]: p["containerPort"] for p in scheduler["ports"]}
    assert ports == {p["targetPort"]: p["port"] for p in spec["scheduler"]["service"]["ports"]}
    for of in (spec["scheduler"]["spec"], spec["worker"]["spec"]):
        mounts = {m["name"] for m in of["containers"][0]["volumeMounts"]}
        assert mounts == {v["name"] for v in of["volumes"]}
    assert "--nthreads" in worker["args"] and worker["args"][worker["args"].index("--nthreads") + 1] == "1"


def test_dasks_settings_on_the_page_are_those_that_it_reads() -> None:
    """Dask reads a certificate and a key for each role from the settings on the page."""
    pytest.importorskip("distributed")
    settings = yaml.safe_load(shown("cluster.md", "yaml"))
    code = f"""
import json
import dask
from distributed.security import Security
dask.config.update(dask.config.config, json.loads({json.dumps(json.dumps(settings))}))
found = Security()
print(json.dumps([found.require_encryption, found.tls_ca_file]
      + [getattr(found, f"tls_{{of}}_{{part}}") for of in ("scheduler", "worker", "client") for part in ("cert", "key")]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    place = "/etc/shardlings"
    assert json.loads(done.stdout) == [True, f"{place}/ca.pem", *[f"{place}/cert.pem", f"{place}/key.pem"] * 3]
