"""The wing of ``--backend gpu`` and ``tpu``, of ``--processes``, and of lines for ``doctor``."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(devices="options.devices_at", doctor="options.doctor")
