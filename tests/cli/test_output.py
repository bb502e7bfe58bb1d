"""What ``grade`` prints: with --quiet the summary line alone, with --verbose a line for each submission."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader.cli import cores
from tests.commands import ROOT, made_up_class, shardlings
