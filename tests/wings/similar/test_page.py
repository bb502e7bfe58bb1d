"""Groups connect students with similar code, and the listed pairs show every group."""

from __future__ import annotations

from grader.wings.similar.comparing import Comparison, Pair, StudentCode, compare
from grader.wings.similar.page import groups, listed, side_by_side
from tests.wings.similar.programs import STUB, disguised, honest, work


def pair(one: str, other: str, shared: float, unusual: bool = True) -> Pair:
    return Pair(StudentCode(one, ()), StudentCode(other, ()), shared, 0.5, unusual)


STAR = [pair("s008", f"s{n:03}", 90.0 - n / 1000) for n in range(100, 130)]
COMPARED = {
    "03_matmuls": Comparison(40, [*STAR, pair("eve", "dan", 50.0), pair("ada", "bo", 20.0, unusual=False)], 5, 30, {}),
    "04_times": Comparison(40, [pair("ada", "cy", 95.0), pair("cy", "bo", 60.0)], 5, 30, {}),
}


def test_students_are_one_group_if_unusual_pairs_connect_them() -> None:
    first, star, last = groups(COMPARED)
    assert (first.module, first.students) == ("04_times", ("ada", "bo", "cy"))
    assert len(star.students) == 31 and "s008" in star.students and len(star.pairs) == 30
    assert last.students == ("dan", "eve")


def test_every_group_is_among_the_first_pairs_beside_a_large_one() -> None:
    names = [(module, p.one.student, p.other.student) for module, p in listed(COMPARED, 4)]
    assert names == [
        ("04_times", "ada", "cy"), ("03_matmuls", "s008", "s100"), ("03_matmuls", "eve", "dan"), ("04_times", "cy", "bo"),
    ]  # fmt: skip
    everything = listed(COMPARED, 100)
    assert len(everything) == 34 and not everything[-1][1].unusual


def test_the_texts_are_whole_and_numbers_lead_to_the_same_passage() -> None:
    one, other = work("a", honest(1)), work("b", disguised(honest(1)))
    found = compare([one, other], [STUB], [])
    left, right = side_by_side(found.pairs[0], found.weights)
    for work_of, shown in ((one, left), (other, right)):
        assert ["".join(piece.text for piece in part.pieces) for part in shown] == [p.text for p in work_of.parts]
    numbers = [piece.number for part in left for piece in part.pieces if piece.number]
    assert numbers == list(range(1, len(numbers) + 1))
    assert {piece.number for part in right for piece in part.pieces} <= {0, *numbers}
    marked = "".join(piece.text for part in left for piece in part.pieces if piece.number)
    assert "axis_index" in marked and "given_helper" not in marked


def test_unshared_code_is_not_marked() -> None:
    lonely = "\n".join(f"value{i} = helper.run{i}(value, *, other={{}})" for i in range(20))
    one, other = work("a", honest(1), lonely), work("b", honest(1))
    found = compare([one, other], [STUB], [])
    left, _ = side_by_side(found.pairs[0], found.weights)
    assert all(piece.number == 0 for piece in left[1].pieces)
