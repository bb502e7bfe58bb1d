"""Names and sections of students, from the roster (the course's list of students)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Person:
    """A student's name and section; "" for a fact that the roster lacks."""

    name: str = ""
    section: str = ""

    @property
    def text(self) -> str:
        """Return a text such as ``Alice Liddell, section B``, without a part that the roster lacks."""
        return ", ".join(filter(None, (self.name, self.section and f"section {self.section}")))


UNKNOWN = Person()
People = Mapping[str, Person]
"""Mapping from a student to the student's Person, for the students on the roster."""
NO_PEOPLE: People = MappingProxyType({})


def with_name(student: str, people: People) -> str:
    """Return a text such as ``alice (Alice Liddell, section B)``; ``alice`` if the roster does not name the student."""
    text = people.get(student, UNKNOWN).text
    return f"{student} ({text})" if text else student
