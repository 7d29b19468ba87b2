"""Names that came and went: the release that an error is about, and when no release is named."""

from __future__ import annotations

import re

import pytest
from packaging.version import Version

from repros.diagnose.match.find import find_failures
from repros.diagnose.match.log import decode_lines
from repros.diagnose.messages import Explanation, explain
from repros.diagnose.messages.api_changes import FOLDER, change_words, replacements

TABLES = sorted(FOLDER.glob("*.tsv"))


def explained(text: str) -> Explanation:
    log = decode_lines(text.encode())
    failures, _ = find_failures(log)
    (explanation,) = explain(failures, log)
    return explanation


@pytest.mark.parametrize(
    ("message", "cause", "fix"),
    [
        (
            "TypeError: SFTTrainer.__init__() got an unexpected keyword argument 'tokenizer'",
            "trl 0.16 has removed tokenizer from SFTTrainer.__init__ (the last release with it is 0.15.2)",
            'processing_class=tokenizer; or pip install "trl<0.16"',
        ),
        (
            "TypeError: Trainer.__init__() got an unexpected keyword argument 'tokenizer'",
            "transformers 5.0 has removed tokenizer from Trainer.__init__ (the last release with it is 4.57.6)",
            'processing_class=tokenizer; or pip install "transformers<5.0"',
        ),
        (
            "ImportError: cannot import name 'Qwen2_5_VLForConditionalGeneration' from 'transformers' (x/__init__.py)",
            (
                "the installed transformers is older than Qwen2_5_VLForConditionalGeneration: transformers has it from "
                "4.49 on"
            ),
            'pip install -U "transformers>=4.49"',
        ),
        (
            "ModuleNotFoundError: No module named 'pytorch_lightning.utilities.distributed'",
            (
                "pytorch-lightning 2.0 has removed or moved pytorch_lightning.utilities.distributed (the last release "
                "with it is 1.9.5)"
            ),
            'upgrade the importing package; else pip install "pytorch-lightning<2.0"',
        ),
        (
            "AttributeError: 'GRPOTrainer' object has no attribute 'num_iterations'",
            "the installed trl is older than num_iterations: it has it from 0.16 on",
            'pip install -U "trl>=0.16"',
        ),
        (
            "AttributeError: module 'torch.library' has no attribute 'register_fake'",
            "the installed torch is older than register_fake: it has it from 2.4 on",
            'pip install -U "torch>=2.4"',
        ),
        (
            "ImportError: cannot import name 'DTensor' from 'torch.distributed.tensor' (x/__init__.py)",
            (
                "the installed torch is older than DTensor: torch.distributed.tensor has it from 2.6 (or one after "
                "2.4.1) on"
            ),
            'pip install -U "torch>=2.6"',
        ),
    ],
)
def test_an_error_names_the_release(message: str, cause: str, fix: str) -> None:
    first = explained(message).causes[0]
    assert (first.is_likely, first.cause.text, first.cause.fix) == (True, cause, fix)


MESSAGE = "TypeError: SFTTrainer.__init__() got an unexpected keyword argument 'tokenizer'"


def test_a_subclass_lacks_what_its_base_lost() -> None:
    cause = explained("AttributeError: 'MyTrainer' object has no attribute '_gather_and_numpify'").causes[0]
    assert cause.is_likely
    assert "has removed _gather_and_numpify" in cause.cause.text


def test_a_constructor_without_its_class_is_that_of_the_code() -> None:
    error = "TypeError: __init__() got an unexpected keyword argument 'evaluation_strategy'"
    code = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    a = TrainingArguments(**x)\n'
    assert "transformers 4.51 has removed evaluation_strategy" in explained(f"{code}{error}").causes[0].cause.text
    assert not explained(error).causes[0].is_likely


def test_the_stated_release_is_a_fact() -> None:
    explanation = explained(f"trl==0.20.0\n{MESSAGE}")
    assert "the report states trl 0.20.0" in explanation.facts
    assert explanation.causes[0].is_likely


def test_a_stated_release_that_has_the_name_makes_no_release_likely() -> None:
    assert not any(cause.is_likely for cause in explained(f"trl==0.13.0\n{MESSAGE}").causes)


@pytest.mark.parametrize(
    "words",
    [
        {"call": "SFTTrainer.__init__", "name": "no_such_argument"},
        {"call": "MyModel.forward", "name": "tokenizer"},
        {"call": "MySFTTrainer.__init__", "name": "tokenizer"},  # its own signature
        {"class": "XGRPOTrainer", "name": "num_iterations"},  # a newer library may read it
        {"module": "my_package", "name": "Trainer"},
        {"class": "Foo", "name": "tokenizer"},
        {"name": "tokenizer"},
        {},
    ],
)
def test_a_name_of_no_table_has_no_words(words: dict[str, str]) -> None:
    assert change_words(words, ()) == {}


@pytest.mark.parametrize("file", TABLES, ids=lambda file: file.stem)
def test_a_table_has_measured_releases_and_rows_between_them(file: object) -> None:
    head, *lines = file.read_text("utf-8").splitlines()  # type: ignore[attr-defined]
    releases = [Version(text) for text in head.removeprefix("# ").split()]
    assert releases == sorted(set(releases))
    rows = [line.split("\t") for line in lines]
    assert {len(row) for row in rows} == {4}
    ends = {text for _, *both, _ in rows for text in both if text}
    assert {Version(text) for text in ends} <= {*releases}
    assert all((first or last) and re.fullmatch(r"\w+", name) for name, first, last, _ in rows)
    pairs = [(name, owner) for name, _, _, owners in rows for owner in owners.split(" ")]
    assert all(owner for _, owner in pairs)
    assert len({*pairs}) == len(pairs)


def test_a_replacement_is_of_a_name_that_went() -> None:
    tables = {file.stem: file.read_text("utf-8") for file in TABLES}
    for package, names in replacements().items():
        for name, owners in names.items():
            rows = re.findall(rf"^{name}\t\S*\t\S+\t(.+)$", tables[package], re.MULTILINE)
            gone = [owner for owners in rows for owner in owners.split()]
            assert gone, (package, name)
            assert all(owner == "*" or owner in gone for owner in owners), (package, name, owners, gone)


def test_a_release_that_has_the_name_of_a_module_is_mixed_with_another() -> None:
    message = "ImportError: cannot import name 'add_model_info_to_custom_pipelines' from 'transformers.utils'"
    mixed = explained(f"transformers==4.49.0\n{message} (x/__init__.py)")
    assert mixed.causes[0].is_likely
    assert "transformers 4.49.0" in mixed.causes[0].cause.text
    gone = explained(f"transformers==4.56.0\n{message} (x/__init__.py)")
    assert "has removed" in gone.causes[0].cause.text
    assert not any("two releases" in one.cause.text for one in gone.causes)
