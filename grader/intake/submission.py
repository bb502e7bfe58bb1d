"""What a learner handed in, read as text: nothing is imported, executed or unpickled here.

``find_submissions`` says who handed in what, ``read`` turns one submission into a Submission.
Whatever the bytes are, ``read`` raises nothing: what cannot be used is left out and named in a note. Only where the
grader may not or cannot read what is there (permissions, a damaged disk, too many open files) it raises, so that nobody
loses points by that.

Which file is graded, when several could be, in this order:

1. a file that was changed before one that is as it was handed out (see ``handed_out``) or in which nothing is written;
2. the exact name; then a name that contains the id between other words ("c3_contracting (1)",
   "03_matmuls-alice"); then the first words of one id ("c3"); then one that differs by a slip of the keyboard
   ("c3_contracing");
3. a file that is not called old ("old/c3_contracting.py", "c3_contracting_backup") before one that is;
4. a ``.py`` file before a notebook;
5. a file named after the exercise before one named after its whole module;
6. one called final before another;
7. the least deep, then the shortest, then the alphabetically first path.

Where others were passed over, a note names them and what was used.

A ``.py`` file or notebook may be named after an exercise or after a module; a module's serves all its
exercises.
"""

from __future__ import annotations

import ast
import codecs
import difflib
import errno
import hashlib
import io
import json
import os
import re
import stat
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from grader.common import syntax
from grader.common.text import A_LINK, a_few, first_notes, printable

MIB = 2**20

MAX_FILE = 5 * MIB  # of code
MAX_NOTEBOOK = 64 * MIB  # with its outputs, which are left out while it is read
MAX_TOTAL = 20 * MIB  # of code in one submission
MAX_READ = 128 * MIB  # of files of one submission, outputs and all; also the largest .zip that is opened
MAX_FILES = 500  # .py files and notebooks of one submission
MAX_ENTRIES = 10_000  # files and folders looked at to find them
MAX_DEPTH = 8
MAX_ZIPS = 5  # opened in one folder
MAX_NAME = 500
MAX_CELL = 200_000  # characters; a longer cell is not searched for IPython syntax

SUFFIXES = (".py", ".ipynb")
ARCHIVES = (".7z", ".bz2", ".gz", ".rar", ".tar", ".tbz", ".tgz", ".txz", ".xz", ".zst")  # in which work may be
MACHINE_FAULTS = {
    errno.EACCES,
    errno.EPERM,
    errno.ELOOP,
    errno.EIO,
    errno.ENFILE,
    errno.EMFILE,
    errno.ENOMEM,
    errno.ETIMEDOUT,
    getattr(errno, "ESTALE", errno.EIO),
}
Place = Path | tuple[Path, ...]  # of one student's work
SKIPPED_FOLDERS = {"__pycache__", "_public", "__MACOSX", "node_modules", "site-packages", "venv"}


@dataclass(frozen=True)
class Chunk:
    """One ``.py`` file, or one code cell of a notebook.

    ``name`` is shown in messages and is the file name when compiled: "c3_contracting.py" or "cell 7".
    """

    name: str
    text: str


@dataclass(frozen=True)
class Source:
    """What is executed in one namespace: one ``.py`` file or one notebook.

    ``name`` is the path relative to the submission. ``ends`` says after which chunk of a notebook an exercise is checked,
    as (exercise, chunk's name): a run from top to bottom would check it there, whatever later cells define anew.
    """

    name: str
    chunks: tuple[Chunk, ...]
    ends: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Submission:
    """One learner's work.

    Attributes:
        sources: exercise id -> the source in which its tasks are looked for.
        notes: what was found that a person may want to know.
        digest: SHA-256 over names and bytes of all files that were read, and over what was chosen and
            noted: of equal digests, sources and notes are equal.
    """

    student: str
    sources: Mapping[str, Source]
    notes: tuple[str, ...]
    digest: str


class SubmissionError(Exception):
    """The paths to grade are not usable; the message is one line for the person who typed them."""


class Unreadable(SubmissionError):
    """The machine failed while work was read: nothing can be said about it, good or bad."""


class NothingToGrade(SubmissionError):
    """No work was found."""


class Refused(Exception):
    """A file is not used; the message goes on after its name."""


# -- reading one submission --------------------------------------------------------------------


def read(
    place: Place, student: str, exercises: Mapping[str, str], handed_out: Collection[str] = frozenset()
) -> Submission:
    """Read ``.py`` files, notebooks, a ``.zip`` or a folder. Raises Unreadable and nothing else; see ``notes``.

    Args:
        place: the file or folder, or several files.
        student: the learner's name.
        exercises: exercise id -> module id.
        handed_out: fingerprints of what learners were given (``handed_out``). A file that nobody
            changed is graded only where there is no other.
    """
    notes: list[str] = []
    candidates, digest = _candidates(place, exercises, notes)
    unchanged = {c for c in candidates if fingerprint(c.source) in handed_out or nothing_written(c.source)}
    sources: dict[str, Source] = {}
    ignored: dict[_Candidate, dict[str, str]] = {}
    for exercise in exercises:
        rivals = [c for c in candidates if exercise in c.serves]
        if not rivals:
            continue
        best = min(rivals, key=lambda c: (c in unchanged, c.rank))
        sources[exercise] = best.source
        for other in rivals:
            if other is not best and other not in unchanged:
                ignored.setdefault(other, {})[exercise] = best.source.name
    used = {id(s) for s in sources.values()}
    for candidate in candidates:
        if id(candidate.source) in used:
            notes.extend(candidate.notes)
    notes.extend(_ignored_note(candidate, instead) for candidate, instead in ignored.items())
    for text in (*(f"{exercise}: {source.name}" for exercise, source in sources.items()), *notes):
        _add_to_digest(digest, "", text.encode())
    return Submission(student, sources, first_notes(notes), digest.hexdigest())


