"""Disguised copies are found, and two honest solutions stay below the bound."""

from __future__ import annotations

from grader.wings.similar.comparing import FEW, LENGTH, LONGEST, StudentCode, compare
from tests.wings.similar.programs import STUB, disguised, honest, work


def a_class(students: int) -> list[StudentCode]:
    return [work(f"s{i:03}", honest(i)) for i in range(students)]


def test_a_disguised_copy_is_unusual_and_honest_pairs_are_below_it() -> None:
    works = [*a_class(40), work("copier", disguised(honest(7)))]
    found = compare(works, [STUB], [honest("solution")])
    assert {found.pairs[0].one.student, found.pairs[0].other.student} == {"copier", "s007"}
    assert found.pairs[0].unusual and found.pairs[0].overlap > 0.8
    assert found.pairs[0].shared > 1.5 * found.pairs[1].shared
    assert [p for p in found.pairs[1:] if p.unusual and "copier" not in (p.one.student, p.other.student)] == []


def test_a_copy_spread_over_cells_and_padded_is_as_unusual() -> None:
    parts = disguised(honest(7)).split("\n\n\n")
    padded = [*parts, *(honest(f"padding {i}") for i in range(5))]
    found = compare([*a_class(40), work("copier", *padded)], [STUB], [])
    assert {found.pairs[0].one.student, found.pairs[0].other.student} == {"copier", "s007"}


def test_handed_out_code_does_not_count() -> None:
    assert compare([work("a", STUB), work("b", STUB)], [STUB], []).works == 0
    without = compare([work("a", STUB), work("b", STUB)], [], [])
    assert without.pairs[0].overlap == 1


def test_code_that_is_common_or_in_the_solution_has_no_weight() -> None:
    same = [work(f"t{i}", honest(1)) for i in range(20)]
    others = [work(f"s{i}", honest(f"s{i}")) for i in range(18)]
    assert compare(same, [STUB], []).pairs == []
    assert compare([*same[:2], *others], [STUB], []).pairs[0].overlap == 1
    (weighed,) = compare(same[:2], [STUB], [honest(2)]).pairs
    assert weighed.shared < compare(same[:2], [STUB], []).pairs[0].shared
    assert compare(same[:2], [STUB], [honest(1)]).pairs == []


def test_classes_of_no_one_and_two_students() -> None:
    for works in ([], a_class(1)):
        found = compare(works, [STUB], [])
        assert (found.works, found.pairs, found.usual, found.median) == (len(works), [], None, 0.0)
    copied = compare([work("a", honest(1)), work("b", disguised(honest(1)))], [STUB], [])
    apart = compare(a_class(2), [STUB], [])
    assert copied.pairs[0].unusual and copied.usual is None
    assert not any(pair.unusual for pair in apart.pairs)


def test_a_class_has_a_base_rate_from_twenty_pairs_on() -> None:
    assert compare(a_class(6), [], []).usual is None
    found = compare(a_class(7), [], [])
    assert FEW == 20 and found.usual is not None and found.usual >= found.median


def test_the_order_of_submissions_makes_no_difference() -> None:
    works = a_class(12)
    assert compare(works, [STUB], []) == compare(works[::-1], [STUB], [])


def test_only_the_beginning_of_long_submissions_is_compared() -> None:
    long = work("a", "x = 1\n" * LONGEST, "y = 2\n")
    assert long.too_long and not work("a", STUB).too_long
    assert sum(len(part.text) for part in long.cut().parts) == LONGEST
    # b's submission is shorter than a passage, so it does not count.
    assert compare([long.cut(), work("b", "x")], [], []).works == 1
    assert LENGTH == 12
