"""The Markdown block for upstream, whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from repros import __version__
from repros.advise.report.build import EnvironmentSummary, IssueReport, ReportedFailure, RunSummary, VariantSummary
from repros.advise.report.markdown import Form, markdown
from repros.model import FailureKind, Role, Upstream

FAILURE = ReportedFailure(
    id="RPR-0001",
    title="The LR finder leaves logged results on the CPU",
    silent=False,
    path="repros/catalogue/lightning/lr_finder.py",
    packages=("lightning",),
    affected=("lightning>=2.1,<2.4",),
    measurable=("lightning>=2.1",),
    kind=FailureKind.BUG,
    documented=None,
    upstream=Upstream(reports=("https://example.org/1",), fixed_by=("https://example.org/2",)),
    sections={"Symptom": "an error.", "Cause": "a move.", "Fix": "Lightning 2.4."},
    variants={
        "failing": VariantSummary("failing", Role.FAILS, "finds, then fits", None, None),
        "fixed": VariantSummary("fixed", Role.WORKS, "a fresh Trainer", None, "https://example.org/2"),
        "summed": VariantSummary("summed", Role.WORKS, "logs a sum", None, None),
        "checked": VariantSummary("checked", Role.DOES_NOT_FIX, "moves the tensor", "the tensor has to be moved", None),
    },
    script="import torch\n",
)
ENVIRONMENT = EnvironmentSummary(
    "3.11.7", "Linux", {"torch": "2.1.2", "lightning": "2.1.3"}, "PyTorch version: 2.1.2", None, "2023-12", True
)
FAILING = RunSummary(
    "failing", "ddp", "sim", "2023-12", 2, "warm", "fails", True, "reproduced", "RuntimeError: a | b `c`", "why"
)
FIXED = replace(FAILING, variant="fixed", expected="passes", verdict="clean", signature=None, reason="returned")
CHECKED = replace(FAILING, variant="checked")
NOT_RUN = replace(FAILING, device="cuda", verdict="unavailable", signature=None, reason="no CUDA device here")
REPORT = IssueReport(FAILURE, (ENVIRONMENT,), (FAILING, FIXED, CHECKED, NOT_RUN), "Traceback:\nRuntimeError: a")

LIGHTNING = f"""\
### Bug description

**The LR finder leaves logged results on the CPU.**

An error.

A move.

On stack 2023-12 of repros: **reproduced** under ddp on sim, not run under ddp on cuda (`no CUDA device here`).

### What version are you seeing the problem on?

`lightning 2.1.3, torch 2.1.2` on stack 2023-12 of repros

Documented as affected: `lightning>=2.1,<2.4`.

### How to reproduce the bug

On a machine with a GPU: `uv run rpr_0001.py`. Without one, on a simulated accelerator: \
`repros run RPR-0001 --strategy ddp --device sim --stack 2023-12`

<details><summary>rpr_0001.py</summary>

```python
import torch
```

</details>

### Error messages and logs

| variant | strategy | device | verdict | seen |
| --- | --- | --- | --- | --- |
| `failing` | ddp | sim | **reproduced** | `` RuntimeError: a \\| b `c` `` |
| `fixed` | ddp | sim | **clean** | `returned` |
| `checked` | ddp | sim | **reproduced** | `` RuntimeError: a \\| b `c` `` |

Not run on cuda: `no CUDA device here`

```
Traceback:
RuntimeError: a
```

### Environment

Stack 2023-12 of repros:

```
python: 3.11.7
lightning: 2.1.3
torch: 2.1.2
platform: Linux
```

<details><summary>torch.utils.collect_env</summary>

```
PyTorch version: 2.1.2
```

</details>

### More info

Devices it was run on:
- `sim`: a simulated accelerator, **not a GPU**: host memory instead of `cuda` (collectives over Gloo) that \
checks devices as CUDA's operators do. It is evidence about the Python code of the libraries, not about CUDA \
kernels, NCCL, streams, speed or memory.

Fix: Lightning 2.4.

Workarounds:
- `fixed`: a fresh Trainer (https://example.org/2). **Verified here** (ddp on sim, 2023-12).
- `summed`: logs a sum. Not run here.

Documented elsewhere, but does not work:
- `checked` ("the tensor has to be moved"): moves the tensor. **Confirmed here** (ddp on sim, 2023-12).

RPR-0001 of repros {__version__}, `repros/catalogue/lightning/lr_finder.py`. \
Kind: bug. Known threads: reported in https://example.org/1; fixed by https://example.org/2
"""


def test_under_lightnings_headings() -> None:
    assert markdown(REPORT) == LIGHTNING


def headings(text: str) -> list[str]:
    return [line.removeprefix("### ") for line in text.splitlines() if line.startswith("### ")]


def test_under_pytorchs_headings_the_content_is_the_same() -> None:
    of_torch = markdown(replace(REPORT, failure=replace(FAILURE, packages=("torch",))))
    assert headings(of_torch) == ["🐛 Describe the bug", "Versions"]
    assert markdown(REPORT, Form.PYTORCH) == of_torch
    paragraphs = set(LIGHTNING.split("\n\n")) - {line for line in LIGHTNING.split("\n\n") if line.startswith("### ")}
    assert paragraphs - {LIGHTNING.rsplit("\n\n", maxsplit=1)[-1]} < set(of_torch.split("\n\n"))


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (
            replace(FIXED, verdict="unfixed", signature="X"),
            "**Not confirmed here**: unfixed: it failed as documented, although",
        ),
        (replace(FIXED, affected=False), "Completed here, which is no evidence: these versions are not affected"),
        (replace(FIXED, verdict="infra"), "**Not confirmed here**: could not be judged (ddp on sim, 2023-12)."),
        (replace(FIXED, verdict="unavailable"), "Not run here."),
    ],
)
def test_the_sentence_about_a_workaround(run: RunSummary, sentence: str) -> None:
    text = markdown(replace(REPORT, runs=(FAILING, run)))
    (line,) = (line for line in text.splitlines() if line.startswith("- `fixed`:"))
    assert sentence in line


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (
            replace(FAILING, verdict="clean", affected=False, device="cpu"),
            "**not affected**: outside the documented range, and clean under ddp on cpu",
        ),
        (
            replace(FAILING, verdict="gone", device="cpu"),
            "**gone: it completed, although these versions are documented to fail** under ddp on cpu",
        ),
    ],
)
def test_the_sentence_about_the_failing_variant(run: RunSummary, sentence: str) -> None:
    text = markdown(replace(REPORT, runs=(replace(run, signature=None),)))
    assert f"\nOn stack 2023-12 of repros: {sentence}.\n" in text


def test_several_environments_have_a_column() -> None:
    own = replace(
        ENVIRONMENT, name="own environment", stack=False, collect_env="", collect_env_problem="it failed (no `torch`)"
    )
    text = markdown(
        replace(REPORT, environments=(ENVIRONMENT, own), runs=(FAILING, replace(FAILING, environment=own.name)))
    )
    assert "| variant | strategy | device | on | verdict | seen |\n" in text
    assert "| `failing` | ddp | sim | own environment | **reproduced** |" in text
    assert "`torch.utils.collect_env`: no output, because `` it failed (no `torch`) ``." in text


def test_an_observation_stays_in_its_code_block() -> None:
    text = markdown(replace(REPORT, traceback="```\n# heading\n@mention"))
    assert "\n````\n```\n# heading\n@mention\n````\n" in text
