"""Two submissions side by side, with their shared passages marked."""

from __future__ import annotations

from grader.wings.similar.comparing import compare
from grader.wings.similar.passages import side_by_side
from tests.wings.similar.programs import STUB, disguised, honest, work


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
