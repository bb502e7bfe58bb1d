"""Run programs on real devices after the simulated devices, so that checks also judge the real devices' values."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(options={"--processes": "processes.PROCESSES"}, devices="options.devices_at", doctor="options.doctor")