def handed_out(folder: Path, exercises: Mapping[str, str]) -> frozenset[str]:
    """Fingerprints of the files that learners are given, for ``read``."""
    candidates, _ = _candidates(folder, exercises, [])
    return frozenset(fingerprint(c.source) for c in candidates)


def fingerprint(source: Source) -> str:
    """SHA-256 of the code; blanks at line ends, empty cells, file and cell names do not count."""
    chunks = ["\n".join(line.rstrip() for line in c.text.split("\n")).strip("\n") for c in source.chunks]
    return hashlib.sha256("\0".join(c for c in chunks if c).encode()).hexdigest()


def nothing_written(source: Source) -> bool:
    """Whether all tasks and answers are still to be written, in a stub of whatever edition of the course."""
    left = 0
    for chunk in source.chunks:
        tree = _parsed(chunk.text) if len(chunk.text) <= MAX_CELL else None
        if tree is None:
            return False
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                if not _is_left(node):
                    return False
                left += 1
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                if not (isinstance(node.value, ast.Constant) and node.value.value is None):
                    return False
                left += 1
    return left > 0


def _is_left(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """A body of nothing but words and ``raise NotImplementedError(...)``."""
    *words, last = node.body
    raised = last.exc if isinstance(last, ast.Raise) else None
    raised = raised.func if isinstance(raised, ast.Call) else raised
    is_words = all(isinstance(w, ast.Expr) and isinstance(w.value, ast.Constant) for w in words)
    return is_words and isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A source that could be graded. The lowest ``rank`` comes first."""

    source: Source
    serves: tuple[str, ...]
    rank: tuple
    notes: tuple[str, ...]


def _candidates(place: Place, exercises: Mapping[str, str], notes: list[str]) -> tuple[list[_Candidate], Any]:
    """All sources that were read, best first, and the running digest of the files they were read from."""
    matched: list[tuple[_File, _Match]] = []
    strangers: list[str] = []
    for file in (f for path in (place if isinstance(place, tuple) else (place,)) for f in _listing(Path(path), notes)):
        match = _match(file.stem, exercises)
        if len(match.targets) == 1:
            matched.append((file, match))
        elif match.targets:
            notes.append(f"{file.shown} could be {' or '.join(match.targets)} and is not graded; rename it")
        else:
            strangers.append(file.shown)
    if matched:  # a course of one module, as nbgrader releases it, does not know the others' names
        strangers = [name for name in strangers if not _OTHER_MODULE.fullmatch(name)]
    if strangers:
        notes.append(f"named after no exercise and not graded: {a_few(strangers)}")
    if not matched:
        notes.append(f"nothing to grade: {_looked_for(exercises)}")

    found: list[_Candidate] = []
    digest = hashlib.sha256()
    code_left, left = MAX_TOTAL, MAX_READ
    for file, match in sorted(matched, key=lambda m: _rank(*m, exercises)):
        try:
            data = file.read()
            left -= len(data)
            remarks: list[str] = []
            source = _source(file, data, remarks, exercises) if left >= 0 else Source(file.shown, ())
            code_left -= sum(len(c.text) for c in source.chunks)
            if min(left, code_left) < 0:
                most = MAX_READ if left < 0 else MAX_TOTAL
                notes.append(f"more than {most // MIB} MiB were handed in: {file.shown} and what follows was not read")
                break
            _add_to_digest(digest, file.name, data)
        except Refused as refusal:
            notes.append(f"{file.shown} {refusal}")
            continue
        target = match.targets[0]
        if match.quality in (_BEGINS, _NEAR):
            remarks.insert(0, f"{file.shown} is taken for {target}{file.suffix}")
        serves = (target,) if target in exercises else tuple(e for e, module in exercises.items() if module == target)
        found.append(_Candidate(source, serves, _rank(file, match, exercises), tuple(remarks)))
    return found, digest


def _rank(file: _File, match: _Match, exercises: Mapping[str, str]) -> tuple:
    whole_module = match.targets[0] not in exercises
    words = set(re.split(r"[^a-z]+", file.name.lower()))
    called_old, called_final = bool(words & _OLD), bool(words & _FINAL)
    path = (file.name.count("/"), len(file.name), file.name)
    return (match.quality, called_old, file.suffix != ".py", whole_module, not called_final, *path)


_OLD = {
    "old", "older", "bak", "backup", "backups", "archive", "archived", "draft", "drafts", "previous", "prev", "unused",
    "deprecated", "trash", "scratch", "wip",
}  # fmt: skip
_FINAL = {"final", "finished", "submit", "submission", "submitted", "handin"}


def _add_to_digest(digest: Any, name: str, data: bytes) -> None:
    """Lengths go first, so that no two sets of files give the same stream."""
    for part in (name.encode("utf-8", "surrogatepass"), data):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)


def _ignored_note(candidate: _Candidate, instead: Mapping[str, str]) -> str:
    used = list(dict.fromkeys(instead.values()))
    return f"{candidate.source.name} is not graded for {a_few(list(instead))}: used {a_few(used)}"


# -- names -------------------------------------------------------------------------------------

_EXACT, _CONTAINS, _BEGINS, _NEAR, _NONE = range(5)
_COPY = re.compile(r"(?:\(\d{1,4}\)|[ -]copy *\d{0,4})$", re.IGNORECASE)  # "x (1)", "x-Copy1", "x copy 2"
_DELIMITERS = " _-.,+()"
_OTHER_MODULE = re.compile(r"(?:.*/)?\d\d_[a-z0-9_]+(?:\.ipynb|/.*)")


@dataclass(frozen=True)
class _Match:
    """How well a file name fits; ``targets`` (exercise or module ids) are several when it is ambiguous."""

    quality: int
    targets: tuple[str, ...] = ()


def _match(stem: str, exercises: Mapping[str, str]) -> _Match:
    modules = tuple(dict.fromkeys(exercises.values()))
    if stem in exercises or stem in modules:
        return _Match(_EXACT, (stem,))
    plain = _without_copy_mark(stem)
    for ids in (exercises, modules):
        inside = [i for i in ids if _position(plain, i)]
        if inside:
            return _Match(_CONTAINS, (max(inside, key=len),))
    begun = [i for i in (*exercises, *modules) if i.lower().startswith(f"{plain.lower()}_")]
    if len(begun) == 1:
        return _Match(_BEGINS, (begun[0],))
    near = _nearest(plain, (*exercises, *modules))
    return _Match(_NEAR, near) if near else _Match(_NONE)


def _without_copy_mark(stem: str) -> str:
    while shorter := _COPY.sub("", stem).rstrip(" _-"):
        if shorter == stem:
            break
        stem = shorter
    return stem


def _position(stem: str, name: str) -> re.Match[str] | None:
    """Where an id stands between other words, upper and lower case being one."""
    return re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", stem, re.IGNORECASE | re.ASCII)


def _nearest(stem: str, names: Iterable[str]) -> tuple[str, ...]:
    """The ids that are a slip of the keyboard away; the digits must be right, since ids differ by them."""
    digits = re.findall(r"\d+", stem)
    scores = {
        name: difflib.SequenceMatcher(None, name.lower(), stem.lower()).ratio()
        for name in names
        if len(stem) <= 100 and re.findall(r"\d+", name) == digits
    }
    best = max(scores.values(), default=0.0)
    return tuple(name for name, score in scores.items() if score == best >= 0.85)


def _owner(stem: str, exercises: Mapping[str, str]) -> str:
    """The student's name in a file name: "alice_c3_contracting (1)" is alice's.

    The id itself where the file name holds nothing else.
    """
    name = _without_copy_mark(stem)
    while (match := _match(name, exercises)).quality in (_EXACT, _CONTAINS):
        place = _position(name, match.targets[0])
        if place is None:
            break
        rest = name[: place.start()].strip(_DELIMITERS) or name[place.end() :].strip(_DELIMITERS)
        if not rest:
            break
        name = rest
    return _DOWNLOAD.sub(r"\1_\2", name)


# Canvas: a student's name and number, and a number of the file.
_DOWNLOAD = re.compile(r"^([^\W_]+)_(?:late_)?(\d+)_\d+$", re.IGNORECASE)


def _looked_for(exercises: Mapping[str, str]) -> str:
    modules = dict.fromkeys(exercises.values())
    return f"looked for {a_few([f'{e}.py' for e in exercises], 3)}, or {a_few([f'{m}.ipynb' for m in modules], 3)}"


# -- files -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _File:
    """A ``.py`` file or notebook that was found. ``read`` raises ``Refused``."""

    name: str
    read: Callable[[], bytes]

    @property
    def shown(self) -> str:
        return printable(self.name)

    @property
    def stem(self) -> str:
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix.lower()


def _listing(path: Path, notes: list[str]) -> list[_File]:
    """The files at ``path`` by name, the least deep first; what is refused is noted."""
    try:
        # A link that the person typed is followed, one that a learner handed in is not.
        real = path.resolve(strict=True)
        is_folder = real.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        notes.append(f"{printable(path.name)} {_why(error)}")
        return []
    if is_folder:
        files = list(_in_folder(real, notes))
    elif real.suffix.lower() == ".zip":
        files = _in_zip(real, path.name, "", notes)
    elif real.suffix.lower() in SUFFIXES:
        files = [_File(path.name, lambda: bytes_of(real, _most(real.suffix)))]
    else:
        notes.append(f"{printable(path.name)} is not a .py file, a notebook (.ipynb) or a .zip")
        files = []
    if len(files) > MAX_FILES:
        notes.append(f"more than {MAX_FILES} .py files and notebooks were handed in; the rest was not looked at")
    return files[:MAX_FILES]


def _in_folder(root: Path, notes: list[str]) -> Iterator[_File]:
    """Walk breadth first, so that a limit cuts off what lies deepest."""
    folders, seen, zips = [(root, "")], 0, 0
    for depth in range(MAX_DEPTH + 1):
        deeper: list[tuple[Path, str]] = []
        for folder, prefix in folders:
            for entry in _entries(folder, notes):
                seen += 1
                if seen > MAX_ENTRIES:
                    notes.append(
                        f"more than {MAX_ENTRIES} files and folders were handed in; the rest was not looked at"
                    )
                    return
                name, place, suffix = prefix + entry.name, Path(entry.path), Path(entry.name).suffix.lower()
                if entry.is_symlink():
                    notes.append(f"{printable(name)} {A_LINK}")
                elif entry.is_dir(follow_symlinks=False):
                    deeper.append((place, f"{name}/"))
                elif suffix == ".zip":
                    zips += 1
                    yield from _in_zip(place, name, f"{name}/", notes) if zips <= MAX_ZIPS else ()
                elif suffix in SUFFIXES:
                    yield _File(name, lambda place=place, suffix=suffix: bytes_of(place, _most(suffix)))
        folders = deeper
        if folders and depth == MAX_DEPTH:
            notes.append(f"folders deeper than {MAX_DEPTH} levels were not looked at")
    if zips > MAX_ZIPS:
        notes.append(f"{zips} .zip files were handed in; {MAX_ZIPS} were opened")


def _entries(folder: Path, notes: list[str]) -> list[os.DirEntry[str]]:
    """What a folder holds, by name, without what is never a learner's work."""
    try:
        with os.scandir(folder) as entries:
            return sorted((e for e in entries if not _is_skipped(e.name)), key=lambda e: e.name)
    except OSError as error:
        notes.append(f"{printable(folder.name)} {_why(error)}")
        return []


def _is_skipped(part: str) -> bool:
    return (part.startswith(".") and part not in (".", "..")) or part in SKIPPED_FOLDERS


def bytes_of(path: Path, most: int) -> bytes:
    """Read a plain file of at most ``most`` bytes; a pipe or device is neither waited for nor read.

    Raises Refused.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Refused("is not a plain file")
            return _at_most(file.read(most + 1), path.suffix, most)
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            raise Refused(f"{A_LINK}; hand in the file itself") from error
        raise Refused(_why(error)) from error


def _most(suffix: str) -> int:
    return MAX_NOTEBOOK if suffix.lower() == ".ipynb" else MAX_FILE


def _at_most(data: bytes, suffix: str, most: int) -> bytes:
    if len(data) <= most:
        return data
    what = "clear its outputs" if suffix.lower() == ".ipynb" else "make it smaller"
    raise Refused(f"is larger than {most // MIB} MiB and was not read; {what} and hand it in again")


def _why(error: Exception) -> str:
    """Why a file or folder of theirs was not read. Raises Unreadable where that is not their doing."""
    if isinstance(error, FileNotFoundError):
        return "does not exist"
    reason = "a loop of links" if isinstance(error, RuntimeError) else getattr(error, "strerror", None)
    if isinstance(error, RuntimeError) or (isinstance(error, OSError) and error.errno in MACHINE_FAULTS):
        raise Unreadable(
            f"{printable(str(getattr(error, 'filename', '') or 'a file'))} cannot be read: {reason}; mend that and grade again"
        )
    return f"cannot be read ({(reason or type(error).__name__).lower()})"


# -- zip archives ------------------------------------------------------------------------------


def _in_zip(path: Path, name: str, prefix: str, notes: list[str]) -> list[_File]:
    """The files in an archive, in memory; names start with ``prefix``."""
    shown = printable(name)
    try:
        archive = _open_zip(bytes_of(path, MAX_READ))
    except Refused as refusal:
        notes.append(f"{shown} {refusal}")
        return []
    files: dict[str, _File] = {}
    for member in archive.infolist():
        inside = member.filename.replace("\\", "/")  # some Windows programs write "\"
        if member.is_dir() or any(_is_skipped(part) for part in inside.split("/")):
            continue
        if why := _unsafe(member, inside.split("/")):
            notes.append(f"{printable(inside)} in {shown} {why}")
        elif Path(inside).suffix.lower() in SUFFIXES:
            if inside in files:
                notes.append(f"{printable(inside)} is in {shown} twice; the last one counts")
            files[inside] = _File(prefix + inside, lambda member=member: _member_bytes(archive, member))
    return sorted(files.values(), key=lambda f: (f.name.count("/"), f.name))


def _open_zip(data: bytes) -> zipfile.ZipFile:
    # The directory's own count can lie, and ZipFile builds an object per member before it can be asked.
    if data.count(b"PK\x01\x02") > MAX_ENTRIES:
        raise Refused(f"holds more than {MAX_ENTRIES} files and was not read; hand in only your work")
    try:
        return zipfile.ZipFile(io.BytesIO(data))
    except Exception as error:  # zipfile raises half a dozen types for damaged archives
        raise Refused("is not a .zip archive, or is damaged; make it again") from error


def _unsafe(member: zipfile.ZipInfo, parts: Sequence[str]) -> str:
    """Why a member is not read; empty when it may be."""
    if parts[0] == "" or ".." in parts or ":" in parts[0]:
        return "points outside the archive and was not read"
    if len(member.filename) > MAX_NAME or len(parts) > MAX_DEPTH + 1:
        return "is nested too deeply and was not read"
    mode = member.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "is not a plain file and was not read"
    if member.flag_bits & 1:
        return "is encrypted and was not read; hand it in without a password"
    # bzip2 and lzma let an archive choose how much memory it takes to open it.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is compressed in an unusual way and was not read; make a plain .zip"
    return ""


def _member_bytes(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Decompress no more than the limit; the sizes an archive states are not believed."""
    suffix = Path(member.filename).suffix
    try:
        with archive.open(member) as file:
            data = file.read(_most(suffix) + 1)
    except Exception as error:  # zlib, struct, EOF, CRC, ... : all mean one thing
        raise Refused("is damaged in the archive; make the .zip again") from error
    return _at_most(data, suffix, _most(suffix))


# -- text and notebooks ------------------------------------------------------------------------


def _source(file: _File, data: bytes, notes: list[str], exercises: Collection[str]) -> Source:
    """Raises Refused when nothing of the file can be used."""
    text = text_of(data)
    if not text.strip():
        raise Refused("is empty")
    if file.suffix == ".py":
        return Source(file.shown, (Chunk(printable(PurePosixPath(file.name).name), text),))
    cells = notebook_cells(text)
    chunks = tuple(_code_cells(cells, file.shown, notes))
    if sum(len(c.text) for c in chunks) > MAX_FILE:
        raise Refused(f"holds more than {MAX_FILE // MIB} MiB of code and was not read; hand in only your work")
    return Source(file.shown, chunks, tuple(checked_after(cells, chunks, exercises)))


_CHECK = re.compile(r"""^check\(\s*["']([\w.-]+)["']""", re.MULTILINE)


def checked_after(cells: Sequence[Any], chunks: Sequence[Chunk], exercises: Iterable[str]) -> Iterator[tuple[str, str]]:
    """After which chunk each exercise of a notebook is checked: where ``check("c3")`` is called last."""
    ends: dict[str, str] = {}
    exercises = tuple(exercises)
    names = {c.name for c in chunks}
    before = ""
    for number, cell in enumerate(cells, start=1):
        before = f"cell {number}" if f"cell {number}" in names else before
        text = cell_text(cell) if isinstance(cell, dict) and cell.get("cell_type") == "code" else None
        for called in _CHECK.findall(text or "") if before else ():
            found = [called] if called in exercises else [e for e in exercises if e.startswith(called)]
            if len(found) == 1:
                ends[found[0]] = before
    yield from ends.items()


def text_of(data: bytes) -> str:
    """What a file says, with Unix lines. Raises Refused where it is no text that Python could read."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Refused("is UTF-16 text; save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        text = _as_it_says(data)
        if text is None:
            raise Refused(f"is not UTF-8 text (line {line}); save it as UTF-8") from error
    if "\0" in text:
        raise Refused(f"holds a NUL byte (line {text[: text.index(chr(0))].count(chr(10)) + 1}); save it as text")
    return _unix_lines(text)


_COOKIE = re.compile(rb"(?:[ \t\f]*(?:#[^\n]*)?\r?\n)?[ \t\f]*#[^\n]*?coding[:=][ \t]*([-\w.]+)")
_ALPHABETS = ("iso8859", "cp", "latin", "mac", "koi8", "big5", "gb", "shiftjis", "euc")  # no codec that does more


def _as_it_says(data: bytes) -> str | None:
    """Text in the encoding that its ``# coding: latin-1`` names, as Python reads it; None where it names none."""
    cookie = _COOKIE.match(data)
    try:
        name = codecs.lookup(cookie[1].decode()).name if cookie else ""
        return data.decode(name) if name.replace("-", "").replace("_", "").startswith(_ALPHABETS) else None
    except (LookupError, UnicodeDecodeError):
        return None


def _unix_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def notebook_cells(text: str) -> list[Any]:
    """The cells of a notebook of any version; validation would refuse what can still be graded.

    Raises Refused where there is no list of cells.
    """
    try:
        # No whole number is needed, and huge ones would raise.
        document = json.loads(without_outputs(text), parse_int=lambda digits: 0)
    except json.JSONDecodeError as error:
        raise Refused(f"is not a notebook: line {error.lineno} is not JSON; export it again from Jupyter") from error
    except RecursionError as error:
        raise Refused("is not a notebook: it is nested too deeply; export it again from Jupyter") from error
    if isinstance(document, dict):
        if isinstance(document.get("cells"), list):
            return document["cells"]
        sheets = document.get("worksheets")  # notebooks of version 3 and before
        if isinstance(sheets, list):
            lists = [s.get("cells") for s in sheets if isinstance(s, dict)]
            return [cell for cells in lists if isinstance(cells, list) for cell in cells]
    raise Refused("is not a notebook: it has no list of cells; export it again from Jupyter")


_LEFT_OUT = {'"outputs"', '"attachments"', '"widgets"'}
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
_OPENS = re.compile(r"\s*:\s*[\[{]")
MAX_BRACKETS = 2_000_000  # in all outputs of a notebook


def without_outputs(text: str) -> str:
    """The JSON of a notebook with empty outputs and attachments: plots take many times what the code takes.

    Raises Refused where the outputs would take long to skip.
    """
    if len(text) <= MAX_FILE:
        return text
    kept: list[str] = []
    done = depth = brackets = 0
    skipping = False
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if not skipping:
            if mark in _LEFT_OUT and (opens := _OPENS.match(text, token.end())):
                kept.append(text[done : opens.end() - 1])
                skipping, done = True, opens.end() - 1
        elif mark in "[]{}":
            depth += 1 if mark in "[{" else -1
            brackets += 1
            if brackets > MAX_BRACKETS:
                raise Refused("has outputs that take too long to read; clear its outputs and hand it in again")
            if depth == 0:
                kept.append("[]" if mark == "]" else "{}")
                skipping, done = False, token.end()
    return "".join([*kept, text[done:]])


def _code_cells(cells: Sequence[Any], notebook: str, notes: list[str]) -> Iterator[Chunk]:
    """The learner's code, cells counted from 1 over all cells, as a person counts them in Jupyter."""
    damaged: list[str] = []
    for number, cell in enumerate(cells, start=1):
        kind = cell.get("cell_type") if isinstance(cell, dict) else None
        if kind in ("markdown", "raw", "heading") or _is_test_cell(cell):
            continue
        text = cell_text(cell) if kind == "code" else None
        if text is None:
            damaged.append(str(number))
            continue
        text, left_out = neutralise(text)
        if left_out:
            notes.append(f"cell {number} of {notebook}: left out {a_few([printable(line) for line in left_out], 2)}")
        yield Chunk(f"cell {number}", text)
    if damaged:
        notes.append(f"damaged cells of {notebook} were left out: {a_few(damaged)}")


def _is_test_cell(cell: Any) -> bool:
    """An nbgrader cell of tests: it is ours, not the learner's."""
    metadata = cell.get("metadata") if isinstance(cell, dict) else None
    marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    return isinstance(marks, dict) and marks.get("grade") is True and marks.get("solution") is False


def cell_text(cell: Mapping[str, Any]) -> str | None:
    """A cell's code, None when it is not text that Python could read."""
    text = cell.get("source", cell.get("input"))  # "input" in version 3
    if isinstance(text, list) and all(isinstance(line, str) for line in text):
        text = "".join(text)
    if not isinstance(text, str) or "\0" in text or re.search("[\ud800-\udfff]", text):
        return None
    return _unix_lines(text.removeprefix("\ufeff"))


# -- IPython syntax ----------------------------------------------------------------------------

_KEPT_CELL_MAGICS = {"%%time", "%%timeit", "%%capture", "%%prun"}  # their cell is Python
_INSTALL = re.compile(r"(?:pip3?|conda|mamba|uv)[ \t]+(?:install|list|show|pip)\b")  # works without a "%"
_HELP = re.compile(r"%{0,2}[A-Za-z_*][\w.*\[\]]*\?{1,2}[ \t]*(?=\n|\Z)")
_TARGET = r"\*?[^\W\d]\w*(?:\.\w+|\[[^\[\],=\n]*\])*[ \t]*"
_ASSIGN = re.compile(rf"(?P<names>{_TARGET}(?:,[ \t]*{_TARGET})*(?:,[ \t]*)?)=[ \t]*[!%]")
_BLANKS = re.compile(r"[ \t]*")
_TO_LINE_END = re.compile(r"(?:\\\n|[^\n])*")  # a backslash at its end continues a magic, as in IPython
_SKIP = re.compile(
    r"""
    \#[^\n]*                                  # a comment
    | \"{3} (?:\\.|[^\\])*? (?:\"{3}|\Z)      # strings; an unfinished one ends with its line or the text
    | '{3}  (?:\\.|[^\\])*? (?:'{3}|\Z)
    | "     (?:\\.|[^"\\\n])* "?
    | '     (?:\\.|[^'\\\n])* '?
    | \\\n | [()\[\]{}] | \n
    """,
    re.VERBOSE | re.DOTALL,
)


def neutralise(text: str) -> tuple[str, list[str]]:
    """Replace what only IPython understands; also returns the lines that were left out.

    A cell that is Python is not touched. Line numbers stay, unless the whole cell is of another
    language: then it is empty.
    """
    if len(text) > MAX_CELL or _parsed(text) is not None:
        return text, []
    left_out: list[str] = []
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if not line.strip():
            continue
        if not line.lstrip().startswith("%%") or _HELP.fullmatch(line.strip()):
            break
        left_out.append(line.strip())
        if line.split()[0] not in _KEPT_CELL_MAGICS:
            return "", left_out
        lines[i] = f"# {line.strip()}"
    return _without_line_magics("\n".join(lines), left_out), left_out


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a "\d" in a learner's string is no concern of ours
            return syntax.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _without_line_magics(text: str, left_out: list[str]) -> str:
    """Only where a statement starts can a magic stand: not in a string, brackets or a continued line."""
    done: list[str] = []
    at = 0
    while at < len(text):
        start = _end_of(_BLANKS, text, at)
        replacement = _replacement(text, start)
        if replacement is None:
            end = _statement_end(text, start)
            done.append(text[at:end])
        else:
            whole = text[start : _end_of(_TO_LINE_END, text, start)]
            left_out.append(whole.split("\n")[0].strip())
            done.append(text[at:start] + replacement)
            end = start + len(whole)
            if end < len(text):
                done.append("\n")
                end += 1
        at = end
    return "".join(done)


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def _replacement(text: str, start: int) -> str | None:
    """Python to stand in for the magic that starts here; None when there is none."""
    assignment = _ASSIGN.match(text, start)
    is_magic = text[start : start + 1] in ("%", "!", "?") or _HELP.match(text, start) or _INSTALL.match(text, start)
    if not assignment and not is_magic:
        return None
    whole = text[start : _end_of(_TO_LINE_END, text, start)]
    first, *more = whole.split("\n")
    if re.match(r"%time[ \t]+\S", first):
        return whole[len("%time") :].lstrip(" \t")  # it runs the statement after it
    stand_in = "pass"
    if assignment:
        names = [name.strip(" \t*") for name in assignment["names"].split(",")]
        stand_in = " = ".join([name for name in names if name] + ["None"])
    return "\n".join([f"{stand_in}  # {first}", *(f"# {line}" for line in more)])


def _statement_end(text: str, start: int) -> int:
    """Just after the newline that ends the statement that starts here."""
    depth = 0
    for token in _SKIP.finditer(text, start):
        if token.group() in "([{":
            depth += 1
        elif token.group() in ")]}":
            depth = max(0, depth - 1)
        elif token.group() == "\n" and depth == 0:
            return token.end()
    return len(text)


# -- finding submissions -----------------------------------------------------------------------

_STUDENT = re.compile(r"(?!\.)[A-Za-z0-9._@ +-]{1,100}")


class Found(NamedTuple):
    """What there is to grade.

    Attributes:
        students: (student, place), by student.
        notes: what was skipped.
        set_aside: who cannot be graded as things stand, and why: the others are.
    """

    students: list[tuple[str, Place]]
    notes: list[str]
    set_aside: dict[str, str]


def find_submissions(paths: Sequence[Path], exercises: Mapping[str, str], login: Callable[[str], str] = str) -> Found:
    """Who handed in what.

    A file is one student's, named by the file without the exercise or module ("alice_c3_contracting.py"); several
    files of one name are one submission.
    A folder is one student's when it directly holds work under its own name, a module's folder or
    ``exercises/``, and no two other folders with work in them (but for "old", "final" ...), beside which a file
    without a student's name is set aside; else every sub-folder, ``.zip`` and file with a student's name in it is a student's.

    Args:
        login: the student behind a name, where names are somebody else's (Canvas's, say).

    Raises:
        NothingToGrade: a path does not exist, or nothing was found.
    """
    notes: list[str] = []
    aside: dict[str, str] = {}
    places: dict[str, dict[str, Path]] = {}
    for path in map(Path, paths):
        if not os.path.exists(path):  # unlike Path.exists, False for names that no file can have
            raise NothingToGrade(f"no such file or folder: {printable(str(path))}{_did_you_mean(path)}")
        for name, place in _students_at(path, exercises, notes, aside):
            student = login(name)
            if not _STUDENT.fullmatch(student) or student != student.strip():
                aside[student] = (
                    f"{printable(str(place))}: a student's name may hold A-Z a-z 0-9 . _ @ + - and blanks, "
                    "100 at most, and starts with no dot; rename it"
                )
            else:
                places.setdefault(student, {}).setdefault(os.path.realpath(place), place)
    students = _alone(places, aside)
    if not students:
        raise NothingToGrade("; ".join([*notes, *aside.values()]) or "nothing to grade: name a folder of submissions")
    return Found(students, list(first_notes(notes)), dict(sorted(aside.items())))


def _alone(places: Mapping[str, Mapping[str, Path]], aside: dict[str, str]) -> list[tuple[str, Place]]:
    """The students whose name is theirs alone, upper and lower case being one: reports are files."""
    groups: dict[str, list[tuple[str, Place]]] = {}
    for student, found in sorted(places.items()):
        paths = tuple(found.values())
        parts = len(paths) > 1 and all(p.suffix.lower() in SUFFIXES and not p.is_dir() for p in paths)
        groups.setdefault(student.lower(), []).extend((student, place) for place in ([paths] if parts else paths))
    for group in groups.values():
        names = dict.fromkeys(student for student, _ in group)
        if len(group) > 1:
            who = f"{next(iter(names))} is" if len(names) == 1 else f"{' and '.join(names)} (one name in two cases) is"
            every = (p for _, place in group for p in (place if isinstance(place, tuple) else (place,)))
            where = " and ".join(printable(str(path)) for path in every)
            aside |= dict.fromkeys(names, f"{who} there twice: {where}; put them into one folder or rename one")
    return sorted(group[0] for group in groups.values() if len(group) == 1)


def _did_you_mean(path: Path) -> str:
    try:
        near = difflib.get_close_matches(path.name, os.listdir(path.parent), n=1)
    except OSError:
        return ""
    return f"; did you mean {printable(str(path.parent / near[0]))}?" if near else ""


def _students_at(
    path: Path, exercises: Mapping[str, str], notes: list[str], aside: dict[str, str]
) -> list[tuple[str, Path]]:
    if not path.is_dir():
        if path.suffix.lower() in (*SUFFIXES, ".zip"):
            return [(_owner(path.stem, exercises), path)]
        notes.append(f"skipped {printable(str(path))}: it is not a .py file, a notebook (.ipynb) or a .zip")
        return []
    entries = _sort_entries(path, exercises, notes)
    folders, zips, named = entries.folders, entries.zips, entries.named
    stray = _strays(folders, named, exercises)
    aside |= {
        f.name: f"{printable(str(f))} lies beside students' folders and is nobody's; put it into a folder of its own"
        for f in stray
    }
    named = [file for file in named if file not in stray]
    if _is_one_student(folders, zips, named, exercises):
        return [(path.resolve().name, path)]
    loose = [(_owner(file.stem, exercises), file) for file in (*zips, *named)]
    if loose or any(_holds_work(folder, exercises) for folder in folders):
        _tell_others(entries, exercises, notes, aside)
        # A student whose folder holds no work is graded too: zero with a reason, not forgotten.
        return [*((folder.name, folder) for folder in folders), *loose]
    example = f"{printable(path.resolve().name)}/alice/{next(iter(exercises), 'exercise')}.py"
    notes.append(f"nothing to grade in {printable(str(path))}: {_looked_for(exercises)}, as in {example}")
    return []


@dataclass(frozen=True)
class _InFolder:
    """What a folder holds: ``named`` files are named after an exercise or module, ``others`` are not."""

    folders: list[Path]
    zips: list[Path]
    named: list[Path]
    others: list[Path]
    links: list[Path]


def _sort_entries(folder: Path, exercises: Mapping[str, str], notes: list[str]) -> _InFolder:
    found = _InFolder([], [], [], [], [])
    for entry in _entries(folder, notes):
        path = folder / entry.name
        if entry.is_symlink():
            found.links.append(path)
        elif entry.is_dir(follow_symlinks=False):
            found.folders.append(path)
        elif path.suffix.lower() == ".zip":
            found.zips.append(path)
        elif path.suffix.lower() in SUFFIXES and _match(path.stem, exercises).quality != _NONE:
            found.named.append(path)
        else:
            found.others.append(path)
    return found


def _tell_others(entries: _InFolder, exercises: Mapping[str, str], notes: list[str], aside: dict[str, str]) -> None:
    """Of what lies beside the students' folders, that which may be somebody's work."""
    aside |= {p.name: f"{printable(str(p))} {A_LINK}; put the work itself there" for p in entries.links}
    passed_over: list[str] = []
    for path in entries.others:
        shown, suffix = printable(str(path)), path.suffix.lower()
        if suffix in SUFFIXES:
            aside[path.name] = f"{shown} is named after no exercise; {_looked_for(exercises)}, or a folder of its own"
        elif suffix in ARCHIVES or not suffix:
            aside[path.name] = f"{shown} is no folder and no .zip; unpack it into a folder of its own"
        else:
            passed_over.append(printable(path.name))
    if passed_over:
        notes.append(f"not looked at: {a_few(passed_over)}")


def _is_one_student(
    folders: Sequence[Path], zips: Sequence[Path], named: Sequence[Path], exercises: Mapping[str, str]
) -> bool:
    modules = set(exercises.values())
    if any(f.name in modules or f.name == "exercises" for f in folders):
        return True
    if any(_is_unsigned(f.stem, exercises) for f in named):
        return True
    owners = {_owner(f.stem, exercises) for f in named}
    return len(named) > 1 and len(owners) == 1 and not folders and not zips


def _strays(folders: Sequence[Path], named: Sequence[Path], exercises: Mapping[str, str]) -> list[Path]:
    """Files without a student's name, where several folders beside them hold work that is nobody's old one.

    Else one of them would make everybody's folders parts of one student's work.
    """
    unsigned = [file for file in named if _is_unsigned(file.stem, exercises)]
    if not unsigned or any(f.name in exercises.values() or f.name == "exercises" for f in folders):
        return []
    others = (f for f in folders if not set(re.split(r"[^a-z]+", f.name.lower())) & (_OLD | _FINAL))
    return unsigned if sum(_holds_work(folder, exercises) for folder in others) > 1 else []


def _is_unsigned(stem: str, exercises: Mapping[str, str]) -> bool:
    """A file name that is an exercise or module and no student's name besides."""
    match = _match(stem, exercises)
    return match.quality in (_EXACT, _BEGINS, _NEAR) or _owner(stem, exercises).lower() == match.targets[0].lower()


def _holds_work(folder: Path, exercises: Mapping[str, str]) -> bool:
    try:
        return any(_match(file.stem, exercises).quality != _NONE for file in _in_folder(folder, []))
    except Unreadable:
        return True  # ``read`` says so, of this student alone
