"""Draw the packages of grader/ and their imports: python docs/import_pictures.py [FILE] [PART=WING...]

The script writes docs/imports.svg, or FILE, from the code. ``tests/test_walls.py`` proves that the picture is current. To
draw an older checkout, put it on PYTHONPATH. If it has no grader/wings, name its optional parts: batch.chips=chip.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

PICTURE = Path(__file__).with_name("imports.svg")
CELL, LEFT, TOP = 20, 120, 100
ALLOWED, FORBIDDEN = "#2457c5", "#d55e00"
FONT = 'font-family="system-ui,\'DejaVu Sans\',sans-serif" font-size="13"'


def imports(parts: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the packages that each package of grader/ imports. Imports that only a type checker reads are left out.

    Args:
        parts: for each package or module that counts as part of a wing, the wing's name.
    """
    graph = grimp.build_graph("grader", cache_dir=None, exclude_type_checking_imports=True)
    packages = {"grader": "", "grader.wings": "", "grader.__main__": ""}
    for module in sorted(graph.modules - packages.keys()):
        first, *rest = module.removeprefix("grader.").split(".")
        wing = [wing for part, wing in parts.items() if f"{module}.".startswith(f"grader.{part}.")]
        packages[module] = f"wings.{wing[0]}" if wing else f"wings.{rest[0]}" if first == "wings" else first
    found: dict[str, set[str]] = {name: set() for name in packages.values()}
    for module in graph.modules:
        found[packages[module]] |= {packages[other] for other in graph.find_modules_directly_imported_by(module)}
    return {name: others - {name, ""} for name, others in found.items() if name}


def ordered(imported: Mapping[str, set[str]]) -> list[str]:
    """Return the wings, then the core's packages: each package above all packages that it imports."""
    core = {name: {n for n in imported[name] if not is_wing(n)} for name in imported if not is_wing(name)}
    depth: dict[str, int] = {}
    for name in TopologicalSorter(core).static_order():
        depth[name] = 1 + max((depth[other] for other in core[name]), default=0)
    return [*sorted(filter(is_wing, imported)), *sorted(core, key=lambda name: (-depth[name], name))]


def is_wing(name: str) -> bool:
    return name.startswith("wings.")


def drawn(imported: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield the lines of the picture: a row and a column for each package, and a square for each import."""
    names, size = ordered(imported), CELL * len(imported)
    cut = CELL * sum(map(is_wing, names))
    wrong = sum(map(is_wing, set().union(*imported.values())))
    frame = f"M{LEFT} {TOP + cut}h{size}M{LEFT + cut} {TOP}v{size}"
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + size + 10} {TOP + size + 10}" {FONT} fill="#1c2330">'
    yield f"<title>Imports between the packages of grader/. Wings that a package imports: {wrong}</title>"
    yield '<rect width="100%" height="100%" fill="#ffffff"/>'
    yield f'<rect x="{LEFT}" y="{TOP}" width="{cut}" height="{cut}" fill="#eef3fc"/>'
    yield f'<rect x="{LEFT + cut}" y="{TOP + cut}" width="{size - cut}" height="{size - cut}" fill="#fdf8e4"/>'
    for at, name in enumerate(names):
        middle, label = CELL * at + CELL // 2, name.removeprefix("wings.")
        yield f'<path d="M{LEFT} {TOP + middle}h{size}M{LEFT + middle} {TOP}v{size}" stroke="#dfe3ea"/>'
        yield f'<text x="{LEFT - 6}" y="{TOP + middle + 5}" text-anchor="end">{label}</text>'
        yield f'<text transform="translate({LEFT + middle + 5} {TOP - 6})rotate(-90)">{label}</text>'
    yield f'<path d="M{LEFT} {TOP}l{size} {size}" stroke="#8b93a3" stroke-dasharray="3 3"/>'
    yield f'<path d="{frame}" stroke="#434b59" stroke-width="2"/>'
    for row, name in enumerate(names):
        for column, other in enumerate(names):
            if other in imported[name]:
                place = (
                    f'x="{LEFT + CELL * column + 4}" y="{TOP + CELL * row + 4}" width="{CELL - 8}" height="{CELL - 8}"'
                )
                fill = FORBIDDEN if is_wing(other) else ALLOWED
                yield f'<rect {place} fill="{fill}"><title>{name} imports {other}</title></rect>'
    yield f'<g font-weight="bold"><text x="4" y="{TOP - 6}">wings</text><text x="4" y="{TOP + cut + 15}">core</text></g>'
    if not wrong:
        yield '<g text-anchor="middle" stroke="#ffffff" stroke-width="5" paint-order="stroke">'
        yield f'<text x="{LEFT + cut // 2}" y="{TOP + cut // 2}">no wing imports a wing</text>'
        yield f'<text x="{LEFT + cut // 2}" y="{TOP + cut + 65}">the core imports no wing</text></g>'
    yield "</svg>\n"


def picture(parts: Mapping[str, str]) -> str:
    """Return the picture of the package that Python finds as ``grader``; ``parts`` as in ``imports``."""
    return "\n".join(drawn(imports(parts)))


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    target.write_text(picture(dict(word.split("=") for word in sys.argv[2:])), encoding="utf-8")
