"""Keys of a state dict that a wrapper has renamed: the wrapper is named, and the line that saves without it."""

from __future__ import annotations

import pytest

from repros.diagnose.match import match_log
from repros.diagnose.match.log import decode_lines
from tests.diagnose.messages.explained import explained
from tests.package_catalogue import load_index


def keys_error(missing: str, unexpected: str) -> str:
    return (
        "RuntimeError: Error(s) in loading state_dict for AveragedModel:\n"
        f'\tMissing key(s) in state_dict: "{missing}weight", "{missing}bias". \n'
        f'\tUnexpected key(s) in state_dict: "{unexpected}weight", "{unexpected}bias". \n'
    )


@pytest.mark.parametrize(
    ("missing", "unexpected", "word"),
    [
        ("module.", "module._orig_mod.", "when it was saved"),
        ("module._orig_mod.", "module.", "compiled here"),
        ("encoder.", "encoder._orig_mod.", "when it was saved"),
        ("", "_orig_mod.", "wrapper that adds _orig_mod."),
        ("", "module._orig_mod.", "wrapper that adds module._orig_mod."),
        ("_orig_mod.", "", "its keys lack _orig_mod."),
    ],
)
def test_the_same_model_compiled_is_named_and_no_other_wrapper(missing: str, unexpected: str, word: str) -> None:
    text = keys_error(missing, unexpected)
    (explanation,) = explained(text)
    likely = [cause.cause.text for cause in explanation.causes if cause.is_likely]
    assert [word in cause for cause in likely] == [True]
    found = match_log(decode_lines(text.encode()), load_index())
    assert found.candidates == ()


@pytest.mark.parametrize(
    ("wrapper", "fix"),
    [
        ("DistributedDataParallel", "model.module.config"),
        ("DeepSpeedEngine", "model.module.config"),
        ("OptimizedModule", "model._orig_mod.config"),
    ],
)
def test_the_fix_names_where_a_wrapper_has_the_model(wrapper: str, fix: str) -> None:
    message = f"AttributeError: '{wrapper}' object has no attribute 'config'"
    (found,) = explained(f"Traceback (most recent call last):\n  File 'a.py', line 1, in <module>\n{message}\n")
    assert found.causes[0].cause.fix.startswith(fix)
