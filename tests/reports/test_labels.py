"""Labels of questions on the class page, if each student's question has numbers of its own."""

from __future__ import annotations

import pytest

from grader.reports.labels import common_label


@pytest.mark.parametrize(
    ("labels", "common"),
    [
        (["a: How long?", "a: How long?"], "a: How long?"),
        (["a: 8 of 16 chips?", "a: 4 of 16 chips?"], "a: … of 16 chips?"),
        (["a: 8 of 16 chips?", "a: 4 of 16 chips?", "a: 4 of 32 chips?"], "a: … of … chips?"),
        (["a: `A[8, 16]`?", "a: `A[4, 32]`?"], "a: `A[…, …]`?"),
        (["a: on v5e, 1.5 ms", "a: on H100, 2 ms"], "a: on …, … ms"),
        (["a: twice the rows", "a: half the rows of before"], "a: … the rows…"),
    ],
)
def test_common_label_keeps_the_shared_words_of_labels(labels: list[str], common: str) -> None:
    found = labels[0]
    for label in labels[1:]:
        found = common_label(found, label)
    assert found == common
