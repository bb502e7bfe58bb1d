"""Names and sections of students, as the roster has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Person:
    """A student's name and section; "" for one that the roster does not have."""

    name: str = ""
    section: str = ""

    @property
    def text(self) -> str:
        """Return ``Alice Liddell, section B``, without the part that is not known."""
        return ", ".join(filter(None, (self.name, self.section and f"section {self.section}")))


UNKNOWN = Person()
People = Mapping[str, Person]
"""Person by student, for the students that the roster names."""


def with_name(student: str, people: People) -> str:
    """Return ``alice (Alice Liddell, section B)``, or the student alone if the roster does not name the student."""
    text = people.get(student, UNKNOWN).text
    return f"{student} ({text})" if text else student
