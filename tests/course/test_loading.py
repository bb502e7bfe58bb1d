"""A course: the names of its exercises, its release, and its digest."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course.build import build, products
from grader.course.config import CourseError
from grader.course.finding import find_course
from grader.course.loading import Course, check_named, load_course, meant_by, only_one
from tests.made_up import COURSE, GOOD, in_two_files, made_up, written

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["c1_local", "c10_more", "c3_contracting", "d1_ring", "d1_line"]


@pytest.fixture(scope="module")
def course() -> Course:
    return find_course(ROOT)


def test_select_takes_ids_prefixes_and_modules_in_course_order(course: Course) -> None:
    assert course.select(["c3", "c1_no_communication"]) == ["c1_no_communication", "c3_contracting"]
    assert course.select(["01_layout"])[0] == "a1_local_shape"
    assert course.select(["03"]) == course.select(["03_matmuls"])
    assert course.select([]) == list(course.module_of)
    assert course.select(["c3_con"]) == ["c3_contracting"] and course.select(["03_m"]) == course.select(["03"])
    with pytest.raises(
        CourseError, match=r"^'c' could be c1_no_communication, c2_one_operand, .*c5_choose: write more of the name$"
    ):
        course.select(["c"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("c3_contractng", "no exercise 'c3_contractng'; did you mean 'c3_contracting'?"),
        ("02_colectives", "no exercise '02_colectives'; did you mean '02_collectives'?"),
        ("zz", "no exercise 'zz'; there are "),
        ("", "no exercise ''; there are "),
    ],
)
def test_an_unknown_name_is_reported_with_the_nearest(course: Course, name: str, message: str) -> None:
    with pytest.raises(CourseError) as error:
        course.select([name])
    assert str(error.value).startswith(message)


def test_a_prefix_of_a_name_ends_at_an_underscore(tmp_path: Path) -> None:
    """The prefix ``a1`` must not select ``a10_more``."""
    text = GOOD.replace("[a1_local_shape]", "[a10_more, a1_local_shape, a1_another]")
    small = load_course(written(tmp_path, text))
    assert small.select(["a1"]) == ["a1_local_shape", "a1_another"]
    assert small.select(["a10"]) == ["a10_more"]
    assert small.select(["a1_another", "a10", "a1_another"]) == ["a10_more", "a1_another"]


def test_an_unknown_module_is_reported_with_the_nearest(course: Course) -> None:
    for of in (course.module, course.module_begun):
        with pytest.raises(CourseError, match=r"^no module '01_layouts'; did you mean '01_layout'\?$"):
            of("01_layouts")


def test_a_module_may_be_selected_by_a_prefix(course: Course) -> None:
    assert course.module_begun("03") == course.module_begun("03_ma") == course.module("03_matmuls")
    with pytest.raises(CourseError, match=r"^'0' could be 01_layout, 02_collectives, "):
        course.module_begun("0")


def test_a_module_may_have_no_exercise_yet(tmp_path: Path) -> None:
    text = "name: t\nmodules:\n- {id: 01_a, title: A, exercises: []}\n- {id: 02_b, title: B}\n- id: 03_c\n  title: C\n  exercises:\n"
    course = load_course(written(tmp_path, text))
    (tmp_path / "solutions").mkdir()
    assert [m.exercises for m in course.config.modules] == [(), (), ()]
    assert set(products(load_course(tmp_path / "course.yaml"))) == {"course.yaml"}
    assert course.select(["02_b"]) == course.select([]) == []
    for names, words in ((["02_b", "03"], "02_b, 03"), ([], "the course")):
        with pytest.raises(CourseError, match=f"^no exercise in {words} yet$"):
            course.asked(names)


def test_a_full_name_selects_only_itself(tmp_path: Path) -> None:
    course = load_course(written(tmp_path, f"{GOOD}  - {{id: 01_lay, title: L}}\n".replace("01_layout", "01_lay_out")))
    assert course.select(["01_lay"]) == [] and course.select(["01"]) == ["a1_local_shape"]


def test_a_learners_release_is_a_course_without_answers_and_seed(course: Course) -> None:
    public = load_course(ROOT / "exercises" / "course.yaml")
    assert not public.solved and public.config.seed == ""
    assert list(public.module_of) == list(course.module_of)
    for name, exercise in public.exercises.items():
        assert set(exercise.checks) == {c.name for c in course.exercise(name).checks.values() if c.public}
        assert set(exercise.questions) == set(course.exercise(name).questions)
        assert not exercise.misconceptions
        for question in exercise.questions.values():
            with pytest.raises(NotImplementedError):
                question(**next(question.variants()))


def test_author_and_learner_know_the_files_handed_out(tmp_path: Path) -> None:
    author = made_up(tmp_path)
    assert author.handed_out == frozenset()
    build(author)
    learner = load_course(tmp_path / "exercises" / "course.yaml")
    assert len(author.handed_out) == 2 and author.handed_out == learner.handed_out


def test_a_digest_changes_with_the_configuration_and_the_sources(tmp_path: Path) -> None:
    names = ["x1_gather"]
    digests = [
        made_up(tmp_path).digest(names),
        made_up(tmp_path, "ROWS = exercise.given(8)", "ROWS = exercise.given(9)").digest(names),
    ]
    (tmp_path / "course.yaml").write_text(f"{COURSE}devices: 16\n")
    digests.append(load_course(tmp_path / "course.yaml").digest(names))
    assert len({*digests}) == 3 and made_up(tmp_path).digest(names) == digests[0]


def test_a_digest_changes_with_the_misconceptions_file(tmp_path: Path) -> None:
    names = ["x1_gather"]
    digest = in_two_files(tmp_path).digest(names)
    assert in_two_files(tmp_path, "You returned zeros.", "You returned nothing.").digest(names) != digest
    path = tmp_path / "solutions" / "01_gather" / "x1_gather.py"
    assert in_two_files(tmp_path).digest(names) == digest
    path.write_text(path.read_text() + "\n\nMORE = 1\n")
    assert load_course(tmp_path / "course.yaml").digest(names) != digest


def test_a_digest_changes_with_data_files_of_its_module(tmp_path: Path) -> None:
    """An exercise may read any data file of its module, so each data file changes the digest.

    No exercise reads an editor's files or compiled Python, so these files do not change it.
    """
    names = ["x1_gather"]
    digests = [in_two_files(tmp_path).digest(names)]
    data = tmp_path / "solutions" / "01_gather" / "grading" / "texts" / "a.txt"
    for text in ("one", "two"):
        data.parent.mkdir(exist_ok=True)
        data.write_text(text)
        digests.append(load_course(tmp_path / "course.yaml").digest(names))
    data.rename(data.with_name("b.txt"))
    digests.append(load_course(tmp_path / "course.yaml").digest(names))
    assert len({*digests}) == 4


def test_an_unlisted_exercise_is_reported_with_its_remedy(tmp_path: Path) -> None:
    made = made_up(tmp_path)
    module = made.config.modules[0].id
    (made.root / "solutions" / module / "z9_new.py").write_text('"""# Z9 New"""\n')
    assert [path.name for path in made.unlisted] == ["z9_new.py"]
    with pytest.raises(CourseError) as error:
        made.select(["Z9"])
    told = f"solutions/{module}/z9_new.py is not listed in course.yaml: add the exercise to its module"
    assert str(error.value).startswith("no exercise 'Z9'; there are ") and str(error.value).endswith(told)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("c1_local", ["c1_local"]),
        ("c1", ["c1_local"]),  # a prefix without an underscore must match a whole first word
        ("c10", ["c10_more"]),
        ("c3_c", ["c3_contracting"]),
        ("c3_contractin", ["c3_contracting"]),
        ("d1", ["d1_ring", "d1_line"]),
        ("d1_r", ["d1_ring"]),
        ("C1", ["c1_local"]),  # the exercise's title has C1
        ("C3_Con", ["c3_contracting"]),
    ],
)
def test_a_name_may_be_given_in_full_by_first_words_or_by_a_unique_prefix(name: str, meant: list[str]) -> None:
    assert meant_by(name, NAMES, "exercise") == meant


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("c", "'c' could be c1_local, c10_more, c3_contracting: write more of the name"),
        ("d1", "'d1' could be d1_ring, d1_line: write more of the name"),
        ("c3_contractng", "no exercise 'c3_contractng'; did you mean 'c3_contracting'?"),
        ("", "no exercise ''; there are c10_more, c1_local, c3_contracting, d1_line, d1_ring"),
        ("/tmp/own/c1_local.py", "no exercise '/tmp/own/c1_local.py'; write the name c1_local; check, explain and watch take your folder as --work /tmp/own"),
    ],
)  # fmt: skip
def test_an_ambiguous_or_unknown_name_is_refused(name: str, message: str) -> None:
    with pytest.raises(CourseError) as error:
        only_one(name, NAMES, "exercise")
    assert str(error.value) == message


def test_an_unknown_name_lists_only_the_first_of_many_names() -> None:
    with pytest.raises(CourseError) as error:
        only_one("zz", [f"{letter}{number}_name" for letter in "ab" for number in range(10, 40)], "exercise")
    assert str(error.value).startswith("no exercise 'zz'; there are a10_name, a11_name,")
    assert str(error.value).endswith(", a29_name and 40 more: shardlings list")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("c1", ("c1_local", "")),
        ("c10/loc", ("c10_more", "local_value")),
        ("traf", ("c1_local", "traffic")),
        ("value", "several exercises have value: c1_local, c10_more; name the exercise too: EXERCISE/value"),
        ("c", "'c' could be c1_local, c10_more: write more of the name"),
        ("c10/traffic", "no check or question 'traffic'; there are local_value, value"),
    ],
)
def test_a_check_has_one_way_of_being_named(typed: str, meant: tuple[str, str] | str) -> None:
    checks = {"c1_local": ["value", "traffic"], "c10_more": ["value", "local_value"]}
    try:
        assert check_named(typed, [*checks], checks.__getitem__) == meant
    except CourseError as error:
        assert str(error) == meant
