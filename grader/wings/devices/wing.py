"""What this wing offers: ``--backend gpu`` and ``tpu``, ``--processes``, and lines for ``doctor``."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(devices="options.devices_at", doctor="options.doctor")
