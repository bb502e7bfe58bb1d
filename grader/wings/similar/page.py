"""Pairs of students whose work is more alike than is usual, side by side, for a person to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from grader.wings.similar.comparing import Comparison, Pair
from grader.wings.similar.passages import MarkedFile, TextSpan, side_by_side


@dataclass(frozen=True)
class PairRow:
    """A row of the page's list: a pair of students; ``sides``: the code of both, as HTML."""

    number: int
    module: str
    pair: Pair
    sides: tuple[list[tuple[str, Markup]], list[tuple[str, Markup]]]


def listed(compared: Mapping[str, Comparison], most: int) -> list[tuple[str, Pair]]:
    """(module, pair) of all modules, those that share the most first; those that are unusual before all others."""
    pairs = [(module, pair) for module, of in compared.items() for pair in of.pairs]
    return sorted(pairs, key=lambda f: (not f[1].unusual, -f[1].shared, f[0], f[1].one.student, f[1].other.student))[
        :most
    ]


def lines(compared: Mapping[str, Comparison], most: int) -> list[PairRow]:
    """What the page shows of ``most`` pairs."""
    found = []
    for number, (module, pair) in enumerate(listed(compared, most), start=1):
        one, other = side_by_side(pair, compared[module].weights)
        found.append(
            PairRow(number, module, pair, (_as_html(one, other, number, "ab"), _as_html(other, one, number, "ba")))
        )
    return found


def _as_html(
    here: Sequence[MarkedFile], there: Sequence[MarkedFile], pair: int, sides: str
) -> list[tuple[str, Markup]]:
    """Each file or cell; a shared passage links to the same one on the other side, where that is marked as a whole."""
    known = {piece.number for part in there for piece in part.pieces}
    seen: set[int] = {0}
    shown = []
    for part in here:
        text = Markup("")
        for piece in part.pieces:
            text += (
                _marked(piece, pair, sides, piece.number not in seen, piece.number in known)
                if piece.number
                else piece.text
            )
            seen.add(piece.number)
        shown.append((part.name, text))
    return shown


def _marked(piece: TextSpan, pair: int, sides: str, first: bool, linked: bool) -> Markup:
    anchor = Markup(' id="p{}{}{}"').format(pair, sides[0], piece.number) if first else ""
    link = Markup(' href="#p{}{}{}"').format(pair, sides[1], piece.number) if linked else ""
    return Markup("<mark{}><a{}>{}</a>{}</mark>").format(anchor, link, piece.number, piece.text)
