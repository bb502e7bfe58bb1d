"""An optional part of the grader: the options ``--backend gpu``, ``--backend tpu`` and ``--processes``."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(devices="options.devices_at", doctor="options.doctor")
