"""docs/report-schema.md describes the fields of the models."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from grader.common.result import ExerciseReport, Report, Result
from grader.reports.pages import render_html
from grader.reports.pictures import Picture

SCHEMA = (Path(__file__).parents[2] / "docs" / "report-schema.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("model", [Report, ExerciseReport, Result])
def test_the_document_describes_exactly_the_fields_of_each_model(model: type[BaseModel]) -> None:
    section = re.search(rf"^## {model.__name__}$(.*?)^##+ ", SCHEMA, re.MULTILINE | re.DOTALL)
    assert section
    assert re.findall(r"^\| `(\w+)` \|", section[1], re.MULTILINE) == list(model.model_fields)


def test_the_document_describes_every_status_and_key() -> None:
    for word in ["passed", "failed", "blocked", "broken", *Picture.model_fields]:
        assert re.search(rf"^\| `{word}` \|", SCHEMA, re.MULTILINE)


def test_the_document_s_example_is_a_report() -> None:
    example = re.search(r"```json\n(.*?)```", SCHEMA, re.DOTALL)
    assert example
    report = Report.loads(example[1])
    assert report.schema_version == Report.model_fields["schema_version"].default
    assert render_html(report).count("<svg") == 2
