"""Completion in the shell, requested as bash requests it."""

from __future__ import annotations

import pytest

from repros.cli import main
from tests.cli.command import RAISES


def completions(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    words = line.split(" ")
    monkeypatch.setenv("_REPROS_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    with pytest.raises(SystemExit):
        main()
    out, err = capsys.readouterr()
    assert err == ""
    return [item.partition(",")[2] for item in out.split()]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("repros sh", ["show"]),
        ("repros show rpr-0005", ["RPR-0005"]),
        ("repros show submodule_call", ["submodule_call_skips_gradient_sync"]),
        ("repros run RPR-0005 --variant f", ["failing", "fixed"]),
        ("repros run RPR-0005 --variant=f", ["failing", "fixed"]),
        ("repros run 5 --variant f", ["failing", "fixed"]),
        ("repros run RPR-0004 --strategy f", ["fused_adamw"]),
        ("repros run --stack 2023-", ["2023-05", "2023-12"]),
        ("repros run --stack h", ["home"]),
        ("repros export RPR-0005 --variant ma", ["marked_method"]),
        ("repros export RPR-0005 --stack h", []),
        ("repros list --family fab", ["fabric"]),
        ("repros list --package bits", ["bitsandbytes"]),
        ("repros new x --family fab", ["fabric"]),
        (f"repros run --catalogue {RAISES} RPR-", ["RPR-9001"]),
        ("repros run --device s", ["sim"]),
        ("repros run --on r", ["ray", "ray://"]),
        ("repros run --on 2023-", []),
        ("repros reduce train.py --clean-on 2023-", ["2023-05", "2023-12"]),
        ("repros reduce train.py --stack 2023-", ["2023-05", "2023-12"]),
        ("repros stacks --lock 2023-", ["2023-05", "2023-12"]),
        ("repros report RPR-0001 --form py", ["pytorch"]),
    ],
)
def test_completions(
    line: str, expected: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completions(line, monkeypatch, capsys) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_each_shell(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_REPROS_COMPLETE", f"{shell}_source")
    with pytest.raises(SystemExit):
        main()
    assert f"_REPROS_COMPLETE={shell}_complete" in capsys.readouterr().out
