"""Split the text of compiled programs. ``test_facts.py`` tests the facts that the runner reads from this text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grader.runner.hlo_text import instruction, until


def letter_by_letter(text: str, end: str) -> tuple[str, str]:
    """Split the text at the first ``end`` that is outside of brackets and strings."""
    depth, quoted, escaped = 0, False, False
    for at, char in enumerate(text):
        if quoted:
            quoted = char != '"' or escaped
            escaped = char == "\\" and not escaped
        elif char == '"':
            quoted = True
        elif depth == 0 and char == end:
            return text[:at], text[at + 1 :]
        else:
            depth += (char in "([{") - (char in ")]}")
    return text, ""


@given(text=st.text(st.sampled_from('ab,()[]{}"\\\n ='), max_size=30), end=st.sampled_from("),]"))
def test_until_ignores_brackets_and_strings(text: str, end: str) -> None:
    assert until(text, end) == letter_by_letter(text, end)


def test_an_instruction_is_split_into_its_parts() -> None:
    line = '  ROOT %r.1 = (f32[2,8]{1,0}, s32[]) all-reduce(f32[2,8]{1,0} %a, %b), to_apply=%sum, metadata={op_name="f(x, )"}'
    found = instruction(line)
    assert (found.name, found.shape, found.opcode) == ("r.1", "(f32[2,8]{1,0}, s32[])", "all-reduce")
    assert found.operands == ["a", "b"] and found.called("to_apply") == ["sum"] and found.calls
    assert found.attributes == {"to_apply": "%sum", "metadata": '{op_name="f(x, )"}'}
    constant = instruction("  %c = s32[] constant(4)")
    assert (constant.text, constant.attributes, constant.calls) == ("4", {}, False)
